// What a 2-D RNN costs beside a convnet.
import { useAnswer } from "../../core/ask";
import { PiecewiseFormula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { Slider } from "../../core/slider";
import { change, questionOf } from "../../core/state";
import type { GridState } from "./state";

export function PricePanel({ state }: { state: GridState }) {
  const question = questionOf("grid_price", state);
  const reading = useAnswer("grid_price", question);
  return (
    <Panel
      title="The price"
      about="Multiplies, parameters and steps one after another: of the 2-D RNN as formulas in the rows n and columns m, the channels c of a pixel and h of a state; of the convnet at this image. Products with neighbours beyond the edge are not needed, and not counted."
      panel="grid_price"
      question={question}
      reading={reading}
      wide
    >
      <div class="sliders">
        <Slider name="c" label="Channels c" value={state.c} example={3} min={1} max={1024} log onChange={(c) => change({ c: c ?? 3 })} />
        <Slider name="h" label="State h" value={state.h} example={64} min={1} max={4096} log onChange={(h) => change({ h: h ?? 64 })} />
      </div>
      <div class="scroll" tabIndex={0} role="group" aria-label="Prices">
        <table class="report-table grid-prices">
          <thead>
            <tr>
              <th scope="col">net</th>
              <th scope="col">quantity</th>
              <th scope="col" class="number">here</th>
              <th scope="col">formula</th>
            </tr>
          </thead>
          <tbody>
            {reading.answer?.prices.map((price) => (
              <tr>
                <th scope="row">{price.net}</th>
                <td>{price.quantity === "depth" ? "sequential steps" : price.quantity}</td>
                <td class="number">{price.number}</td>
                <td><PiecewiseFormula formula={price.formula} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
