// The leak of heads against α, below its bound, and the α that a small leak needs.
import { useAnswer } from "../../core/ask";
import { Chart } from "../../core/chart";
import { Formulas } from "../../core/formula";
import { Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import type { ConvState } from "./state";

export function LeakPanel({ state }: { state: ConvState }) {
  const question = questionOf("conv_leak", state);
  const reading = useAnswer("conv_leak", question);
  const found = reading.answer;
  return (
    <Panel
      title="Leak"
      about="The share of a head's weight that misses its pixel, as α grows: at the pixel of this image that leaks most, at its corner, and the bound 1/cosh²(α/2), which holds on every image. The leak falls like 4 e^−α: no finite α makes it 0, and α = 40 makes it too small for float64."
      panel="conv_leak"
      question={question}
      reading={reading}
    >
      {found && (
        <>
          <p class="conv-words">
            At α = {state.alpha}: <strong>{found.leak}</strong> at the worst pixel, {found.corner} in the corner; bound {found.bound}.
          </p>
          <Chart
            about={`Leak against α on a logarithmic scale: ${found.leak} at α = ${state.alpha}, falling along a nearly straight line below the bound.`}
            x={found.alphas}
            curves={found.curves.map((curve) => ({ name: curve.name, y: curve.values }))}
            xName="α"
            yLog={10}
            height={240}
            marks={state.alpha > found.alphas.at(-1)! ? [] : [{ x: state.alpha, y: found.level, label: `α = ${state.alpha}` }]}
          />
          <div class="scroll" tabIndex={0} role="group" aria-label="α for a leak">
            <table class="report-table">
              <thead>
                <tr>
                  <th scope="col">leak at most</th>
                  <th scope="col" class="number">least α</th>
                  <th scope="col" class="number">enough: closed form</th>
                  <th scope="col"><span class="hidden">set</span></th>
                </tr>
              </thead>
              <tbody>
                {found.needed.map((one) => (
                  <tr>
                    <th scope="row">{one.error}</th>
                    <td class="number">{one.smallest}</td>
                    <td class="number">{one.sufficient}</td>
                    <td>
                      <button class="quiet" aria-label={`Set α for a leak of ${one.error}`} onClick={() => change({ alpha: one.alpha })}>set α</button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <Formulas lines={[found.latex]} />
        </>
      )}
    </Panel>
  );
}
