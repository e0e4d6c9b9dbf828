// Cost of the rule: what attention over its pairs takes, as formulas and at numbers.
import { useAnswer } from "../../core/ask";
import { PiecewiseFormula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { questionOf } from "../../core/state";
import "./cost.css";
import type { RuleProps } from "./state";

const ABOUT =
  "Attention over the attended pairs: queries times keys, the exponentials of the softmax, weights times values. Queries, keys and values are given: projections are on the page Price. Letters are 0 or more. " +
  "Needed counts attended pairs, dense all pairs; between them the pairs of every tile of 64 × 64 that holds an attended one, whatever kernel runs: the Plan above has the tiles of the one that is chosen. The time is the least at the speeds measured on an H200, of its arithmetic or of its memory.";

export function CostPanel({ state, read }: RuleProps) {
  const question = read.problem ? undefined : questionOf("rule_cost", state);
  const reading = useAnswer("rule_cost", question);
  const answer = reading.answer;
  const at = answer && Object.entries(answer.at).map(([name, value]) => `${name} = ${value.toLocaleString("en")}`).join(", ");
  return (
    <Panel title="Cost" about={ABOUT} panel="rule_cost" question={question} reading={reading} wide>
      {!answer && reading.busy && <p class="cost-time">pricing…</p>}
      {answer && (
        <>
          <div class="scroll" tabIndex={0} role="group" aria-label="Cost of attention under the rule">
            <table class="cost-table">
              <caption>numbers at {at}</caption>
              <thead>
                <tr>
                  <th scope="col">quantity</th>
                  <th scope="col">formula, of attended pairs</th>
                  <th scope="col" class="number">needed</th>
                  <th scope="col" class="number">in 64 × 64 tiles</th>
                  <th scope="col" class="number">dense</th>
                </tr>
              </thead>
              <tbody>
                {answer.quantities.map((one) => (
                  <tr>
                    <th scope="row">{one.name}</th>
                    <td>{one.formula ? <PiecewiseFormula formula={one.formula} /> : "no formula is known"}</td>
                    <td class="number">{one.needed}</td>
                    <td class="number">{one.executed}</td>
                    <td class="number">{one.dense}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="cost-time">at least {answer.time}. {answer.note}</p>
        </>
      )}
    </Panel>
  );
}
