// Price: what layers and models cost, exactly.
import type { LayersAnswer } from "../../schema";
import { useAnswer } from "../../core/ask";
import { definePage } from "../../core/page";
import { change } from "../../core/state";
import { CompareView } from "./compare";
import { LayerView } from "./layer";
import { takeFile } from "./config";
import { ModelView } from "./model";
import { START, type PriceState } from "./state";
import "./style.css";

const VIEWS = { layer: "One layer", compare: "Curves", model: "A model" };

function PricePage({ state }: { state: PriceState }) {
  const menus = useAnswer<LayersAnswer>("layers", {}).answer;
  const View = state.view === "layer" ? LayerView : state.view === "model" ? ModelView : CompareView;
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
        {Object.entries(VIEWS).map(([name, title]) => (
          <button aria-pressed={View === { layer: LayerView, compare: CompareView, model: ModelView }[name]} onClick={() => change({ view: name })}>
            {title}
          </button>
        ))}
      </div>
      <View state={state} menus={menus} />
    </div>
  );
}

export const pricePage = definePage<PriceState>({ name: "price", title: "Price", state: START, view: PricePage });
