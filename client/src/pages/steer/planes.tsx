// The planes of the steering page: keys with the query, values with the output, and why weights are reached or not.
import type { SteerAnswer, TryQueryAnswer } from "../../schema";
import { Plane, type Coordinates, type PlanePath, type PlanePoint } from "../../core/plane";
import { overlap } from "../../core/plane_labels";
import { change } from "../../core/state";
import { moved, nameOf, placeOf, read, setKeys, toneOf } from "./keys";
import type { SteerState } from "./state";

type Pair = readonly number[];
const place = (pair: Pair): Coordinates => [pair[0]!, pair[1]!];

const NEARER = [1, 0.86, 0.72, 0.58, 0.44]; // of the way to the edge, where "k0 wins" may stand

/** Keys and query; behind them the directions in which each key wins. */
export function QueryPlane({ state, answer, steered }: { state: SteerState; answer: TryQueryAnswer | null; steered: SteerAnswer | null }) {
  const { keys, query } = read(state);
  const at = placeOf(query, answer?.query);
  const points: PlanePoint[] = keys.map((key, index) => ({
    id: nameOf(index),
    name: nameOf(index),
    label: `k${index}`,
    at: placeOf(key, answer?.keys[index]),
    tone: toneOf(index),
    onMove: (to) => setKeys(state, moved(keys, index, to)),
  }));
  if (steered?.place.length === 2)
    points.push({ id: "steered", name: "query for the wanted weights", at: place(steered.place), tone: "text", shape: "diamond", hollow: true, size: 5, fit: false });
  points.push({ id: "query", name: "query", label: "q", at, tone: "text", shape: "diamond", size: 7, onMove: (to) => change({ query: [String(to[0]), String(to[1])] }) });
  const far = 40 * Math.max(1e-9, ...points.flatMap((one) => one.at.map(Math.abs)));
  const cones = answer?.cones ?? [];
  const corners = cones.map((cone) => placeOf(keys[cone.keys[0]!], answer?.keys[cone.keys[0]!]));
  const paths: PlanePath[] = [
    ...cones.filter((cone) => cone.start.length).map((cone): PlanePath => ({ points: sector(cone.start, cone.end, far), closed: true, fill: 0.1, width: 0, tone: toneOf(cone.keys[0]!), fit: false })),
    { points: corners, closed: true, tone: "soft", width: 1.2, fit: false },
    { points: [[0, 0], at], arrow: true, tone: "text", width: 2 },
  ];
  return (
    <Plane
      label={`Keys and query. ${answer?.how ?? ""}`}
      points={points}
      paths={paths}
      onPlace={(to) => change({ query: [String(to[0]), String(to[1])] })}
    >
      {(view, taken) => {
        const [x, y] = view.pixel([0, 0]);
        return cones
          .filter((cone) => cone.start.length)
          .map((cone) => {
            const middle = (angleOf(cone.start) + endAngle(cone.start, cone.end)) / 2;
            const way: Coordinates = [Math.cos(middle), -Math.sin(middle)];
            const edge = Math.min(toEdge(x, way[0], view.width, 36), toEdge(y, way[1], view.height, 16));
            const covers = (reach: number) => taken.some((one) => overlap(one, { left: x + reach * way[0] - 30, top: y + reach * way[1] - 8, width: 60, height: 15 }));
            const reach = NEARER.map((share) => share * edge).find((far) => !covers(far)) ?? edge;
            return (
              <text class="steer-wins" x={x + reach * way[0]} y={y + reach * way[1] + 4} text-anchor="middle" fill={`var(--${toneOf(cone.keys[0]!)})`}>
                k{cone.keys.join(", k")} wins
              </text>
            );
          });
      }}
    </Plane>
  );
}

/** How far it is from a pixel to the edge of the picture, less some room. */
function toEdge(from: number, way: number, size: number, room: number): number {
  const far = way > 0 ? size - room - from : from - room;
  return Math.abs(way) < 1e-9 ? Infinity : Math.max(0, far) / Math.abs(way);
}

const angleOf = ([x, y]: Pair) => Math.atan2(y!, x!);

