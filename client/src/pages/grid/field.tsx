// What one pixel sees: in the 2-D RNN, in raster order, and in a convnet.
import { useRef } from "preact/hooks";
import { Heat, type Cell } from "../../core/heat";
import { Panel } from "../../core/panel";
import { Slider } from "../../core/slider";
import { change } from "../../core/state";
import { useWidth } from "../../core/width";
import type { GridAnswer } from "../../schema";
import { hasRoom, LETTER, type GridProps } from "./wave";

export function FieldPanel({ state, grid, question }: GridProps) {
  const found = grid.answer;
  return (
    <Panel
      title="What a pixel sees"
      about="The receptive field of one pixel. In a 2-D RNN states flow along the arrows: a pixel sees the rectangle between it and the corner where the wave began. A causal model in raster order sees every pixel before it, row by row. A convnet sees a square that grows with every layer, in all directions. Click a pixel, or move it with the arrow keys."
      panel="grid"
      question={question}
      reading={grid}
      wide
    >
      {found && <Fields found={found} asked={state.pixel} layers={state.layers} />}
      <div class="sliders">
        <Slider name="layers" label="Convnet layers" value={state.layers} example={3} min={1} max={12} onChange={(layers) => change({ layers: Number(layers ?? 3) })} />
        <Slider name="kernel" label="Its kernel" value={state.kernel} example={3} min={1} max={9} onChange={(kernel) => change({ kernel: Number(kernel ?? 3) })} />
      </div>
      <dl class="facts">
        <div>
          <dt>receptive field</dt>
          <dd>{found?.words}</dd>
        </div>
      </dl>
    </Panel>
  );
}

function Fields({ found, asked, layers }: { found: GridAnswer; asked: string; layers: number }) {
  const total = found.size[0] * found.size[1];
  const last = found.size.map((size) => size - 1) as Cell;
  const move = (cell: Cell) => change({ pixel: cell.map((place, axis) => Math.min(last[axis]!, Math.max(0, place))).join(",") });
  const step = (by: Cell) => {
    const [row = found.pixel[0], col = found.pixel[1]] = asked.match(/\d+/g)?.map(Number) ?? []; // it may be ahead of the answer
    move([Math.min(row, last[0]) + by[0], Math.min(col, last[1]) + by[1]]);
  };
  const shared = { pixel: found.pixel, onPick: move, onStep: step };
  const nearness = found.convnet.map((row) => row.map((layer) => (layer < 0 ? 0 : layer === 0 ? 1 : 0.85 - (0.55 * (layer - 1)) / Math.max(1, layers - 1))));
  return (
    <div class="grid-fields">
      <Field name="2-D RNN" map={found.field} seen={`${found.seen[0]} of ${total}`} {...shared} />
      <Field name="raster order, causal" map={found.raster} seen={`${found.seen[1]} of ${total}`} {...shared} />
      <Field name={`convnet, ${layers} ${layers === 1 ? "layer" : "layers"}`} map={nearness} seen={`${found.seen[2]} of ${total}`} labels={found.convnet} {...shared} />
    </div>
  );
}

interface FieldProps {
  name: string;
  map: number[][];
  seen: string;
  labels?: number[][]; // the layer from which on a pixel is seen
  pixel: [number, number];
  onPick: (cell: Cell) => void;
  onStep: (by: Cell) => void;
}

function Field({ name, map, seen, labels, pixel, onPick, onStep }: FieldProps) {
  const describe = ([row, col]: Cell) => {
    const layer = labels?.[row]?.[col] ?? 0;
    const from = layer > 0 ? `, from layer ${layer} on` : "";
    return row === pixel[0] && col === pixel[1] ? `(${row}, ${col}), the pixel itself` : `(${row}, ${col}) is ${map[row]![col]! > 0 ? `seen${from}` : "not seen"}`;
  };
  const place = useRef<HTMLElement>(null);
  const numbered = hasRoom(useWidth(place) / map[0]!.length);
  return (
    <figure data-picture ref={place}>
      <figcaption>
        {name}: <strong>{seen}</strong>
      </figcaption>
      <Heat values={map} range={[0, 1.25]} label={`Pixel, and what it sees: ${name}, ${seen} pixels`} describe={describe} at={pixel} onPick={onPick} onStep={onStep}>
        {lines(map.length, map[0]!.length)}
        {numbered && labels?.flatMap((row, y) => row.map((layer, x) => layer > 0 && <text class="grid-layer" x={x + 0.5} y={y + 0.55} font-size={LETTER}>{layer}</text>))}
        <rect class="grid-pixel" x={pixel[1]} y={pixel[0]} width="1" height="1" vector-effect="non-scaling-stroke" />
      </Heat>
    </figure>
  );
}

function lines(rows: number, cols: number) {
  const across = Array.from({ length: rows - 1 }, (_, row) => `M0 ${row + 1}H${cols}`);
  const down = Array.from({ length: cols - 1 }, (_, col) => `M${col + 1} 0V${rows}`);
  return <path class="grid-line" d={[...across, ...down].join("") || "M0 0"} vector-effect="non-scaling-stroke" />;
}
