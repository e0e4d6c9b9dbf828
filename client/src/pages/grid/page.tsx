// A 2-D RNN on an image: the wavefront of its steps, what a pixel sees, what it costs.
import { useAnswer } from "../../core/ask";
import { SizeSlider } from "../../core/size-slider";
import { change, questionOf } from "../../core/state";
import { CheckPanel } from "./check";
import { DiagramPanel } from "./diagram";
import { FieldPanel } from "./field";
import { PricePanel } from "./price";
import { WavePanel } from "./wave";
import type { GridState } from "./state";
import "./style.css";

const DIRECTIONS: [number, string][] = [[1, "1: down and right"], [2, "2: and down and left"], [4, "4: from every corner"]];

export default function GridPage({ state }: { state: GridState }) {
  const question = questionOf("grid", state);
  const grid = useAnswer("grid", question);
  const props = { state, grid, question };
  return (
    <>
      <div class="sliders">
        <SizeSlider label="Image" value={state.size} min={1} max={24} onChange={(size) => change({ size })} />
        <div class="grid-choices">
          <label>
            Directions{" "}
            <select value={String(state.directions)} onChange={(event) => change({ directions: Number(event.currentTarget.value) })}>
              {DIRECTIONS.map(([value, text]) => (
                <option value={String(value)}>{text}</option>
              ))}
            </select>
          </label>
        </div>
        <div class="grid-choices">
          <label>
            Cell{" "}
            <select value={state.cell} onChange={(event) => change({ cell: event.currentTarget.value })}>
              {["rnn", "lstm", "gru"].map((name) => (
                <option value={name}>{name}</option>
              ))}
            </select>
          </label>
        </div>
      </div>
      <div class="panels">
        <WavePanel {...props} />
        <FieldPanel {...props} />
        <PricePanel state={state} />
        <CheckPanel state={state} />
        <DiagramPanel state={state} />
      </div>
    </>
  );
}