/** The angle of the end, at least that of the start. */
function endAngle(start: Pair, end: Pair): number {
  const [first, last] = [angleOf(start), angleOf(end)];
  return last < first ? last + 2 * Math.PI : last;
}

/** From the origin along an arc: the directions of a cone. */
function sector(start: Pair, end: Pair, far: number): Coordinates[] {
  const [first, last] = [angleOf(start), endAngle(start, end)];
  const steps = Math.max(1, Math.ceil((last - first) / 0.2));
  const arc = Array.from({ length: steps + 1 }, (_, at): Coordinates => {
    const angle = first + ((last - first) * at) / steps;
    return [far * Math.cos(angle), far * Math.sin(angle)];
  });
  return [[0, 0], ...arc];
}

/** Values, and the output among them. */
export function OutputPlane({ state, answer }: { state: SteerState; answer: TryQueryAnswer | null }) {
  const { values } = read(state);
  if (values[0]?.length !== 2) return null;
  const places = values.map((value, index) => placeOf(value, answer?.values[index]));
  const output = answer?.output.length === 2 ? place(answer.output) : null;
  const wanted = answer?.wanted_output.length === 2 ? place(answer.wanted_output) : null;
  const points: PlanePoint[] = places.map((at, index) => ({
    id: `value ${index}`,
    name: `value ${index}`,
    label: `v${index}`,
    at,
    tone: toneOf(index),
    shape: "square",
    size: 5,
    onMove: (to) => change({ values: moved(values, index, to) }),
  }));
  if (wanted) points.push({ id: "wanted output", name: "wanted output", label: "wanted", at: wanted, tone: "text", shape: "cross", size: 5 });
  if (output) points.push({ id: "output", name: "output", label: "z", at: output, tone: "text", shape: "diamond", size: 7 });
  const pulls = output ? places.map((at, index): PlanePath => ({ points: [output, at], tone: toneOf(index), width: 8 * (answer?.weights[index]?.share ?? 0) })) : [];
  const label = output ? `Values and output: z is at ${output.map((x) => x.toPrecision(3)).join(", ")}` : "Values";
  return <Plane label={label} points={points} paths={pulls} height={300} />;
}

/** Keys, the wanted mixture of them, and the two mixtures that are one point where no query gives the weights. */
export function WhyPlane({ answer }: { answer: SteerAnswer }) {
  const why = answer.certificate;
  const meeting = why && place(why.meeting);
  const side = (keys: number[]) => around(keys.map((key) => place(answer.keys[key]!)), meeting ?? [0, 0]);
  const paths: PlanePath[] = why
    ? [
        { points: side(why.right), closed: true, fill: 0.15, tone: "other", width: 2 },
        { points: side(why.left), closed: true, fill: 0.15, tone: "mark", width: 2, dashed: true },
      ]
    : [{ points: around(answer.face.map((key) => place(answer.keys[key]!)), place(answer.mixture)), closed: true, tone: "good", width: 3, fill: 0.1 }];
  const isWanted = (key: number) => answer.wanted[key] !== "0";
  const points: PlanePoint[] = answer.keys.map((at, key) => ({
    id: nameOf(key),
    name: nameOf(key),
    label: `k${key}`,
    at: place(at),
    tone: toneOf(key),
    shape: isWanted(key) ? "square" : "dot",
    faded: !isWanted(key) && !why?.right.includes(key) && !why?.left.includes(key),
  }));
  if (!why) points.push({ id: "mixture", name: "wanted mixture", at: place(answer.mixture), tone: "text", shape: "cross", size: 5 });
  if (meeting) points.push({ id: "meeting", name: "where both mixtures meet", at: meeting, tone: "text", shape: "cross" });
  const label = why
    ? `Certificate: a mixture of keys ${why.left.join(", ")} is the same point as a mixture of keys ${why.right.join(", ")}`
    : `The wanted keys span a face of the hull of all keys: keys ${answer.face.join(", ")}`;
  return <Plane label={label} points={points} paths={paths} height={360} />;
}

/** The places in the order of their angles around a middle. */
function around(places: Coordinates[], middle: Coordinates): Coordinates[] {
  const angle = ([x, y]: Coordinates) => Math.atan2(y - middle[1], x - middle[0]);
  return [...places].sort((a, b) => angle(a) - angle(b));
}
