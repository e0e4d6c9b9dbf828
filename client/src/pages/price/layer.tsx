// One layer: its formulas, and its numbers where its letters have some.
import type { CatalogueLayer, CostAnswer } from "../../schema";
import { useAnswer } from "../../core/ask";
import { Panel } from "../../core/panel";
import { Report } from "../../core/report";
import { change, questionOf } from "../../core/state";
import { TextField } from "../../core/text-field";
import { CostCheckPanel, CostClaimPanel } from "./claim";
import { Chips, LayerInput, layerOf } from "./layer_input";
import { QuantityTable } from "./quantities";
import { Sizes } from "./sizes";
import type { ViewProps } from "./state";

const PER = { "": "All of it", score: "One score", cell: "One cell", step: "One decoding step" };

export function LayerView({ state, menus }: ViewProps) {
  const question = questionOf("cost", state);
  const cost = useAnswer("cost", question);
  const known = layerOf(state.layer, menus);
  const found = cost.answer;
  const typed = cost.problem?.field === "layer" ? cost.problem : null;
  const masked = cost.problem?.field === "rule" ? cost.problem : null;
  return (
    <>
      <LayerInput label="Layer" name="layer" text={state.layer} problem={typed} menus={menus} onInput={(layer) => change({ layer })} />
      {known && <Signature layer={known} />}
      <Chips menus={menus} label="Layers by name" onPick={(layer) => change({ layer: layer.name, rule: "", per: "" })} />
      {known?.rule && (
        <TextField name="rule" label="Attention mask, where the layer's text has none" value={state.rule} problem={masked} placeholder="causal, strided(255), k <= q and q - k <= t" onInput={(rule) => change({ rule })} />
      )}
      <Sizes letters={found?.letters ?? []} numbers={state.numbers} />
      <div class="price-row">
        <div class="price-choice" role="group" aria-label="The price of">
          {Object.entries(PER).map(([per, title]) => (
            <button aria-pressed={state.per === per} onClick={() => change({ per })}>{title}</button>
          ))}
        </div>
        <label class="price-check">
          <input type="checkbox" checked={state.backward} disabled={state.per !== ""} onChange={(event) => change({ backward: event.currentTarget.checked })} />
          Backward pass
        </label>
      </div>
      <Panel
        title={found?.title ?? "What a layer costs"}
        about="A layer is a set of points, one for every multiplication; its price is the number of points. Needed: those of attended pairs. Executed: those in whole tiles of 64 × 64. Dense: what a tool reports that ignores the attention mask. An equals sign means: as needed."
        panel="cost"
        question={question}
        reading={typed || masked ? { ...cost, problem: null } : cost}
        picture={found?.numbers.length === 3 && !state.per}
        wide
      >
        {found && <Price found={found} />}
      </Panel>
      <div class="panels price-below">
        <CostClaimPanel state={state} broken={cost.problem !== null} />
        <CostCheckPanel state={state} broken={cost.problem !== null} />
      </div>
    </>
  );
}

function Signature({ layer }: { layer: CatalogueLayer }) {
  return (
    <div class="price-signature">
      {layer.about}{" "}
      <button class="quiet" title="Use this example" onClick={() => change({ layer: layer.example })}>
        <code>{layer.example}</code>
      </button>
      <details>
        <summary>What {layer.name} takes</summary>
        <code>{layer.signature}</code>
      </details>
    </div>
  );
}

function Price({ found }: { found: CostAnswer }) {
  return (
    <>
      <QuantityTable rows={found.work} columns={found.columns} numbers={found.numbers} label="Work" />
      {found.notes.map((note) => (
        <p class="price-note">{note}</p>
      ))}
      <div class="price-sections">
        {found.memory.length > 0 && (
          <section class="price-wide">
            <h3>Memory and dependences</h3>
            <QuantityTable rows={found.memory} columns={["formula"]} numbers={found.numbers.length ? ["number"] : []} label="Memory and dependences" />
            <dl class="facts">
              {found.facts.map(([name, words]) => (
                <div>
                  <dt>{name}</dt>
                  <dd>{words}</dd>
                </div>
              ))}
            </dl>
          </section>
        )}
        {found.times.length > 0 && (
          <section>
            <h3>Least time</h3>
            <table class="report-table">
              <tbody>
                {found.times.map((time) => (
                  <tr>
                    <th scope="row">{time.machine}</th>
                    <td class="number">{time.time}</td>
                    <td>bound by {time.binds}</td>
                    <td class="price-note">{time.about}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            <p class="price-note">
              By arithmetic or memory, whichever takes longer, with 2-byte numbers and what is needed. No machine is faster; a real run takes longer.
            </p>
          </section>
        )}
        {found.tables.map((table) => (
          <section>
            <Report report={table} title />
          </section>
        ))}
      </div>
    </>
  );
}
