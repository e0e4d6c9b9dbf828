// Convolution as attention: a head for each tap of the kernel, sharper as α grows.
import { definePage } from "../../core/page";
import { SizeSlider } from "../../core/size-slider";
import { change } from "../../core/state";
import { AlphaSlider } from "../../core/alpha-slider";
import { HeadsPanel } from "./heads";
import { LeakPanel } from "./leak";
import { OutputsPanel } from "./outputs";
import { PricePanel } from "./price";
import "./style.css";

export type ConvState = {
  kernel: string;
  stride: string;
  dilation: string;
  padding: string;
  padding_mode: string;
  size: string;
  alpha: number;
  pixel: string;
  head: number; // the one that is shown large; -1 for all
  filter: string;
  channels: number | string;
  out_channels: number | string;
};

export const KERNEL = ["kernel", "stride", "dilation", "padding", "padding_mode", "size"] as const;
const PADDINGS: [string, string][] = [["", "half the kernel"], ["valid", "none"], ["1", "1"], ["2", "2"], ["3", "3"], ["4", "4"]];

function ConvPage({ state }: { state: ConvState }) {
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
            with{" "}
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

export const convPage = definePage<ConvState>({
  name: "conv",
  title: "Convolution",
  state: {
    kernel: "3",
    stride: "1",
    dilation: "1",
    padding: "",
    padding_mode: "zeros",
    size: "10",
    alpha: 10,
    pixel: "",
    head: -1,
    filter: "edges",
    channels: 16,
    out_channels: 32,
  },
  view: ConvPage,
});
