// A plane: axes, points that can be dragged or moved by arrow keys, paths, arrows, lines and regions.
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import "./plane.css";
import { fit, multiples, tickText, tidy, view, type Box, type Coordinates, type View } from "./plane_box";
import { around, overlap, placeLabels, type Rect, type Spot } from "./plane_labels";
import { letterScale, useWidth } from "./width";

export type { Box, Coordinates } from "./plane_box";
export type Tone = "mark" | "other" | "both" | "good" | "bad" | "warn" | "soft" | "text" | "line" | "accent";

export interface PlanePoint {
  id: string;
  at: Coordinates;
  name: string; // for screen readers: "query"
  label?: string; // beside it
  tone?: Tone;
  shape?: "dot" | "square" | "diamond" | "cross";
  size?: number; // px from the middle to the edge; 6
  hollow?: boolean;
  faded?: boolean;
  fit?: boolean; // whether the picture makes room for it; true
  onMove?: (to: Coordinates) => void; // then it can be moved
}

export interface PlanePath {
  points: readonly Coordinates[]; // broken where a number is not finite
  tone?: Tone;
  width?: number; // px; 0 for a region without an edge
  closed?: boolean;
  fill?: number; // opacity of the inside; 0
  dashed?: boolean;
  arrow?: boolean; // a head at the last point
  label?: string; // at its last point, or in the middle of a region
  fit?: boolean; // whether the picture makes room for it; true
}

/** A line through a point, in both directions. */
export interface PlaneLine {
  through: Coordinates;
  along: Coordinates;
  tone?: Tone;
  dashed?: boolean;
}

interface Props {
  label: string; // what is seen, for who cannot see it
  points?: PlanePoint[];
  paths?: PlanePath[]; // drawn in order, below the points
  lines?: PlaneLine[];
  box?: Box; // what is shown; else all there is
  equal?: boolean; // whether both axes have one scale; true
  height?: number; // px; else as high as wide, within reason
  across?: string; // names of the axes
  up?: string;
  onPlace?: (to: Coordinates) => void; // a click beside the points
  onHover?: (at: Coordinates | null) => void;
  children?: (view: View, taken: Rect[]) => ComponentChildren; // more SVG, over the paths; `taken` by labels and points
}

const STEPS = 20; // in the distance of two ticks: where dragged points come to rest
const NARROWEST = 160;

/** The plane; while a point is dragged, what is shown stays as it is. */
export function Plane({ label, points = [], paths = [], lines = [], box, equal = true, height, across, up, onPlace, onHover, children }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const svg = useRef<SVGSVGElement>(null);
  const wide = useWidth(place);
  const [held, setHeld] = useState<{ id: string; box: Box } | null>(null);
  const scale = letterScale(); // all that is drawn, letters too, is larger where the page's letters are
  const width = Math.max(NARROWEST, wide / scale);
  const high = height ?? Math.min(width, Math.max(480, Math.round(window.innerHeight / scale / 2)));
  const asked = held?.box ?? box ?? fit([...points.filter((one) => one.fit !== false).map((one) => one.at), ...paths.filter((one) => one.fit !== false).flatMap((one) => one.points)]);
  const { left, right, bottom, top } = asked;
  const seen = useMemo(() => view(asked, width, high, equal), [left, right, bottom, top, width, high, equal]);
  const numberAt = (event: PointerEvent | MouseEvent): Coordinates => {
    const edge = svg.current!.getBoundingClientRect();
    const inside = (x: number, size: number) => Math.max(0, Math.min(size, x));
    const [x, y] = seen.number(inside((event.clientX - edge.left) / scale, width), inside((event.clientY - edge.top) / scale, high));
    return rest(seen, [x, y]);
  };
  const movable = points.some((one) => one.onMove);
  const dots = points.map((one) => ({ ...pixelOf(seen, one.at), size: one.size ?? 6, label: one.label ?? "" }));
  const regions = paths.map((one) => ({ ...pixelOf(seen, middle(one)), size: 0, label: (one.closed && one.label) || "" }));
  const { spots, taken: labels } = placeLabels([...dots, ...regions], width, high);
  const taken = [...labels, ...dots.map(around)];
  return (
    <div class="plane" ref={place} data-picture>
      {wide > 0 && (
        <svg
          ref={svg}
          width={width * scale}
          height={high * scale}
          viewBox={`0 0 ${width} ${high}`}
          role={movable ? "group" : "img"}
          aria-label={label}
          onClick={onPlace && ((event) => !held && onPlace(numberAt(event)))}
          onPointerMove={onHover && ((event) => onHover(numberAt(event)))}
          onPointerLeave={onHover && (() => onHover(null))}
        >
          <Axes view={seen} across={across} up={up} taken={taken} />
          <g aria-hidden="true">
            {paths.map((one, index) => <Path view={seen} path={one} spot={spots[points.length + index]!} />)}
            {lines.map((one) => <Path view={seen} path={lineWithin(seen, one)} />)}
            {children?.(seen, taken)}
          </g>
          {points.map((one, index) => (
            <Point
              key={one.id}
              view={seen}
              point={one}
              spot={spots[index]!}
              onGrab={() => setHeld({ id: one.id, box: asked })}
              onDrag={(event) => held?.id === one.id && one.onMove?.(numberAt(event))}
              onDrop={() => setHeld(null)}
            />
          ))}
        </svg>
      )}
    </div>
  );
}

