// Derive: a derivation line by line, each line checked; change a line, and it is judged.
import { useState } from "preact/hooks";
import { useAnswer } from "../../core/ask";
import { Formula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { Scripts } from "../../core/scripts";
import { change, questionOf } from "../../core/state";
import { LineRow } from "./line";
import type { DeriveState } from "./state";
import "./style.css";

const ABOUT =
  "Every line is checked before it is shown: against the exact count for all sizes at once, or in exact numbers and symbols. " +
  "Change a line: it is judged as it follows from the line before, and the next line as it follows from yours. A refuted line says on what it fails.";

export default function DerivePage({ state }: { state: DeriveState }) {
  const question = questionOf("derive", state);
  const reading = useAnswer("derive", question);
  const answer = reading.answer;
  const [open, setOpen] = useState<number | null>(null);
  const choose = (derivation: string) => {
    setOpen(null);
    change({ derivation, changes: {} });
  };
  const typed = (number: number, text: string) => change({ changes: { ...state.changes, [number]: text } });
  const undone = (number: number) => {
    const { [number]: _, ...others } = state.changes;
    change({ changes: others });
  };
  return (
    <div class="derive">
      <div class="derive-list" role="group" aria-label="Derivations">
        {answer?.derivations.map((one) => (
          <button aria-pressed={one.name === state.derivation} onClick={() => choose(one.name)}>
            <b>{one.name}</b>
            <span><Scripts text={one.summary} /></span>
          </button>
        ))}
      </div>
      <Panel title={answer?.title ?? "A derivation"} about={ABOUT} panel="derive" question={question} reading={reading}>
        {state.derivation === "game" && <GameFields state={state} />}
        {answer && (
          <>
            <p class="derive-given">{answer.given}</p>
            {answer.definitions.length > 0 && (
              <ul class="derive-definitions">
                {answer.definitions.map((line) => (
                  <li>
                    <Formula latex={`\\displaystyle ${line.left} ${line.relation} ${line.right}`} /> <span>{line.reason}</span>
                  </li>
                ))}
              </ul>
            )}
            <ol class="derive-lines">
              {answer.lines.map((line, index) => (
                <LineRow
                  line={line}
                  number={index + 1}
                  open={open === index + 1 || line.changed}
                  text={state.changes[index + 1] ?? line.text}
                  onOpen={() => setOpen(open === index + 1 ? null : index + 1)}
                  onText={(text) => typed(index + 1, text)}
                  onUndo={() => {
                    setOpen(null);
                    undone(index + 1);
                  }}
                />
              ))}
            </ol>
            <p class={answer.holds ? "derive-verdict holds" : "derive-verdict"} role="status">
              {answer.holds ? `✓ all ${answer.lines.length} lines hold` : `✗ ${answer.lines.filter((line) => line.verdict !== "holds").length} of ${answer.lines.length} lines do not hold`}
            </p>
            {answer.remark && <p>{answer.remark}</p>}
          </>
        )}
      </Panel>
    </div>
  );
}

/** The function, the method and the step of a game's derivation. */
function GameFields({ state }: { state: DeriveState }) {
  const fields = [["f", "f"], ["step", "step, or h"]] as const;
  return (
    <div class="derive-game">
      {fields.map(([name, label]) => (
        <label>
          {label} <input type="text" value={state[name]} spellcheck={false} onInput={(event) => change({ [name]: event.currentTarget.value, changes: {} })} />
        </label>
      ))}
      <label>
        method{" "}
        <select value={state.method} onChange={(event) => change({ method: event.currentTarget.value, changes: {} })}>
          {["alternating", "simultaneous", "optimistic", "extragradient", "momentum", "consensus", "gradient_penalty"].map((name) => (
            <option value={name}>{name.replace("_", " ")}</option>
          ))}
        </select>
      </label>
    </div>
  );
}
