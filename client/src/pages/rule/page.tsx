// Rule: who attends to whom, and what follows from it.
import type { CountAnswer, ReadAnswer } from "../../schema";
import { useAnswer, type Reading } from "../../core/ask";
import { PiecewiseFormula } from "../../core/formula";
import { definePage } from "../../core/page";
import { Panel } from "../../core/panel";
import { Slider } from "../../core/slider";
import { start } from "../../core/start";
import { change, pick } from "../../core/state";
import { TextField } from "../../core/text-field";
import { ClaimPanel } from "./claim";
import { completions } from "./completion";
import { CostPanel } from "./cost";
import { GridPanel } from "./grid-panel";
import { PlanPanel } from "./plan";
import { hoveredSpan, START, type RuleProps, type RuleState } from "./state";
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
      <TextField
        name="rule"
        label="Who attends to whom"
        value={state.rule}
        problem={read.problem}
        onInput={(rule) => change({ rule })}
        placeholder="k <= q, or a name such as causal"
        highlight={hoveredSpan.value}
        complete={completing(read)}
      />
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

const completing = (read: Reading<ReadAnswer>) => (text: string, caret: number, asked: boolean) =>
  completions(start.value?.catalogue ?? [], read.answer?.letters ?? [], text, caret, asked);

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
