// Several layers as one size grows: curves, and where they cross.
import type { CompareAnswer, LayersAnswer } from "../../schema";
import { useAnswer } from "../../core/ask";
import { Chart } from "../../core/chart";
import { PiecewiseFormula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { textOf, WordsView } from "../../core/words";
import { change, questionOf } from "../../core/state";
import { Chips, LayerInput } from "./layer_input";
import { Sizes } from "./sizes";
import type { PriceState, ViewProps } from "./state";

const MOST = 8;

export function CompareView({ state, menus }: ViewProps) {
  const question = questionOf("compare", state);
  const reading = useAnswer("compare", question);
  const found = reading.answer;
  const set = (place: number, text: string) => change({ layers: state.layers.map((old, index) => (index === place ? text : old)) });
  return (
    <>
      <div class="price-layers">
        {state.layers.map((text, place) => (
          <LayerInput label={`Layer ${place + 1}`} name="layers" text={text} problem={reading.problem?.text === text ? reading.problem : null} menus={menus} onInput={(typed) => set(place, typed)}>
            <span class="grow" />
            <button class="quiet" aria-label={`Remove layer ${place + 1}`} onClick={() => change({ layers: state.layers.filter((_, index) => index !== place) })}>
              remove
            </button>
          </LayerInput>
        ))}
      </div>
      {state.layers.length < MOST && <Chips menus={menus} label="Add a layer" onPick={(layer) => change({ layers: [...state.layers, layer.name] })} />}
      <Choices state={state} menus={menus} sizes={found?.over ?? [state.over]} />
      <Sizes letters={found?.letters ?? []} numbers={state.numbers} />
      <Panel
        title={found ? found.title[0]!.toUpperCase() + found.title.slice(1) : "Layers as one size grows"}
        about="One quantity of each layer as a size grows, on logarithmic axes. A ring marks where two curves cross; below, the crossing in closed form, for all numbers at once. A layer named without its sizes has as many positions as the size that grows, width d and one head."
        panel="compare"
        question={question}
        reading={reading}
        picture
        wide
      >
        {found && <Curves found={found} hidden={state.hidden} over={state.over} />}
      </Panel>
    </>
  );
}

function Choices({ state, menus, sizes }: { state: PriceState; menus: LayersAnswer | null; sizes: string[] }) {
  const [low = "", high = ""] = state.span;
  const span = (ends: (string | number)[]) => change({ span: ends.every((end) => String(end).trim() !== "") ? ends : [] });
  const set = (place: number) => (event: { currentTarget: HTMLInputElement }) => {
    const text = event.currentTarget.value.trim();
    const other = place ? low || 1 : high || 2 ** 20;
    span(text === "" ? [] : place ? [other, text] : [text, other]);
  };
  return (
    <div class="price-row">
      <label>
        Compare{" "}
        <select value={state.quantity} onChange={(event) => change({ quantity: event.currentTarget.value })}>
          {menus?.quantities.map((quantity) => (
            <option value={quantity.name}>{quantity.label}</option>
          ))}
        </select>
      </label>
      <label>
        as{" "}
        <select value={state.over} onChange={(event) => change({ over: event.currentTarget.value })}>
          {[...new Set([state.over, ...sizes])].map((name) => (
            <option value={name}>{name}</option>
          ))}
        </select>{" "}
        grows
      </label>
      <label>
        from <input class="price-end" value={low} placeholder="auto" inputMode="numeric" onChange={set(0)} />
      </label>
      <label>
        to <input class="price-end" value={high} placeholder="auto" inputMode="numeric" onChange={set(1)} />
      </label>
      <div class="price-choice" role="group" aria-label="Which pairs">
        {["needed", "dense"].map((column) => (
          <button aria-pressed={state.column === column} onClick={() => change({ column })}>{column}</button>
        ))}
      </div>
      <label class="price-check">
        <input type="checkbox" checked={state.equal} onChange={(event) => change({ equal: event.currentTarget.checked })} />
        Equal parameters
      </label>
    </div>
  );
}

function Curves({ found, hidden, over }: { found: CompareAnswer; hidden: string[]; over: string }) {
  const shown = found.crossings.filter((crossing) => !hidden.includes(crossing.first) && !hidden.includes(crossing.second));
  return (
    <>
      {found.warning && <p class="price-warning">Mind: {found.warning}.</p>}
      {found.note && <p class="price-note">{found.note}</p>}
      {found.widths.map((width) => (
        <p class="price-note">{width}</p>
      ))}
      <Chart
        about={`${found.title}, on logarithmic axes: ${found.layers.map((layer) => layer.label).join(", ")}. ${found.sentences.map(textOf).join(". ")}`}
        x={found.sizes}
        curves={found.layers.map((layer) => ({ name: layer.label, y: layer.values, texts: layer.texts }))}
        xName={over}
        yName={found.label}
        xLog={2}
        yLog={10}
        marks={shown.map((crossing) => ({ x: crossing.x, y: crossing.y, label: crossing.text }))}
        height={380}
        hidden={hidden}
        onHidden={(names) => change({ hidden: names })}
      />
      <div class="price-sections">
        <section>
          <h3>Where they cross</h3>
          <ul class="price-crossings">
            {found.sentences.map((sentence) => (
              <li class={textOf(sentence).startsWith("  ") ? "price-at" : ""}><WordsView words={sentence} /></li>
            ))}
          </ul>
        </section>
        <section>
          <h3>Formulas</h3>
          <div class="scroll" tabIndex={0} role="group" aria-label="Formulas">
            <table class="report-table price-table">
              <tbody>
                {found.layers.map((layer) => (
                  <tr>
                    <th scope="row">
                      {layer.label}
                      {layer.meaning && <code>{layer.meaning}</code>}
                    </th>
                    <td>
                      <PiecewiseFormula formula={layer.formula} />
                      <span class="price-note"><WordsView words={layer.order} /></span>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      </div>
    </>
  );
}
