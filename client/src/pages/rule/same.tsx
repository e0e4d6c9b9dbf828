// Two rules: whether they attend the same pairs, where they first differ, and what they share.
import { useEffect } from "preact/hooks";
import { current, useAnswer } from "../../core/ask";
import { FoldedFormula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { change, pick } from "../../core/state";
import type { FirstDifference, SameAnswer, SharedAnswer } from "../../schema";
import { marks, type RuleProps } from "./state";

const WHOSE: { [whose: string]: string } = { both: "attended by both", rule: "by A only", other: "by B only" };

export function SamePanel({ state, read, other }: RuleProps) {
  const question = !state.other ? null : read.problem || other.problem ? undefined : pick(state, ["rule", "other", "numbers"]);
  const same = useAnswer<SameAnswer>("same", question);
  const shared = useAnswer<SharedAnswer>("shared", question);
  const found = question === null ? null : same.answer;
  const first = found?.first ?? null;
  const marked = current(same, question)?.first ?? null;
  useEffect(() => {
    marks.value = { ...marks.value, same: marked ? [{ pair: marked.pair, label: "first difference" }] : [] };
    return () => {
      marks.value = { ...marks.value, same: [] };
    };
  }, [JSON.stringify(marked)]);
  const at = found && Object.entries(found.at).map(([name, value]) => `${name} = ${value}`).join(", ");
  return (
    <Panel
      title="Two rules"
      about="Whether both rules attend the same pairs: decided for all sizes, and for all parameters that have no number. Where they differ, the smallest numbers and the first pair that only one of them has; and how many pairs they share."
      panel="same"
      question={question}
      reading={same}
    >
      {found && (
        <>
          <p class={found.same ? "same-verdict same" : "same-verdict"}>
            {found.same ? "= the same pairs, always" : "≠ different"}
            {at && <small> with {at}</small>}
          </p>
          {first && <First first={first} />}
          {shared.problem && !same.problem && <p class="rule-note">{shared.problem.message}</p>}
          <dl class={current(shared, question) ? "rule-facts-list" : "rule-facts-list stale"}>
            {(shared.problem ? [] : (shared.answer?.parts ?? [])).map((part) => (
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

function First({ first }: { first: FirstDifference }) {
  const numbers = Object.entries(first.numbers);
  const pair = Object.entries(first.pair).map(([name, place]) => `${name} = ${place}`);
  const go = () => change({ numbers: Object.fromEntries(numbers), view: [] }, true);
  return (
    <p>
      They differ first at {numbers.map(([name, value]) => `${name} = ${value}`).join(", ")}: only {first.rule === "rule" ? "A" : "B"} attends ({pair.join(", ")}).{" "}
      <button onClick={go}>Go there</button>
    </p>
  );
}
