// Work it yourself: an empty table for every step, and each number judged as it is typed.
import type { NumberCheck, StepView } from "../../schema";
import { useAnswer } from "../../core/ask";
import { Matrix, rowsOf, type Cell } from "../../core/matrix";
import { Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import { StepTitle } from "./steps";
import { isSame, type WorkState } from "./state";

const ABOUT = (
  <>
    Fill in any of the numbers, in any order: 0.1966, .1966, 1/4, e/(e+1), -inf. A decimal is right within half a unit of its last
    digit. A number that is off only because an earlier one is, is told apart from a slip of its own.
  </>
);
const VERDICTS: { [kind: string]: string } = {
  right: "right",
  rounded: "off only as the numbers before it are rounded",
  follows: "follows from an earlier slip",
  slip: "a slip",
};

export function Practice({ state, steps }: { state: WorkState; steps: StepView[] }) {
  const typed = Object.values(state.answer).some((tables) => Array.isArray(tables) && tables.some((table) => rowsOf(table).flat().some((cell) => cell.trim())));
  const question = typed ? questionOf("check", state) : null;
  const reading = useAnswer("check", question);
  const checked = typed ? reading.answer : null;
  const verdicts = checked?.numbers ?? [];
  return (
    <Panel
      title="Work it yourself"
      about={ABOUT}
      panel="check"
      question={question}
      reading={reading}
      wide
      controls={
        <>
          <div class="work-steps">
            {steps.map((step) => (
              <section class="work-step" data-step={step.name}>
                <StepTitle step={step} />
                {step.tables.map((_, head) => (
                  <AnswerTable state={state} step={step} head={head} verdicts={verdicts} />
                ))}
              </section>
            ))}
          </div>
          <p class="work-legend">
            {Object.entries(VERDICTS).map(([kind, words]) => <span class={`work-verdict ${kind}`}>{words}</span>)}
            {typed && <button class="quiet" onClick={() => change({ answer: {} })}>Clear my answer</button>}
          </p>
        </>
      }
    >
      {checked && (
        <div class="work-judgement">
          <p><strong class={checked.right ? "good" : "bad"}>{checked.right ? "✓" : "✗"}</strong> {checked.summary}</p>
          {checked.notes.map((note) => <p class="work-note">{note}</p>)}
          {checked.slips.length > 0 && (
            <details>
              <summary>What is wrong, and what is right</summary>
              <ul>{checked.slips.map((slip) => <li>{slip}</li>)}</ul>
            </details>
          )}
        </div>
      )}
    </Panel>
  );
}

function AnswerTable({ state, step, head, verdicts }: { state: WorkState; step: StepView; head: number; verdicts: NumberCheck[] }) {
  const rows = step.tables[head]!;
  const given = (at: number) => rowsOf(state.answer[step.name]?.[at]);
  const filled = (at: number) => step.tables[at]!.map((row, line) => row.map((_, column) => given(at)[line]?.[column] ?? ""));
  const cells = filled(head);
  const verdictOf = ({ row, column }: Cell) => {
    const found = verdicts.find((one) => isSame({ name: one.step, head: one.head, row: one.row, column: one.column }, { name: step.name, head, row, column }));
    return found && found.given === cells[row]![column]!.trim().replace("−", "-") ? found.verdict : "";
  };
  const set = (table: string[][]) => change({ answer: { ...state.answer, [step.name]: step.tables.map((_, at) => (at === head ? table : filled(at))) } });
  return (
    <Matrix
      label={step.tables.length > 1 ? `${step.title}, head ${head + 1}` : step.title}
      name={step.tables.length > 1 ? `${head + 1}` : " "}
      cells={cells}
      fixedRows
      fixedColumns
      placeholder="?"
      rowNames={rows.map((_, at) => `${step.down} ${at + 1}`)}
      columnNames={rows[0]!.map((_, at) => `${step.across || "sum"} ${at + 1}`)}
      look={(cell) => `work-answer ${verdictOf(cell)}`}
      note={(cell) => (verdictOf(cell) === "slip" ? VERDICTS.slip! : "")}
      onChange={set}
    />
  );
}
