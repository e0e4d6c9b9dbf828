// The heads of one query: their centres over the image, and the weights of each as a map in the kernel's own order.
import { useMemo } from "preact/hooks";
import { useAnswer } from "../../core/ask";
import { Formulas } from "../../core/formula";
import { Heat, HeatScale, type Cell } from "../../core/heat";
import { Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import type { ConvAnswer } from "../../schema";
import type { ConvState } from "./state";

export function HeadsPanel({ state }: { state: ConvState }) {
  const question = questionOf("conv", state);
  const reading = useAnswer("conv", question);
  const found = reading.answer;
  return (
    <Panel
      title={found?.title ?? "A convolution as heads"}
      about="A convolution is attention: every tap of the kernel is one head, whose weights are a Gaussian around the pixel that the tap multiplies. Circles are the heads' centres (half of a Gaussian lies inside), the outlined square is the query: click, drag or use the arrow keys to move it. The smaller the α, the more weight leaks to other pixels."
      panel="conv"
      question={question}
      reading={reading}
      picture
      wide
    >
      {found && <Heads found={found} asked={state.pixel} chosen={found.heads[state.head] ? state.head : -1} />}
    </Panel>
  );
}

function Heads({ found, asked, chosen }: { found: ConvAnswer; asked: string; chosen: number }) {
  const { heads, keys, origin, outputs, query, stride } = found;
  const [top, left] = [-origin[0], -origin[1]];
  const strongest = useMemo(() => Math.max(...heads.flatMap((head) => head.weights.flat())), [found]);
  const shown = useMemo(() => (chosen >= 0 ? heads[chosen]!.weights : greatest(heads.map((head) => head.weights))), [found, chosen]);
  const range: [number, number] = [0, strongest];
  const columns = new Set(heads.map((head) => head.shift[1])).size;
  const here: Cell = [found.pixel[0] + top, found.pixel[1] + left];

  const ask = (to: Cell) => change({ pixel: to.map((place, axis) => Math.min(outputs[axis]! - 1, Math.max(0, place))).join(",") });
  const choose = (cell: Cell) => ask([Math.round((cell[0] - top) / stride[0]), Math.round((cell[1] - left) / stride[1])]);
  const step = (by: Cell) => {
    const [row = query[0], col = query[1]] = asked.match(/\d+/g)?.map(Number) ?? []; // it may be ahead of the answer
    ask([Math.min(row, outputs[0] - 1) + by[0], Math.min(col, outputs[1] - 1) + by[1]]);
  };
  const describe = ([row, col]: Cell) => {
    const pixel = [row - top, col - left] as Cell;
    const inside = pixel.every((place, axis) => place >= 0 && place < found.size[axis]!);
    const takers = heads.flatMap((head, number) => (same(head.tap, pixel) ? [number] : []));
    const weight = chosen >= 0 ? `head ${chosen} gives it ${share(shown[row]![col]!)}` : `at most ${share(shown[row]![col]!)} of a head's weight`;
    return `${inside ? "pixel" : "padding"} ${place(pixel)}${same(pixel, found.pixel) ? ", the query" : ""}: ${weight}${takers.length ? `; the centre of head ${takers.join(", ")}` : ""}`;
  };
  const whole = chosen < 0 ? "all heads" : `head ${chosen}`;
  return (
    <>
      <p class="conv-words">{found.words}; output {outputs.join(" × ")}</p>
      <div class="conv-heads">
        <div class="conv-image">
          <Heat values={shown} range={range} label={`Query pixel, and the weights of ${whole} around it`} describe={describe} at={here} onPick={choose} onStep={step}>
            <Padding found={found} />
            {heads.map((head, number) => (
              <g key={number} class={chosen < 0 || chosen === number ? "conv-head" : "conv-head faint"} style={{ transform: `translate(${head.tap[1] + left + 0.5}px, ${head.tap[0] + top + 0.5}px)` }}>
                <circle r={Math.min(found.radius, 4)} vector-effect="non-scaling-stroke" />
                <text y="0.03" font-size={0.5}>{number}</text>
              </g>
            ))}
            <rect class="conv-query" x={here[1]} y={here[0]} width="1" height="1" vector-effect="non-scaling-stroke" />
          </Heat>
          <HeatScale range={range} texts={["weight 0", share(strongest)]} />
        </div>
        <div class="conv-kernel">
          <div class="conv-taps" data-picture role="group" aria-label="The weights of each head" style={{ gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` }}>
            {heads.map((head, number) => (
              <button aria-pressed={chosen === number} title={`Head ${number}: Δ = ${place(head.shift)}, leaks ${head.leak}`} onClick={() => change({ head: chosen === number ? -1 : number })}>
                <Heat values={head.weights} range={range} label={`Head ${number}, leaks ${head.leak}`} />
                <span class={heads.length > 25 ? "hidden" : ""}>
                  {number}: {head.leak}
                </span>
              </button>
            ))}
          </div>
          <p class="conv-words">Each map is a head, in the places of the kernel's taps, and the weight it leaks. {chosen >= 0 && <button class="quiet" onClick={() => change({ head: -1 })}>Show all heads</button>}</p>
        </div>
      </div>
      <dl class="facts">
        <div>
          <dt>query</dt>
          <dd>{place(query)} of the output, around pixel {place(found.pixel)}</dd>
        </div>
        <div>
          <dt>leak</dt>
          <dd>
            up to <strong>{found.leak}</strong> of a head's weight misses its pixel here; 1/cosh²(α/2) = {found.bound} bounds it everywhere
          </dd>
        </div>
      </dl>
      <Formulas lines={[found.latex]} />
      <p class="conv-words" hidden={keys[0] === found.size[0]}>Hatched: zeros of the padding, which are keys too.</p>
    </>
  );
}

/** The padding hatched, and the edge of the image. */
function Padding({ found }: { found: ConvAnswer }) {
  const [rows, cols] = found.keys;
  const [y, x] = [-found.origin[0], -found.origin[1]];
  const [height, width] = found.size;
  if (rows === height && cols === width) return null;
  return (
    <>
      <pattern id="conv-hatch" width="0.5" height="0.5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <line x1="0" x2="0" y1="0" y2="0.5" class="conv-hatch" />
      </pattern>
      <path fill="url(#conv-hatch)" fill-rule="evenodd" d={`M0 0H${cols}V${rows}H0Z M${x} ${y}H${x + width}V${y + height}H${x}Z`} />
      <rect class="conv-edge" x={x} y={y} width={width} height={height} vector-effect="non-scaling-stroke" />
    </>
  );
}

function greatest(maps: number[][][]): number[][] {
  return maps[0]!.map((row, y) => row.map((_, x) => Math.max(...maps.map((map) => map[y]![x]!))));
}

const same = (one: number[], other: number[]) => one[0] === other[0] && one[1] === other[1];
const place = (pixel: number[]) => `(${pixel.join(", ").replaceAll("-", "−")})`;

/** A weight of six places: 0 and 1 are rounded, and one next to 1 keeps its places. */
const share = (weight: number) =>
  weight === 0 ? "under 0.000001" : weight === 1 ? "over 0.999999" : (weight > 0.999 ? weight : Number(weight.toPrecision(3))).toString();
