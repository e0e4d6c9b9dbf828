// What tokens cost, and how it changes with the size of the patches.
import { useAnswer } from "../../core/ask";
import { Chart } from "../../core/chart";
import { Formula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { Slider } from "../../core/slider";
import { change, questionOf } from "../../core/state";
import type { PatchesState } from "./state";

export function PricePanel({ state }: { state: PatchesState }) {
  const question = questionOf("patches_price", state);
  const reading = useAnswer("patches_price", question);
  const found = reading.answer;
  return (
    <Panel
      title="What the tokens cost"
      about="The embedding costs the same for patches of every size, since each pixel is multiplied once. Attention compares every token with every other: patches half as wide are four times as many tokens and sixteen times as many pairs."
      panel="patches_price"
      question={question}
      reading={reading}
      wide
    >
      <div class="sliders">
        <Slider name="channels" label="Channels" value={state.channels} example={3} min={1} max={256} log onChange={(channels) => change({ channels: channels ?? 3 })} />
        <Slider name="width" label="Width d" value={state.width} example={768} min={64} max={2048} step={64} onChange={(width) => change({ width: width ?? 768 })} />
        <Slider name="heads" label="Heads" value={state.heads} example={12} min={1} max={32} onChange={(heads) => change({ heads: heads ?? 12 })} />
      </div>
      {found && (
        <div class="patches-prices">
          <div>
            <div class="scroll" tabIndex={0} role="group" aria-label="Prices">
              <table class="report-table">
                <thead>
                  <tr>
                    <th scope="col" />
                    <th scope="col" class="number">parameters</th>
                    <th scope="col" class="number">multiplies</th>
                  </tr>
                </thead>
                <tbody>
                  {found.parts.map((part) => (
                    <tr>
                      <th scope="row">{part.name}</th>
                      <td class="number">{part.parameters}</td>
                      <td class="number">{part.multiplies}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <p class="patches-told">
              Multiplies of the attention layer over n tokens: <Formula latex={found.attention.latex} />
            </p>
          </div>
          <Chart
            about={`Multiplies against the size of a patch: the embedding stays the same, attention falls from ${found.sizes[0]?.texts[1] ?? ""} for single pixels`}
            x={found.sizes.map((size) => size.patch)}
            curves={[
              { name: "attention, one layer", y: found.sizes.map((size) => size.attention), texts: found.sizes.map((size) => size.texts[1]!) },
              { name: "patch embedding", y: found.sizes.map((size) => size.embedding), texts: found.sizes.map((size) => size.texts[0]!) },
            ]}
            xName="patch, pixels a side"
            yName="multiplies"
            xLog={2}
            yLog={10}
            height={260}
            marks={[{ x: found.mark.patch, y: found.mark.attention, label: `${found.mark.tokens.toLocaleString("en")} tokens` }]}
          />
        </div>
      )}
    </Panel>
  );
}
