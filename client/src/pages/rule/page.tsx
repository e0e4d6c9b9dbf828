// Rule: who attends to whom, and what follows from it.
import { useState } from "preact/hooks";
import { useAnswer, type Reading } from "../../core/ask";
import { start } from "../../core/start";
import { change, questionOf } from "../../core/state";
import { TextField } from "../../core/text-field";
import type { ReadAnswer } from "../../schema";
import { ClaimPanel } from "./claim";
import { CodePanel } from "./code";
import { completions } from "./completion";
import { CostPanel } from "./cost";
import { CachePanel, CountPanel, KeysPanel, NamesPanel, SpanPanel } from "./facts";
import { FieldPanel } from "./field";
import { GridPanel } from "./grid-panel";
import { Letters } from "./letters";
import { PlanPanel } from "./plan";
import { SamePanel } from "./same";
import { hoveredSpan, type RuleState } from "./state";
import "./style.css";

export default function RulePage({ state }: { state: RuleState }) {
  const read = useAnswer("read", questionOf("read", state));
  const other = useAnswer("other", state.other ? questionOf("other", state) : null);
  const keys = useAnswer("keys", read.problem ? undefined : questionOf("keys", state));
  const noFormula = !read.problem && keys.problem?.kind === "no formula" ? keys.problem.message : "";
  const [opened, setOpened] = useState(false);
  const two = opened || state.other !== "";
  const props = { state, read, other };
  const close = () => {
    setOpened(false);
    change({ other: "" }, true);
  };
  return (
    <>
      <TextField
        name="rule"
        label={two ? "A: who attends to whom" : "Who attends to whom"}
        value={state.rule}
        problem={read.problem}
        onInput={(rule) => change({ rule })}
        placeholder="k <= q, or a name such as causal; the key ↓ lists them"
        highlight={hoveredSpan.value}
        complete={completing(read)}
        known={start.value}
      >
        {!two && (
          <button class="quiet" onClick={() => { setOpened(true); change({ other: state.rule }, true); }}>
            Compare with a second rule
          </button>
        )}
      </TextField>
      {two && (
        <TextField
          name="other"
          label="B: the rule to compare with"
          value={state.other}
          problem={other.problem}
          onInput={(text) => { setOpened(true); change({ other: text }); }}
          placeholder="another rule"
          complete={completing(other)}
          focused={opened}
        >
          <button class="quiet" onClick={() => change({ rule: state.other, other: state.rule }, true)}>Swap</button>
          <button class="quiet" onClick={close}>Take away</button>
        </TextField>
      )}
      <Slips field="rule" read={read} />
      {two && <Slips field="other" read={other} />}
      {noFormula && <p class="rule-note">No formulas for this rule: {noFormula}</p>}
      <Letters {...props} hasFormulas={!noFormula} />
      <div class="rule-layout">
        <div class="rule-picture">
          <GridPanel {...props} />
        </div>
        <div class="rule-facts">
          {two && <SamePanel {...props} />}
          <CountPanel {...props} />
          <ClaimPanel {...props} />
          <KeysPanel {...props} keys={keys} />
          <SpanPanel {...props} />
          <FieldPanel {...props} />
        </div>
        <div class="rule-more">
          <CachePanel {...props} />
          <CodePanel {...props} />
          <NamesPanel {...props} />
        </div>
        <div class="rule-below">
          <PlanPanel {...props} />
          <CostPanel {...props} />
        </div>
      </div>
    </>
  );
}

/** Letters that are new, and may be others mistyped. */
function Slips({ field, read }: { field: "rule" | "other"; read: Reading<ReadAnswer> }) {
  return (
    <>
      {(read.problem ? [] : (read.answer?.slips ?? [])).map((slip) => (
        <p class="rule-note" role="status">
          <var>{slip.name}</var> is a new letter, a number of its own. Did you mean <var>{slip.meant}</var>? <button onClick={() => change({ [field]: slip.text }, true)}>{slip.text}</button>
        </p>
      ))}
    </>
  );
}

const completing = (read: Reading<ReadAnswer>) => (text: string, caret: number, asked: boolean) =>
  completions(start.value?.catalogue ?? [], read.answer?.letters ?? [], text, caret, asked);
