// The receptive field: what a query sees through several layers.
import { useRef } from "preact/hooks";
import { current, together, useAnswer } from "../../core/ask";
import { PiecewiseFormula } from "../../core/formula";
import { Heat, type Cell } from "../../core/heat";
import { Panel } from "../../core/panel";
import { Slider } from "../../core/slider";
import { change, questionOf } from "../../core/state";
import { useWidth } from "../../core/width";
import type { FirstLayersAnswer } from "../../schema";
import "./field.css";
import { Spans } from "./spans";
import { START, type RuleProps } from "./state";

const LETTER = 0.45; // of a cell, the size of the number in it
const READABLE = 11; // px

export function FieldPanel({ state, read }: RuleProps) {
  const question = read.problem ? undefined : questionOf("field", state);
  const field = useAnswer("field", question);
  const mapped = read.problem ? undefined : questionOf("first_layers", state);
  const first = useAnswer("first_layers", mapped);
  const found = field.answer;
  return (
    <Panel
      title="Receptive field"
      about="What a query sees through several layers. A layer passes on what its keys hold, of all its heads, and the residual connection keeps what the position held itself: so L layers connect a query to every key that a path of at most L attended pairs leads to. The map shows the layer that first connects a query (a row) with a key (a column); of an image, one pixel with all others."
      panel="field"
      question={question}
      reading={field}
      controls={
        <Slider name="layers" label="layers" value={state.layers} example={START.layers} min={1} max={64} least={1} onChange={(layers) => change({ layers: Number(layers ?? START.layers) })} />
      }
    >
      {found && (
        <>
          <p class="field-rule">
            sees <code>{found.text}</code>
          </p>
          <h3>keys a query sees</h3>
          <PiecewiseFormula formula={found.keys} />
          <dl class="rule-facts-list">
            <Spans spans={found.spans} />
            <dt>layers until it grows no more</dt>
            <dd>
              {found.until ? <PiecewiseFormula formula={found.until} /> : <span class="rule-note">{found.unknown}</span>}
              {found.until && <p class={found.all_reached ? "field-all" : "field-apart"}>{found.sees}</p>}
            </dd>
          </dl>
        </>
      )}
      {first.answer && !first.problem && together(field, question, first) && (
        <div class={current(first, mapped) ? "" : "stale"}>
          {first.answer.no_map ? <p class="rule-note">No map: {first.answer.no_map}</p> : <FieldMap map={first.answer} layers={state.layers} />}
        </div>
      )}
    </Panel>
  );
}

/** The layer that first connects two positions, those within reach of the layers darker. */
function FieldMap({ map, layers }: { map: FirstLayersAnswer; layers: number }) {
  const place = useRef<HTMLElement>(null);
  const cells = map.layers;
  const width = cells[0]?.length ?? 0;
  const numbered = LETTER * (useWidth(place) / Math.max(1, width)) >= READABLE;
  const [row, col] = map.pixel;
  const isImage = row !== undefined && col !== undefined;
  const all = cells.flat();
  const seen = all.filter((layer) => layer >= 0 && layer <= layers).length;
  const later = all.filter((layer) => layer > layers).length;
  const words = `${seen.toLocaleString("en")} of the ${all.length.toLocaleString("en")} ${isImage ? "pixels" : "pairs"} of this map are connected by ${layers} ${layers === 1 ? "layer" : "layers"}, ${later.toLocaleString("en")} more by further layers`;
  const describe = ([y, x]: Cell) => (isImage ? pixelText(map, y, x) : pairText(map, y, x));
  const move = (to: Cell) => change({ pixel: [map.rows[to[0]]!, map.columns[to[1]]!] });
  const at: Cell | undefined = isImage ? [nearest(map.rows, row), nearest(map.columns, col)] : undefined;
  const step = (by: Cell) => at && map.rows[at[0] + by[0]] !== undefined && map.columns[at[1] + by[1]] !== undefined && move([at[0] + by[0], at[1] + by[1]]);
  if (!width) return null;
  return (
    <figure class="field-map" data-picture ref={place}>
      <figcaption>
        {isImage ? `The layer from which on (${row}, ${col}) sees a pixel` : "The layer from which on a query (row) sees a key (column)"}, at {map.at}
        {map.rows.length < total(map.rows) && `; ${map.rows.length} of all positions, evenly spread`}
      </figcaption>
      <Heat values={cells.map((line) => line.map((layer) => shade(layer, layers)))} range={[0, 1.6]} label={`First layers: ${words}`} describe={describe} at={at} onPick={isImage ? move : undefined} onStep={isImage ? (by) => void step(by) : undefined}>
        {numbered && cells.flatMap((line, y) => line.map((layer, x) => layer > 0 && <text class={layer <= layers ? "field-number" : "field-number later"} x={x + 0.5} y={y + 0.55} font-size={LETTER}>{layer}</text>))}
        {at && <rect class="field-pixel" x={at[1]} y={at[0]} width="1" height="1" vector-effect="non-scaling-stroke" />}
      </Heat>
      <p class="rule-note">{words}; the stronger the colour, the earlier.</p>
    </figure>
  );
}

/** How many positions there are, the last being among those shown. */
const total = (places: number[]) => (places[places.length - 1] ?? -1) + 1;

const nearest = (places: number[], to: number) => places.reduce((best, place, index) => (Math.abs(place - to) < Math.abs(places[best]! - to) ? index : best), 0);

/** Dark within the layers, the first the darkest; pale where more layers are needed. */
const shade = (layer: number, layers: number) => (layer < 0 ? 0 : layer > layers ? 0.1 : layer === 0 ? 1 : 0.85 - (0.5 * (layer - 1)) / Math.max(1, layers - 1));

function pixelText(map: FirstLayersAnswer, y: number, x: number): string {
  const layer = map.layers[y]![x]!;
  const other = `(${map.rows[y]}, ${map.columns[x]})`;
  return layer === 0 ? `${other}, the pixel itself` : layer < 0 ? `${other} is never seen` : `${other} is seen from layer ${layer} on`;
}

function pairText(map: FirstLayersAnswer, y: number, x: number): string {
  const layer = map.layers[y]![x]!;
  const [query, key] = [map.rows[y]!.toLocaleString("en"), map.columns[x]!.toLocaleString("en")];
  if (layer === 0) return `position ${query} itself`;
  if (layer < 0) return `query ${query} never sees key ${key}`;
  const path = map.rows.length === total(map.rows) ? pathOf(map.layers, y, x) : [];
  const way = path.length > 2 ? `: ${path.join(" ← ")}` : "";
  return `query ${query} sees key ${key} from layer ${layer} on${way}`;
}

/** Positions on a shortest way from a query to a key, where all positions are on the map. */
function pathOf(layers: number[][], query: number, key: number): number[] {
  const path = [query];
  for (let at = query; at !== key; path.push(at)) {
    const left = layers[at]![key]!;
    at = left === 1 ? key : layers[at]!.findIndex((first, next) => first === 1 && layers[next]![key] === left - 1);
    if (at < 0) return [];
  }
  return path;
}
