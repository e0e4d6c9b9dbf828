// The examples, and the questions of the notes.
import { useEffect, useState } from "preact/hooks";
import type { StartAnswer } from "../schema";
import { ask } from "./ask";
import { visit, type State } from "./state";

export function Menus() {
  const [start, setStart] = useState<StartAnswer | null>(null);
  useEffect(() => {
    ask<StartAnswer>("start", {}).then(setStart, () => undefined);
  }, []);
  return (
    <div class="menus">
      <details>
        <summary>Examples</summary>
        <div class="menu">
          {start?.examples.map((example) => (
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
