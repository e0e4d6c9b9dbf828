// Worked attention: edit any number, every step is recomputed exactly; or work it yourself and be checked.
import { useState } from "preact/hooks";
import { useAnswer } from "../../core/ask";
import { Copy, Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import { Inputs } from "./inputs";
import { Practice } from "./practice";
import { OriginLine, Steps } from "./steps";
import { numberAt, type NumberPlace, type WorkState } from "./state";
import "./style.css";

const ABOUT = (
  <>
    One layer of attention worked through by hand: queries, keys and values, their scores, the softmax step by step, and the
    outputs. Every number is exact (fractions, roots, powers of e) with its decimal beside it. Edit any number above: 1/3,
    sqrt(2) and 0.5 are all read exactly. Point at a number to see the row and column it comes from.
  </>
);

export default function WorkPage({ state }: { state: WorkState }) {
  const [pointed, point] = useState<NumberPlace | null>(null);
  const question = questionOf("work", state);
  const work = useAnswer("work", question);
  const steps = work.answer?.steps ?? [];
  return (
    <>
      <Inputs state={state} problem={work.problem} pointed={state.practice ? null : numberAt(steps, pointed)} steps={steps} />
      <Options state={state} markdown={work.answer?.markdown ?? ""} />
      <div class="panels">
        {state.practice ? (
          <Practice state={state} steps={steps} />
        ) : (
          <Panel title="Every step" about={ABOUT} panel="work" question={question} reading={work} picture wide>
            {work.answer?.facts.map((fact) => <p class="work-fact">{fact}</p>)}
            <Steps steps={steps} show={state.show} pointed={pointed} onPoint={point} />
            <OriginLine steps={steps} pointed={pointed} />
          </Panel>
        )}
      </div>
    </>
  );
}

const SHOWN: [string, string][] = [["both", "exact and decimals"], ["exact", "exact"], ["decimal", "decimals"]];

function Options({ state, markdown }: { state: WorkState; markdown: string }) {
  return (
    <div class="work-show">
      {!state.practice && (
        <>
          <div role="radiogroup" aria-label="Numbers are shown">
            {SHOWN.map(([show, words]) => (
              <label>
                <input type="radio" name="show" checked={state.show === show} onChange={() => change({ show })} /> {words}
              </label>
            ))}
          </div>
          <label>
            decimals <input type="range" min={0} max={12} value={state.places} aria-valuetext={`${state.places} decimals`} onInput={(event) => change({ places: event.currentTarget.valueAsNumber })} /> {state.places}
          </label>
        </>
      )}
      <label>
        <input type="checkbox" checked={state.practice} onChange={(event) => change({ practice: event.currentTarget.checked })} /> work it yourself
      </label>
      {markdown && !state.practice && <Copy name="Copy as Markdown" text={markdown} />}
    </div>
  );
}
