// Rule: who attends to whom, and what follows from it.
import type { CountAnswer, ReadAnswer } from "../../schema";
import { useAnswer } from "../../core/ask";
import { PiecewiseFormula } from "../../core/formula";
import { definePage } from "../../core/page";
import { Panel, ProblemText } from "../../core/panel";
import { Slider } from "../../core/slider";
import { change, pick } from "../../core/state";
import { ClaimPanel } from "./claim";
import { CostPanel } from "./cost";
import { GridPanel } from "./grid-panel";
import { PlanPanel } from "./plan";
import { START, type RuleProps, type RuleState } from "./state";
import "./style.css";

function RulePage({ state }: { state: RuleState }) {
  const read = useAnswer<ReadAnswer>("read", pick(state, ["rule"]));
  const other = useAnswer<ReadAnswer>("other", state.other ? pick(state, ["other"]) : null);
  const props = { state, read, other };
  const set = (name: string) => (value: number | string | null) => {
    const { [name]: _, ...others } = state.numbers;
    change({ numbers: value === null ? others : { ...others, [name]: value } });
  };
  return (
    <>
      <div class="field">
        <label for="rule">Who attends to whom</label>
        <input id="rule" value={state.rule} spellcheck={false} autocomplete="off" onInput={(event) => change({ rule: event.currentTarget.value })} />
        {read.problem && <ProblemText problem={read.problem} />}
      </div>
      <div class="sliders">
        {read.answer?.letters
          .filter((letter) => letter.value === null)
          .map((letter) => (
            <Slider name={letter.name} value={state.numbers[letter.name] ?? null} example={letter.example} max={letter.size ? 1e6 : 64} min={letter.size ? 1 : 0} log={letter.size} onChange={set(letter.name)} />
          ))}
      </div>
      <div class="rule-layout">
        <div class="rule-picture">
          <GridPanel {...props} />
        </div>
        <div class="rule-facts">
          <CountPanel {...props} />
          <ClaimPanel {...props} />
        </div>
        <div class="rule-below">
          <PlanPanel {...props} />
          <CostPanel {...props} />
        </div>
      </div>
    </>
  );
}

function CountPanel({ state, read }: RuleProps) {
  const question = read.problem ? null : pick(state, ["rule", "numbers"]);
  const count = useAnswer<CountAnswer>("count", question);
  return (
    <Panel title="Pairs" about="The number of (query, key) pairs that the rule attends, exactly, for every size at once." panel="count" question={question} reading={count}>
      {count.answer && <PiecewiseFormula formula={count.answer.formula} />}
      {count.answer?.value && <p class="value">{count.answer.value}</p>}
    </Panel>
  );
}

export const rulePage = definePage<RuleState>({ name: "rule", title: "Rule", state: START, view: RulePage });
