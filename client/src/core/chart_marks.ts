// Points of a chart that are worth a word, such as where two curves cross.
import type uPlot from "uplot";
import { letterScale } from "./width";

export interface Mark {
  x: number;
  y: number;
  label: string;
}

interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** A ring on the point, a dotted line down to the axis, and the label where it covers no curve and no other label. */
export function drawMarks(plot: uPlot, marks: Mark[], paint: (name: string) => string): void {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio * letterScale();
  const taken: Box[] = [];
  const dots = curveDots(plot);
  ctx.save();
  ctx.font = `${12 * scale}px ${paint("--font")}`;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  ctx.lineJoin = "round";
  for (const mark of marks) {
    const x = plot.valToPos(mark.x, "x", true);
    const y = plot.valToPos(mark.y, "y", true);
    if (!inside(x, y, bbox)) continue;
    ctx.strokeStyle = paint("--text");
    ctx.lineWidth = scale;
    ctx.setLineDash([2 * scale, 3 * scale]);
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.lineWidth = 2 * scale;
    ctx.fillStyle = paint("--card");
    ctx.beginPath();
    ctx.arc(x, y, 4.5 * scale, 0, 2 * Math.PI);
    ctx.fill();
    ctx.stroke();
    const box = free({ left: x, top: y, width: ctx.measureText(mark.label).width + 8 * scale, height: 18 * scale }, taken, dots, bbox, scale);
    taken.push(box);
    ctx.strokeStyle = paint("--card"); // a halo, so that a curve behind the label does not cross it out
    ctx.lineWidth = 4 * scale;
    ctx.strokeText(mark.label, box.left + 4 * scale, box.top + 3 * scale);
    ctx.fillStyle = paint("--text");
    ctx.fillText(mark.label, box.left + 4 * scale, box.top + 3 * scale);
  }
  ctx.restore();
}

function inside(x: number, y: number, { left, top, width, height }: Box): boolean {
  return x >= left && x <= left + width && y >= top && y <= top + height;
}

/** The curves as dots a few pixels apart. */
function curveDots(plot: uPlot): [number, number][] {
  const [xs, ...curves] = plot.data;
  return curves.flatMap((ys) =>
    [...xs.slice(1)].flatMap((_, i): [number, number][] => {
      const [from, to] = [ys![i], ys![i + 1]];
      if (from == null || to == null) return [];
      const [x0, x1] = [plot.valToPos(xs[i]!, "x", true), plot.valToPos(xs[i + 1]!, "x", true)];
      const [y0, y1] = [plot.valToPos(from, "y", true), plot.valToPos(to, "y", true)];
      const steps = Math.min(100, Math.ceil(Math.hypot(x1 - x0, y1 - y0) / 6)) || 1;
      return Array.from({ length: steps }, (_, step) => [x0 + ((x1 - x0) * step) / steps, y0 + ((y1 - y0) * step) / steps]);
    }),
  );
}

/** Where the label goes: above its point or below, to the left or to the right, where it covers least; else farther up. */
function free(box: Box, taken: Box[], dots: [number, number][], within: Box, scale: number): Box {
  const gap = 6 * scale;
  const overlap = (one: Box, other: Box) =>
    one.left < other.left + other.width && other.left < one.left + one.width && one.top < other.top + other.height && other.top < one.top + one.height;
  const covered = (one: Box) => dots.filter(([x, y]) => inside(x, y, one)).length + 1000 * taken.filter((other) => overlap(one, other)).length;
  const sides = [box.left - box.width - gap, box.left + gap];
  const levels = [box.top - box.height - gap, box.top + gap, box.top - 2 * box.height - gap, box.top - 3 * box.height - gap];
  const places = levels.flatMap((top) => sides.map((left) => ({ ...box, left, top })));
  const kept = places.filter(({ left, top, width, height }) => inside(left, top, within) && inside(left + width, top + height, within));
  if (!kept.length) kept.push({ ...box, left: Math.max(within.left, Math.min(sides[0]!, within.left + within.width - box.width)), top: Math.max(within.top, levels[0]!) });
  return kept.reduce((best, one) => (covered(one) < covered(best) ? one : best));
}
