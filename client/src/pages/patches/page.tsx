// An image in patches: each a token, in the order of reading.
import type { PatchesAnswer } from "../../schema";
import { useAnswer } from "../../core/ask";
import { Formula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { SizeSlider } from "../../core/size-slider";
import { change, questionOf } from "../../core/state";
import { PatchImage } from "./image";
import { PricePanel } from "./price";
import { OnePatch, Strip } from "./tokens";
import type { PatchesState } from "./state";
import "./style.css";

const PADDINGS: [string, string][] = [["error", "refused"], ["crop", "left out"], ["zeros", "filled up with zeros"]];

export default function PatchesPage({ state }: { state: PatchesState }) {
  const question = questionOf("patches", state);
  const reading = useAnswer("patches", question);
  return (
    <>
      <div class="sliders">
        <SizeSlider label="Image" value={state.image} min={8} max={512} onChange={(image) => change({ image })} />
        <SizeSlider label="Patch" value={state.patch} max={64} onChange={(patch) => change({ patch })} />
        <div class="patches-stride">
          <SizeSlider label="Stride" value={state.stride || state.patch} max={64} onChange={(stride) => change({ stride })} />
          <button class="quiet" disabled={!state.stride} onClick={() => change({ stride: "" })}>as the patch</button>
        </div>
        <label class="patches-choice">
          Pixels left over{" "}
          <select value={state.padding} onChange={(event) => change({ padding: event.currentTarget.value })}>
            {PADDINGS.map(([value, text]) => (
              <option value={value}>{text}</option>
            ))}
          </select>
        </label>
      </div>
      <div class="panels">
        <Panel
          title="Patches"
          about="A vision transformer reads an image as a sequence: patches in rows, each flattened into one token. Click a patch, or move with the arrow keys, to see the token it becomes. A stride shorter than the patch makes patches overlap, a longer one skips pixels; what does not divide at the right and the bottom is left out or filled up with zeros."
          panel="patches"
          question={question}
          reading={reading}
          picture
          wide
        >
          {reading.answer && <Patches found={reading.answer} token={Math.max(0, Math.min(Math.floor(state.token), reading.answer.tokens - 1))} />}
        </Panel>
        <PricePanel state={state} />
      </div>
    </>
  );
}

function Patches({ found, token }: { found: PatchesAnswer; token: number }) {
  return (
    <>
      <div class="patches-views">
        <PatchImage found={found} token={token} onToken={(chosen) => change({ token: chosen })} />
        <div class="patches-side">
          <p class="patches-count">
            <strong>{found.tokens.toLocaleString("en")}</strong> {found.tokens === 1 ? "token" : "tokens"}
          </p>
          <dl class="facts">
            {found.facts.map(({ name, words }) => (
              <div>
                <dt>{name}</dt>
                <dd>{words}</dd>
              </div>
            ))}
          </dl>
          <div class="pieces patches-formulas">
            <span>rows</span> <Formula latex={found.rows.latex} />
            <span>columns</span> <Formula latex={found.cols.latex} />
          </div>
          <OnePatch found={found} token={token} />
        </div>
      </div>
      <Strip found={found} token={token} onToken={(chosen) => change({ token: chosen })} />
    </>
  );
}
