// Draws a grid on a canvas: the cells pixel by pixel, and over them lines, positions, the cursor and marks.
import { OWN, type Cells } from "./cells";
import { inked, type Colours, type Look } from "./colours";
import { tickText, ticksOf, type View } from "./view";

/** A part of the grid in positions. */
export interface Box {
  row: number;
  col: number;
  height: number;
  width: number;
}

/** Boxes of a grid between edges, row by row, and whether a plan computes anything in each. */
export interface Plan {
  rows: number[];
  cols: number[];
  runs: boolean[][];
}

export interface Scene {
  view: View;
  cells: Cells;
  two: boolean;
  titles: [string, string]; // of the queries, down, and of the keys, across
  heavy: number; // every so many positions a heavier line: the rows of an image
  cursor: Box | null;
  cross: boolean; // whether the cursor's row and column are lit
  marks: { row: number; col: number; label: string }[];
  plan: Plan | null; // what it computes is outlined
}

/** Where the grid stands on its canvas, in CSS pixels, and how many device pixels are in one. */
export interface Layout {
  left: number;
  top: number;
  width: number;
  height: number;
  ratio: number;
}

export const FONT = "11px system-ui, sans-serif";
const LINED = 6; // pixels: squares smaller than that, and tiles, have no lines between them

export function paint(context: CanvasRenderingContext2D, scene: Scene, layout: Layout, colours: Colours): void {
  const { ratio } = layout, { canvas } = context;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  const image = context.createImageData(Math.round(layout.width * ratio), Math.round(layout.height * ratio));
  paintCells(image, scene, ratio, scene.two ? colours.two : colours.one);
  context.putImageData(image, Math.round(layout.left * ratio), Math.round(layout.top * ratio));
  context.setTransform(ratio, 0, 0, ratio, layout.left * ratio, layout.top * ratio);
  context.save();
  context.beginPath();
  context.rect(0, 0, layout.width, layout.height);
  context.clip();
  drawLines(context, scene, layout, colours);
  drawOver(context, scene, layout, colours);
  context.restore();
  context.strokeStyle = colours.frame;
  context.lineWidth = 1;
  context.strokeRect(-0.5, -0.5, layout.width + 1, layout.height + 1);
  drawPositions(context, scene, layout, colours);
}

/** Where the cells of a side begin and end, in device pixels. */
function edges(first: number, size: number, many: number, start: number, length: number, pixels: number): Int32Array {
  return Int32Array.from({ length: many + 1 }, (_, i) => Math.max(0, Math.min(pixels, Math.round(((first + i * size - start) * pixels) / length))));
}

function paintCells(image: ImageData, { view, cells }: Scene, ratio: number, looks: Look[]): void {
  const pixels = new Uint32Array(image.data.buffer), wide = image.width;
  const down = edges(cells.top, cells.height, cells.rows, view.top, view.height, image.height);
  const across = edges(cells.left, cells.width, cells.cols, view.left, view.width, wide);
  const period = Math.round(7 * ratio), thick = Math.max(1, Math.round(1.3 * ratio));
  for (let i = 0; i < cells.rows; i++) {
    const top = down[i]!, bottom = down[i + 1]!;
    if (top === bottom) continue;
    let hatched = false;
    for (let j = 0; j < cells.cols; ) {
      const from = across[j]!, name = cells.looks[i * cells.cols + j]!;
      while (j < cells.cols && cells.looks[i * cells.cols + j] === name) j++;
      pixels.fill(looks[name]!.fill, top * wide + from, top * wide + across[j]!);
      hatched ||= looks[name]!.hatch !== "";
    }
    for (let y = top + 1; y < bottom; y++) pixels.copyWithin(y * wide, top * wide, (top + 1) * wide);
    if (!hatched) continue;
    for (let j = 0; j < cells.cols; j++) {
      const { hatch, ink } = looks[cells.looks[i * cells.cols + j]!]!;
      if (!hatch) continue;
      for (let y = top; y < bottom; y++)
        for (let x = across[j]!; x < across[j + 1]!; x++) if (inked(hatch, x, y, period, thick)) pixels[y * wide + x] = ink;
    }
  }
}

function drawLines(context: CanvasRenderingContext2D, { view, cells, heavy }: Scene, layout: Layout, colours: Colours): void {
  const y = (row: number) => sharp(((row - view.top) * layout.height) / view.height, layout.ratio);
  const x = (col: number) => sharp(((col - view.left) * layout.width) / view.width, layout.ratio);
  const thin = 1 / layout.ratio;
  context.fillStyle = colours.line;
  if (cells.height === 1 && layout.height / view.height >= LINED)
    for (let i = 1; i < cells.rows; i++) context.fillRect(0, y(cells.top + i * cells.height), layout.width, thin);
  if (cells.width === 1 && layout.width / view.width >= LINED)
    for (let j = 1; j < cells.cols; j++) context.fillRect(x(cells.left + j * cells.width), 0, thin, layout.height);
  if (!heavy || (heavy * layout.width) / view.width < LINED) return;
  context.fillStyle = colours.soft;
  for (let row = Math.ceil(view.top / heavy) * heavy; row < view.top + view.height; row += heavy) context.fillRect(0, y(row), layout.width, thin);
  for (let col = Math.ceil(view.left / heavy) * heavy; col < view.left + view.width; col += heavy) context.fillRect(x(col), 0, thin, layout.height);
}

function sharp(place: number, ratio: number): number {
  return Math.round(place * ratio) / ratio;
}

