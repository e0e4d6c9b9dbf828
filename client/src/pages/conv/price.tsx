// What the convolution and its heads cost, and the proof that hard heads cost the same on images of every size.
import { useEffect, useState } from "preact/hooks";
import { useAnswer } from "../../core/ask";
import { Panel, ProblemText } from "../../core/panel";
import { Slider } from "../../core/slider";
import { change, questionOf } from "../../core/state";
import type { ConvState } from "./state";

export function PricePanel({ state }: { state: ConvState }) {
  const question = questionOf("conv_price", state);
  const price = useAnswer("conv_price", question);
  const same = useAnswer("conv_same", useSettled(question)); // a proof takes longer than a slider's step
  return (
    <Panel
      title="The price of both"
      about="Hard heads attend to one key each, so that nothing is left to compute but the kernel's own products. That they cost the same is proved from the sets of attended pairs, for all rows and columns at once, not measured at one size. Soft heads look at every pixel, and pay for it."
      panel="conv_price"
      question={question}
      reading={price}
      wide
    >
      <div class="sliders">
        <Slider name="channels in" label="Channels in" value={state.channels} example={16} min={1} max={1024} log onChange={(channels) => change({ channels: channels ?? 1 })} />
        <Slider name="channels out" label="Channels out" value={state.out_channels} example={32} min={1} max={1024} log onChange={(out) => change({ out_channels: out ?? 1 })} />
      </div>
      <dl class="facts">
        {price.answer?.facts.map(([name, words]) => (
          <div>
            <dt>{name}</dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      <div aria-busy={same.busy} data-panel="conv_same">
        {same.problem && !price.problem && <ProblemText problem={same.problem} />}
        {!same.answer && !same.problem && <p class="conv-words">proving that both cost the same at every size …</p>}
        <ul class="conv-proofs">
          {same.answer?.same.map((one) => (
            <li class={one.holds ? "holds" : "fails"}>
              <span aria-hidden="true">{one.holds ? "✓" : "✗"}</span> {one.words} <span class="conv-number">({one.number} here)</span>
            </li>
          ))}
        </ul>
      </div>
    </Panel>
  );
}

const SETTLED = 400; // ms

/** The value once it has not changed for a while; null before. */
function useSettled<Value extends object>(value: Value): Value | null {
  const key = JSON.stringify(value);
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSettled(key), SETTLED);
    return () => clearTimeout(timer);
  }, [key]);
  return settled === key ? value : null;
}
