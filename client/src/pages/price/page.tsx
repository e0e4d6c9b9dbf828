// Price: what layers and models cost, exactly.
import type { ComponentType } from "preact";
import type { LayersAnswer } from "../../schema";
import { useAnswer } from "../../core/ask";
import { change } from "../../core/state";
import { CompareView } from "./compare";
import { LayerView } from "./layer";
import { takeFile } from "./config";
import { ModelView } from "./model";
import { START, type PriceState, type ViewProps } from "./state";
import { TablesView } from "./tables";
import "./style.css";

const VIEWS: { [name: string]: { title: string; view: ComponentType<ViewProps> } } = {
  layer: { title: "One layer", view: LayerView },
  compare: { title: "Curves", view: CompareView },
  model: { title: "A model", view: ModelView },
  tables: { title: "Tables", view: TablesView },
};

export default function PricePage({ state }: { state: PriceState }) {
  const menus = useAnswer<LayersAnswer>("layers", {}).answer;
  const chosen = Object.hasOwn(VIEWS, state.view) ? state.view : START.view;
  const View = VIEWS[chosen]!.view;
  return (
    <div
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        const file = event.dataTransfer?.files[0];
        if (file) void takeFile(file);
      }}
    >
      <div class="price-views" role="group" aria-label="What is priced">
        {Object.entries(VIEWS).map(([name, { title }]) => (
          <button aria-pressed={name === chosen} onClick={() => change({ view: name })}>
            {title}
          </button>
        ))}
      </div>
      <View state={state} menus={menus} />
    </div>
  );
}