/** The cursor with its row and column, marked pairs, and the tiles of a plan. */
function drawOver(context: CanvasRenderingContext2D, scene: Scene, layout: Layout, colours: Colours): void {
  const { view, cursor } = scene;
  const across = layout.width / view.width, down = layout.height / view.height;
  const frame = ({ row, col, height, width }: Box): [number, number, number, number] => [(col - view.left) * across, (row - view.top) * down, width * across, height * down];
  if (scene.plan) {
    const sides = new Path2D();
    const inside = (place: number, most: number) => Math.max(2, Math.min(most - 2, place)); // an outline at the edge is seen
    for (const [row, col, height, width] of borders(scene.plan)) {
      sides.moveTo(inside((col - view.left) * across, layout.width), inside((row - view.top) * down, layout.height));
      sides.lineTo(inside((col + width - view.left) * across, layout.width), inside((row + height - view.top) * down, layout.height));
    }
    twice(context, colours, 2, () => context.stroke(sides));
  }
  if (cursor) {
    const [x, y, width, height] = frame(cursor);
    if (scene.cross) {
      context.globalAlpha = 0.14;
      context.fillStyle = colours.text;
      context.fillRect(0, y, layout.width, height);
      context.fillRect(x, 0, width, layout.height);
      context.globalAlpha = 1;
    }
    twice(context, colours, 2, () => context.strokeRect(x, y, Math.max(width, 2), Math.max(height, 2)));
  }
  context.font = `bold ${FONT}`;
  for (const { row, col, label } of scene.marks) {
    const x = (col + 0.5 - view.left) * across, y = (row + 0.5 - view.top) * down, size = Math.max(7, 0.62 * Math.min(across, down));
    for (const [colour, width] of [[colours.ground, 5], [colours.mark, 2.5]] as const) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      context.arc(x, y, size, 0, 2 * Math.PI);
      context.stroke();
    }
    const wide = context.measureText(label).width, right = x + size + 6 + wide < layout.width;
    context.textAlign = right ? "left" : "right";
    context.textBaseline = "middle";
    context.lineWidth = 4;
    context.strokeStyle = colours.ground;
    context.strokeText(label, right ? x + size + 5 : x - size - 5, y);
    context.fillStyle = colours.mark;
    context.fillText(label, right ? x + size + 5 : x - size - 5, y);
  }
}

/** Draws lines that are seen on every ground: dark on light. */
function twice(context: CanvasRenderingContext2D, colours: Colours, line: number, draw: () => void): void {
  for (const [colour, width] of [[colours.ground, line + 2], [colours.text, line]] as const) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    draw();
  }
}

/** The sides of what a plan computes: where each begins, how high and how wide it is. */
function borders({ rows, cols, runs }: Plan): [number, number, number, number][] {
  const found: [number, number, number, number][] = [];
  const at = (i: number, j: number) => runs[i]?.[j] ?? false;
  for (let i = 0; i < rows.length; i++)
    for (let j = 0; j < cols.length; j++) {
      if (j + 1 < cols.length && at(i - 1, j) !== at(i, j)) found.push([rows[i]!, cols[j]!, 0, cols[j + 1]! - cols[j]!]);
      if (i + 1 < rows.length && at(i, j - 1) !== at(i, j)) found.push([rows[i]!, cols[j]!, rows[i + 1]! - rows[i]!, 0]);
    }
  return found;
}

/** The numbers of positions, and what they are. */
function drawPositions(context: CanvasRenderingContext2D, { view, titles, cells }: Scene, layout: Layout, colours: Colours): void {
  context.font = FONT;
  context.fillStyle = colours.soft;
  const square = cells.height === 1 && cells.width === 1 ? 0.5 : 0; // a number stands in the middle of its square
  const wide = (step: number, last: number) => context.measureText(tickText(last, step)).width + 8;
  context.textBaseline = "middle";
  context.textAlign = "right";
  const rows = ticksOf(view.top, view.height, layout.height, rowsApart);
  for (const row of rows.places) context.fillText(tickText(row, rows.step), -5, ((row + square - view.top) * layout.height) / view.height);
  context.textBaseline = "alphabetic";
  context.textAlign = "center";
  const cols = ticksOf(view.left, view.width, layout.width, (step) => wide(step, view.left + view.width - 1));
  for (const col of cols.places) context.fillText(tickText(col, cols.step), ((col + square - view.left) * layout.width) / view.width, -5);
  context.fillStyle = colours.text;
  context.fillText(`${titles[1]} →`, layout.width / 2, -20);
  context.save();
  context.translate(-layout.left + 10, layout.height / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(`← ${titles[0]}`, 0, 0);
  context.restore();
}

/** Every row has its number where there is room; else they stand well apart. */
function rowsApart(step: number): number {
  return step === 1 ? 14 : 26;
}

/** How much room the numbers of the queries take, in CSS pixels. */
export function marginFor(context: CanvasRenderingContext2D, view: View, height: number): number {
  context.font = FONT;
  const { step, places } = ticksOf(view.top, view.height, height, rowsApart);
  return Math.ceil(Math.max(...places.map((place) => context.measureText(tickText(place, step)).width), 8)) + 26;
}

/** Marks the diagonal's attended squares as the queries' own positions, where one cell is one pair. */
export function withOwn(cells: Cells, full: number): Cells {
  if (cells.height > 1 || cells.width > 1) return cells;
  const looks = cells.looks.slice();
  for (let i = 0; i < cells.rows; i++) {
    const j = cells.top + i - cells.left;
    if (j >= 0 && j < cells.cols && looks[i * cells.cols + j] === full) looks[i * cells.cols + j] = OWN;
  }
  return { ...cells, looks };
}
