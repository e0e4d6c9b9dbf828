// Price: what layers and models cost, exactly.
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
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

/** Takes a file that is dropped anywhere in the window; left alone, the browser would leave the page for it. */
function take(event: DragEvent): void {
  event.preventDefault();
  const file = event.type === "drop" && event.dataTransfer?.files[0];
  if (file) void takeFile(file);
}

export default function PricePage({ state }: { state: PriceState }) {
  const menus = useAnswer("layers", {}).answer;
  const chosen = Object.hasOwn(VIEWS, state.view) ? state.view : START.view;
  const View = VIEWS[chosen]!.view;
  useEffect(() => {
    window.addEventListener("dragover", take);
    window.addEventListener("drop", take);
    return () => {
      window.removeEventListener("dragover", take);
      window.removeEventListener("drop", take);
    };
  }, []);
  return (
    <div>
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
