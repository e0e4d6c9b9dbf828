// Soft heads in place of the convolution: an image, both outputs, and their difference.
import { useAnswer } from "../../core/ask";
import { Heat, HeatScale, type Cell, type Tone } from "../../core/heat";
import { Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import type { ErrorAnswer } from "../../schema";
import type { ConvState } from "./state";

const FILTERS = ["edges", "average", "sharpen", "random"];

export function OutputsPanel({ state }: { state: ConvState }) {
  const question = questionOf("conv_error", state);
  const reading = useAnswer("conv_error", question);
  const found = reading.answer;
  return (
    <Panel
      title="Heads in place of the convolution"
      about="The same image through torch's convolution and through the attention layer that lt.nn.from_conv makes of it, in float64. As α grows the difference goes to zero; hard heads, each with a single key, have none but rounding. The bound is worked out from what each head leaks, before the layer runs."
      panel="conv_error"
      question={question}
      reading={reading}
    >
      <label class="conv-choices">
        Filter{" "}
        <select value={state.filter} onChange={(event) => change({ filter: event.currentTarget.value })}>
          {FILTERS.map((name) => (
            <option value={name}>{name}</option>
          ))}
        </select>
      </label>
      {found && <Maps found={found} />}
    </Panel>
  );
}

function Maps({ found }: { found: ErrorAnswer }) {
  const both = [...found.wanted.flat(), ...found.soft.flat()];
  const far = Math.max(...both.map(Math.abs));
  const signed = Math.min(...both) < 0;
  const range: [number, number] = signed ? [-far, far] : [0, far];
  const tone: Tone = signed ? "signed" : "amount";
  const off = Math.max(...found.difference.flat().map(Math.abs));
  return (
    <>
      <div class="conv-outputs">
        <Map name="image" values={found.image} range={[0, 1]} tone="grey" />
        <Map name="convolution" values={found.wanted} range={range} tone={tone} />
        <Map name="heads" values={found.soft} range={range} tone={tone} />
        <Map name="difference" values={found.difference} range={[-off, off]} tone="signed" />
      </div>
      <HeatScale range={range} tone={tone} texts={[text(range[0]), `${text(far)}; the difference: ±${found.error}`]} />
      <dl class="facts">
        <div>
          <dt>soft heads</dt>
          <dd>
            differ by up to <strong>{found.error}</strong>; the bound is {found.bound}
          </dd>
        </div>
        <div>
          <dt>hard heads</dt>
          <dd>differ by {found.hard_error === "0" ? "nothing at all" : `${found.hard_error}: rounding`}</dd>
        </div>
      </dl>
    </>
  );
}

function Map({ name, values, range, tone }: { name: string; values: number[][]; range: [number, number]; tone: Tone }) {
  const describe = ([row, col]: Cell) => `(${row}, ${col}): ${text(values[row]![col]!)}`;
  return (
    <figure data-picture>
      <figcaption>{name}</figcaption>
      <Heat values={values} range={range} tone={tone} label={`The ${name}, ${values.length} × ${values[0]?.length ?? 0} pixels`} describe={describe} />
    </figure>
  );
}

const text = (value: number) => Number(value.toPrecision(3)).toString().replace("-", "−");