/** The nearest place at which a dragged point comes to rest. */
function rest({ ticks }: View, [x, y]: Coordinates): Coordinates {
  const step = ticks / STEPS;
  return [tidy(Math.round(x / step) * step, step), tidy(Math.round(y / step) * step, step)];
}

const pixelOf = (view: View, place: Coordinates) => {
  const [x, y] = view.pixel(place);
  return { x, y };
};

/** The middle of a path's points. */
function middle({ points }: PlanePath): Coordinates {
  const mean = (axis: 0 | 1) => points.reduce((sum, point) => sum + point[axis], 0) / points.length;
  return [mean(0), mean(1)];
}

/** The axes; a number that a label or a point would cover is left out. */
function Axes({ view, across, up, taken }: { view: View; across: string | undefined; up: string | undefined; taken: Rect[] }) {
  const { box, ticks, pixel, width, height } = view;
  const [x, y] = pixel([0, 0]);
  const [below, beside] = [Math.min(height - 16, Math.max(0, y)), Math.min(width - 26, Math.max(0, x))]; // where the numbers stand
  const isFree = (text: string, left: number, top: number) => !taken.some((one) => overlap(one, { left, top, width: 7 * text.length, height: 11 }));
  return (
    <g class="plane-axes" aria-hidden="true">
      {multiples(box.left, box.right, ticks).map((tick) => {
        const at = pixel([tick, 0])[0];
        return (
          <>
            <line class={tick === 0 ? "zero" : ""} x1={at} x2={at} y1={0} y2={height} />
            {tick !== 0 && at > 12 && at < width - 12 && isFree(tickText(tick), at - 3.5 * tickText(tick).length, below + 4) && <text x={at} y={below + 13} text-anchor="middle">{tickText(tick)}</text>}
          </>
        );
      })}
      {multiples(box.bottom, box.top, ticks).map((tick) => {
        const at = pixel([0, tick])[1];
        return (
          <>
            <line class={tick === 0 ? "zero" : ""} x1={0} x2={width} y1={at} y2={at} />
            {tick !== 0 && at > 8 && at < height - 8 && isFree(tickText(tick), beside + 4, at - 5) && <text x={beside + 4} y={at + 4}>{tickText(tick)}</text>}
          </>
        );
      })}
      {across && <text class="name" x={width - 6} y={below - 6} text-anchor="end">{across}</text>}
      {up && <text class="name" x={beside + 6} y={14}>{up}</text>}
    </g>
  );
}

function lineWithin({ box }: View, { through, along, tone, dashed }: PlaneLine): PlanePath {
  const far = (2 * (box.right - box.left + box.top - box.bottom) + Math.abs(through[0] - box.left) + Math.abs(through[1] - box.bottom)) / Math.hypot(...along);
  const at = (share: number): Coordinates => [through[0] + share * along[0], through[1] + share * along[1]];
  return { points: [at(-far), at(far)], tone: tone ?? "soft", dashed: dashed ?? false, width: 1 };
}

