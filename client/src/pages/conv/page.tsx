// Convolution as attention: a head for each tap of the kernel, sharper as α grows.
import { SizeSlider } from "../../core/size-slider";
import { change } from "../../core/state";
import { AlphaSlider } from "../../core/alpha-slider";
import { HeadsPanel } from "./heads";
import { LeakPanel } from "./leak";
import { OutputsPanel } from "./outputs";
import { PricePanel } from "./price";
import type { ConvState } from "./state";
import "./style.css";

const PADDINGS: [string, string][] = [["", "half the kernel"], ["valid", "none"], ["1", "1"], ["2", "2"], ["3", "3"], ["4", "4"]];

export default function ConvPage({ state }: { state: ConvState }) {
  const known = PADDINGS.some(([value]) => value === state.padding);
  return (
    <>
      <div class="sliders">
        <SizeSlider label="Kernel" value={state.kernel} max={7} onChange={(kernel) => change({ kernel, head: -1 })} />
        <SizeSlider label="Dilation" value={state.dilation} max={4} onChange={(dilation) => change({ dilation })} />
        <SizeSlider label="Stride" value={state.stride} max={4} onChange={(stride) => change({ stride })} />
        <SizeSlider label="Image" value={state.size} min={3} max={16} onChange={(size) => change({ size })} />
        <AlphaSlider alpha={state.alpha} onChange={(alpha) => change({ alpha })} />
        <div class="conv-choices">
          <label>
            Padding{" "}
            <select value={state.padding} onChange={(event) => change({ padding: event.currentTarget.value })}>
              {!known && <option value={state.padding}>{state.padding}</option>}
              {PADDINGS.map(([value, text]) => (
                <option value={value}>{text}</option>
              ))}
            </select>
          </label>
          <label>
            <span class="hidden">Padding with</span>
            <select value={state.padding_mode} onChange={(event) => change({ padding_mode: event.currentTarget.value })}>
              <option value="zeros">zeros</option>
              <option value="replicate">replicate</option>
            </select>
          </label>
        </div>
      </div>
      <div class="panels">
        <HeadsPanel state={state} />
        <LeakPanel state={state} />
        <OutputsPanel state={state} />
        <PricePanel state={state} />
      </div>
    </>
  );
}
