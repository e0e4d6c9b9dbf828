// Points of a chart that are worth a word, such as where two curves cross.
import type uPlot from "uplot";

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

/** A ring on the point, a dotted line down to the axis, and the label where it covers no other label. */
export function drawMarks(plot: uPlot, marks: Mark[], paint: (name: string) => string): void {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  const taken: Box[] = [];
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
    const box = free({ left: x, top: y, width: ctx.measureText(mark.label).width + 8 * scale, height: 18 * scale }, taken, bbox, scale);
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

/** Where the label goes: to the left above its point, moved up until it covers no other. */
function free(box: Box, taken: Box[], within: Box, scale: number): Box {
  const left = Math.min(Math.max(within.left, box.left - box.width - 8 * scale), within.left + within.width - box.width);
  let top = Math.max(within.top, box.top - box.height - 6 * scale);
  const covers = (other: Box) => left < other.left + other.width && other.left < left + box.width && top < other.top + other.height && other.top < top + box.height;
  while (taken.some(covers) && top > within.top) top -= box.height;
  return { ...box, left, top };
}
