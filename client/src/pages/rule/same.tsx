// Two rules: whether they attend the same pairs, where they first differ, and what they share.
import { useEffect } from "preact/hooks";
import { current, together, useAnswer } from "../../core/ask";
import { FoldedFormula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import type { FirstDifference } from "../../schema";
import { marks, type RuleProps } from "./state";

const WHOSE: { [whose: string]: string } = { both: "attended by both", rule: "by A only", other: "by B only" };

export function SamePanel({ state, read, other }: RuleProps) {
  const question = !state.other ? null : read.problem || other.problem ? undefined : questionOf("same", state);
  const same = useAnswer("same", question);
  const shared = useAnswer("shared", question);
  const found = question === null ? null : same.answer;
  const marked = current(same, question)?.here ?? null; // the ring belongs to the numbers of the grid
  useEffect(() => {
    marks.value = { ...marks.value, same: marked ? [{ pair: marked.pair, label: "first difference" }] : [] };
    return () => {
      marks.value = { ...marks.value, same: [] };
    };
  }, [JSON.stringify(marked)]);
  const copies = current(shared, question)?.copies; // with the counts, once they are found
  const at = found && Object.entries(found.at).map(([name, value]) => `${name} = ${value}`).join(", ");
  return (
    <Panel
      title="Two rules"
      about="Whether both rules attend the same pairs: decided for all sizes, and for all parameters that have no number. Where they differ, the smallest numbers and the first pair that only one of them has; and how many pairs they share."
      panel="same"
      question={question}
      reading={found && copies ? { ...same, answer: { copies } } : same}
    >
      {found && (
        <>
          <p class={found.same ? "same-verdict same" : "same-verdict"}>
            {found.same ? "= the same pairs, always" : "≠ different"}
            {at && <small> with {at}</small>}
          </p>
          {found.first && <Differences first={found.first} here={found.here} drawn={found.drawn} />}
          {shared.problem && !same.problem && <p class="rule-note">{shared.problem.message}</p>}
          <dl class={current(shared, question) ? "rule-facts-list" : "rule-facts-list stale"}>
            {(shared.problem || !together(same, question, shared) ? [] : (shared.answer?.parts ?? [])).map((part) => (
              <>
                <dt>{WHOSE[part.whose]}</dt>
                <dd>
                  {part.value && <strong class="same-value">{part.value}</strong>}
                  {part.formula && <FoldedFormula formula={part.formula} />}
                  {part.why && <span class="rule-note">{part.why}</span>}
                </dd>
              </>
            ))}
          </dl>
        </>
      )}
    </Panel>
  );
}

/** Where the rules differ: on the grid as it is drawn, and at the smallest numbers. */
function Differences({ first, here, drawn }: { first: FirstDifference; here: FirstDifference | null; drawn: { [name: string]: number } }) {
  const isSmallest = here !== null && JSON.stringify(here) === JSON.stringify(first);
  const go = () => change({ numbers: first.numbers, view: [] }, true);
  return (
    <>
      {!isSmallest && (
        <p>
          At {numbersText(drawn)}, as drawn, {here ? <>{onlyText(here)}.</> : "they attend the same pairs."}
        </p>
      )}
      <p>
        They differ first at {numbersText(first.numbers)}: {onlyText(first)}. {!isSmallest && <button onClick={go}>Go there</button>}
      </p>
    </>
  );
}

function numbersText(numbers: { [name: string]: number }): string {
  return Object.entries(numbers).map(([name, value]) => `${name} = ${value.toLocaleString("en")}`).join(", ");
}

function onlyText({ rule, pair }: FirstDifference): string {
  return `only ${rule === "rule" ? "A" : "B"} attends (${numbersText(pair)})`;
}
