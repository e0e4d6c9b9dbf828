// Is this formula the price? And what does plain code count that runs the layer?
import { useAnswer } from "../../core/ask";
import { Panel } from "../../core/panel";
import { Report } from "../../core/report";
import { change, questionOf } from "../../core/state";
import { Verdict } from "../rule/claim";
import type { PriceState } from "./state";

export function CostClaimPanel({ state, broken }: { state: PriceState; broken: boolean }) {
  const question = broken || !state.claim.trim() ? null : questionOf("cost_claim", state);
  const reading = useAnswer("cost_claim", question);
  return (
    <Panel
      title="Claim"
      about="Type a quantity, a colon, and what you believe it to be: a formula, or a big-O. It is compared with the price above for every size at once; where it fails, the smallest numbers at which it does are given."
      panel="cost_claim"
      question={question}
      reading={question ? reading : { ...reading, answer: null, problem: null }}
      controls={
        <div class="field">
          <label for="price-claim">The price is</label>
          <input id="price-claim" value={state.claim} placeholder="multiplies: n^2 h c + 2n(n - 1)h^2" spellcheck={false} autocomplete="off" onInput={(event) => change({ claim: event.currentTarget.value })} />
        </div>
      }
    >
      {question && reading.answer && <Verdict verdict={reading.answer.verdict} />}
    </Panel>
  );
}

export function CostCheckPanel({ state, broken }: { state: PriceState; broken: boolean }) {
  const question = broken || !state.run ? null : questionOf("cost_check", state);
  const reading = useAnswer("cost_check", question);
  const found = question && reading.answer;
  return (
    <Panel
      title="Counted by running"
      about="Plain loops run the layer, forward and backward, at small sizes, on numbers that count every operation done with them. What they count is compared with the formulas."
      panel="cost_check"
      question={question}
      reading={question ? reading : { ...reading, answer: null, problem: null }}
      controls={
        <label class="price-check">
          <input type="checkbox" checked={state.run} onChange={(event) => change({ run: event.currentTarget.checked })} />
          Run plain code at small sizes, and count
        </label>
      }
    >
      {found && (
        <>
          <p class={found.equal ? "price-equal" : "price-warning"}>{found.equal ? "✓ Every number is what the formula says." : "✗ A number differs from its formula."}</p>
          <Report report={found.report} title />
        </>
      )}
    </Panel>
  );
}
