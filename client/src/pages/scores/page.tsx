// What the score of a positional encoding is made of: four terms, their sum, and its softmax around one query.
import type { ScoresAnswer } from "../../schema";
import { AlphaSlider } from "../../core/alpha-slider";
import { useAnswer } from "../../core/ask";
import { Heat, HeatScale, type Cell } from "../../core/heat";
import { Panel } from "../../core/panel";
import { Scripts } from "../../core/scripts";
import { SizeSlider } from "../../core/size-slider";
import { Slider } from "../../core/slider";
import { change, questionOf } from "../../core/state";
import type { ScoresState } from "./state";
import "./style.css";

const ENCODINGS: [string, string][] = [["quadratic", "quadratic, a Gaussian"], ["relative", "relative, sines of shifts"], ["absolute", "absolute, a learned table"], ["sinusoidal", "absolute, sines of places"]];
const FAR = 8; // below e^-8 of the query's own pixel nothing is seen

export default function ScoresPage({ state }: { state: ScoresState }) {
  const question = questionOf("scores", state);
  const reading = useAnswer("scores", question);
  return (
    <>
      <div class="sliders">
        <label class="scores-choice">
          Encoding{" "}
          <select value={state.encoding} onChange={(event) => change({ encoding: event.currentTarget.value })}>
            {ENCODINGS.map(([value, text]) => (
              <option value={value}>{text}</option>
            ))}
          </select>
        </label>
        <SizeSlider label="Image" value={state.size} min={3} max={16} onChange={(size) => change({ size })} />
        {state.encoding === "quadratic" ? (
          <>
            <AlphaSlider alpha={state.alpha} onChange={(alpha) => change({ alpha })} />
            <Slider name="dy" label="Centre Δ, down" value={state.dy} example={1} min={-6} max={6} step={0.5} onChange={(dy) => change({ dy: Number(dy ?? 0) })} />
            <Slider name="dx" label="Centre Δ, right" value={state.dx} example={2} min={-6} max={6} step={0.5} onChange={(dx) => change({ dx: Number(dx ?? 0) })} />
          </>
        ) : (
          <>
            <Slider name="channels" label="Channels" value={state.channels} example={16} min={4} max={64} step={4} onChange={(channels) => change({ channels: Number(channels ?? 16) })} />
            <Slider name="seed" label="Random seed" value={state.seed} example={0} min={0} max={20} onChange={(seed) => change({ seed: Number(seed ?? 0) })} />
          </>
        )}
      </div>
      <div class="panels">
        <Panel
          title="The score of one query"
          about="A score between a query and a key on an image has four terms: content meets content, content meets place, and each alone. Move the query, by a click, a drag or the arrow keys: terms of shifts move along with it unchanged, terms of absolute places do not. With the quadratic encoding one term is left, −α‖δ − Δ‖² and a constant: its softmax is a Gaussian, the head of a convolution."
          panel="scores"
          question={question}
          reading={reading}
          picture
          wide
        >
          {reading.answer && <Maps found={reading.answer} asked={state.pixel} />}
        </Panel>
      </div>
    </>
  );
}

function Maps({ found, asked }: { found: ScoresAnswer; asked: string }) {
  const scores = [...found.terms.map((term) => term.values), found.sum];
  const [low, high] = [Math.min(...scores.flat(2)), Math.max(...scores.flat(2))];
  const far = low < -FAR && high < FAR ? FAR : Math.max(Math.abs(low), Math.abs(high), 1e-9);
  const most = Math.max(...found.weights.flat());
  const last: Cell = [found.sum.length - 1, found.sum[0]!.length - 1];
  const move = (cell: Cell) => change({ pixel: cell.map((place, axis) => Math.min(last[axis]!, Math.max(0, place))).join(",") });
  const step = (by: Cell) => {
    const [row = found.pixel[0], col = found.pixel[1]] = asked.match(/\d+/g)?.map(Number) ?? []; // it may be ahead of the answer
    move([Math.min(row, last[0]) + by[0], Math.min(col, last[1]) + by[1]]);
  };
  const isZero = (values: number[][]) => values.every((row) => row.every((value) => value === 0));
  const none = found.terms.filter((term) => isZero(term.values));
  const maps = [
    ...found.terms.filter((term) => !isZero(term.values)).map((term) => ({ name: term.name, formula: term.formula, values: term.values })),
    { name: "sum", formula: "the score", values: found.sum },
    { name: "weights", formula: "softmax of the score", values: found.weights },
  ];
  return (
    <>
      <p class="scores-made"><Scripts text={found.made} /></p>
      {none.length > 0 && <p class="scores-none">0 for every key: {none.map((term) => term.name).join(", ")}</p>}
      <div class="scores-maps">
        {maps.map(({ name, formula, values }) => (
          <figure data-picture>
            <figcaption>
              {name}
              <span class="scores-formula"><Scripts text={formula} /></span>
            </figcaption>
            <Heat
              values={values}
              range={name === "weights" ? [0, most] : [-far, far]}
              tone={name === "weights" ? "amount" : "signed"}
              label={`Query pixel, and ${name} of every key`}
              describe={([row, col]) => `${row === found.pixel[0] && col === found.pixel[1] ? "the query " : ""}(${row}, ${col}): ${text(values[row]![col]!)}`}
              at={found.pixel}
              onPick={move}
              onStep={step}
            >
              <rect class="scores-query" x={found.pixel[1]} y={found.pixel[0]} width="1" height="1" vector-effect="non-scaling-stroke" />
            </Heat>
          </figure>
        ))}
      </div>
      <div class="scores-scales">
        <HeatScale range={[-far, far]} tone="signed" texts={[`score ${text(-far)}${low < -far ? " or less" : ""}`, text(far)]} />
        <HeatScale range={[0, most]} texts={["weight 0", text(most)]} />
      </div>
      <dl class="facts">
        {found.facts.map(([name, words]) => (
          <div>
            <dt><Scripts text={name} /></dt>
            <dd><Scripts text={words} /></dd>
          </div>
        ))}
      </dl>
    </>
  );
}

const text = (value: number) => Number(value.toPrecision(3)).toString().replace("-", "−");
