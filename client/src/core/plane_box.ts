// What part of the plane is shown, the ticks of its axes, and the way from numbers to pixels and back.

export type Coordinates = readonly [number, number];
export interface Box {
  left: number;
  right: number;
  bottom: number;
  top: number;
}
export interface View {
  box: Box;
  width: number; // px
  height: number;
  ticks: number; // the distance of ticks
  pixel: (place: Coordinates) => Coordinates;
  number: (x: number, y: number) => Coordinates;
}

const MARGIN = 0.08; // of the longer side, around what is fitted
const APART = 56; // px between ticks, at least
const FAR = 1e5; // px outside of the picture to which paths are drawn

/** The smallest of 1, 2, 5, 10, … that is at least this. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return ([1, 2, 5].find((one) => one * power >= least * (1 - 1e-9)) ?? 10) * power;
}

/** The box around these places, with some room; one point, or none, has a box around it too. */
export function fit(places: Iterable<Coordinates>): Box {
  let [left, right, bottom, top] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [x, y] of places) {
    if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
    [left, right] = [Math.min(left, x), Math.max(right, x)];
    [bottom, top] = [Math.min(bottom, y), Math.max(top, y)];
  }
  if (left > right) return { left: -1, right: 1, bottom: -1, top: 1 };
  const size = Math.max(right - left, top - bottom) || Math.max(1, Math.abs(left), Math.abs(top));
  const room = MARGIN * size;
  const step = niceStep(size / 10); // ends are round numbers, so that the box rests while a point moves a little
  const down = (x: number) => Math.floor(x / step) * step;
  const up = (x: number) => Math.ceil(x / step) * step;
  return { left: down(left - room), right: up(right + room), bottom: down(bottom - room), top: up(top + room) };
}

/** The box on a picture of this size; with `equal`, both axes have one scale, and the box is widened for it. */
export function view(asked: Box, width: number, height: number, equal: boolean): View {
  let { left, right, bottom, top } = asked;
  if (equal) {
    const scale = Math.max((right - left) / width, (top - bottom) / height);
    const [x, y] = [(left + right) / 2, (bottom + top) / 2];
    [left, right] = [x - (scale * width) / 2, x + (scale * width) / 2];
    [bottom, top] = [y - (scale * height) / 2, y + (scale * height) / 2];
  }
  const [wide, high] = [right - left, top - bottom];
  const near = (pixels: number, size: number) => Math.max(-FAR, Math.min(size + FAR, pixels));
  return {
    box: { left, right, bottom, top },
    width,
    height,
    ticks: niceStep(Math.max((wide / width) * APART, equal ? 0 : (high / height) * (APART / 2))),
    pixel: ([x, y]) => [near(((x - left) / wide) * width, width), near(((top - y) / high) * height, height)],
    number: (x, y) => [left + (x / width) * wide, top - (y / height) * high],
  };
}

/** The multiples of a step between two numbers. */
export function multiples(low: number, high: number, step: number): number[] {
  const first = Math.ceil(low / step - 1e-9);
  const many = Math.min(200, Math.floor(high / step + 1e-9) - first + 1);
  return Array.from({ length: Math.max(0, many) }, (_, at) => tidy((first + at) * step, step));
}

/** The number without what rounding added: as many decimals as the step has. */
export function tidy(x: number, step: number): number {
  const decimals = Math.max(0, Math.min(20, Math.ceil(-Math.log10(step) + 1e-9)));
  return Number(x.toFixed(decimals + 1)) || 0;
}

/** A number as people read it: −0.5, 1200, 3e-7. */
export function tickText(x: number): string {
  const size = Math.abs(x);
  const text = size !== 0 && (size >= 1e6 || size < 1e-4) ? x.toExponential() : String(x);
  return text.replace("-", "−");
}