function Path({ view, path, spot }: { view: View; path: PlanePath; spot?: Spot | null }) {
  const { points, tone = "mark", width = 1.6, closed, fill = 0, dashed, arrow, label } = path;
  const colour = `var(--${tone})`;
  let text = "";
  let broken = true;
  for (const point of points) {
    if (!Number.isFinite(point[0]) || !Number.isFinite(point[1])) {
      broken = true;
      continue;
    }
    const [x, y] = view.pixel(point);
    text += `${broken ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
    broken = false;
  }
  if (!text) return null;
  const [before, last] = points.slice(-2);
  const labelled = label && points.length > 0 ? view.pixel(closed ? middle(path) : points.at(-1)!) : null;
  const { x, y, anchor } = spot ?? { x: 8, y: 4, anchor: "start" as const };
  return (
    <>
      <path d={text + (closed ? "Z" : "")} fill={fill ? colour : "none"} fill-opacity={fill} stroke={width ? colour : "none"} stroke-width={width} stroke-dasharray={dashed ? "5 4" : undefined} stroke-linejoin="round" />
      {arrow && before && last && <ArrowHead from={view.pixel(before)} to={view.pixel(last)} colour={colour} size={4 + 2 * width} />}
      {labelled && <text class="plane-label" x={labelled[0] + x} y={labelled[1] + y} text-anchor={anchor} fill={colour}>{label}</text>}
    </>
  );
}

function ArrowHead({ from, to, colour, size }: { from: Coordinates; to: Coordinates; colour: string; size: number }) {
  const length = Math.hypot(to[0] - from[0], to[1] - from[1]);
  if (!(length > 0.5)) return null;
  const [x, y] = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
  const side = (sign: number) => `${to[0] - size * x - sign * size * 0.5 * y},${to[1] - size * y + sign * size * 0.5 * x}`;
  return <polygon points={`${to[0]},${to[1]} ${side(1)} ${side(-1)}`} fill={colour} />;
}

interface PointProps {
  view: View;
  point: PlanePoint;
  spot: Spot | null;
  onGrab: () => void;
  onDrag: (event: PointerEvent) => void;
  onDrop: () => void;
}

const ARROWS: { [key: string]: Coordinates } = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

function Point({ view, point, spot, onGrab, onDrag, onDrop }: PointProps) {
  const { at, name, label, tone = "mark", shape = "dot", size = 6, hollow, faded, onMove } = point;
  const [x, y] = view.pixel(at);
  const press = (event: KeyboardEvent) => {
    const way = ARROWS[event.key];
    if (!way || !onMove || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const step = (view.ticks / STEPS) * (event.shiftKey ? STEPS / 2 : 1);
    onMove([tidy(at[0] + way[0] * step, view.ticks / STEPS), tidy(at[1] + way[1] * step, view.ticks / STEPS)]);
  };
  const moving = onMove && {
    tabindex: 0, // SVG knows it in small letters only
    role: "slider" as const,
    "aria-label": name,
    "aria-roledescription": "point",
    "aria-valuenow": at[0],
    "aria-valuetext": `${tickText(at[0])}, ${tickText(at[1])}`,
    onKeyDown: press,
    onPointerDown: (event: PointerEvent) => {
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
      onGrab();
    },
    onPointerMove: onDrag,
    onPointerUp: onDrop,
    onPointerCancel: onDrop,
    onClick: (event: MouseEvent) => event.stopPropagation(),
  };
  return (
    <g class={`plane-point${onMove ? " movable" : ""}${faded ? " faded" : ""}`} transform={`translate(${x.toFixed(1)} ${y.toFixed(1)})`} data-point={point.id} {...(moving ?? { "aria-hidden": true })}>
      {onMove && <circle class="reach" r={Math.max(16, size + 8)} />}
      <path d={outline(shape, size)} fill={hollow ? "var(--card)" : `var(--${tone})`} stroke={hollow || shape === "cross" ? `var(--${tone})` : "var(--card)"} stroke-width={hollow || shape === "cross" ? 2.2 : 1.5} />
      {spot && <text class="plane-label" x={spot.x} y={spot.y} text-anchor={spot.anchor}>{label}</text>}
    </g>
  );
}

function outline(shape: string, size: number): string {
  if (shape === "square") return `M${-size} ${-size}H${size}V${size}H${-size}Z`;
  if (shape === "diamond") return `M0 ${-1.3 * size}L${1.3 * size} 0L0 ${1.3 * size}L${-1.3 * size} 0Z`;
  if (shape === "cross") return `M${-size} ${-size}L${size} ${size}M${-size} ${size}L${size} ${-size}`;
  return `M${-size} 0A${size} ${size} 0 1 1 ${size} 0A${size} ${size} 0 1 1 ${-size} 0Z`;
}
