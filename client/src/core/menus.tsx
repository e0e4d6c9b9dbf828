// The examples, and the questions of the notes.
import { start } from "./start";
import { visit, type State } from "./state";

export function Menus() {
  return (
    <div class="menus">
      <details>
        <summary>Examples</summary>
        <div class="menu">
          {start.value?.examples.map((example) => (
            <button
              onClick={(event) => {
                visit(example.page, example.state as State);
                event.currentTarget.closest("details")!.open = false;
              }}
            >
              {example.title}
            </button>
          ))}
        </div>
      </details>
    </div>
  );
}
