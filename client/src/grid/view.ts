// Which part of a grid is seen, and how it is cut into tiles.
import { commas } from "./commas";
import type { Tiling } from "./cells";

/** The part of the grid that is seen, in positions. */
export interface View {
  top: number;
  left: number;
  height: number;
  width: number;
}

const CLOSEST = 4; // positions across
const TALLEST = 3; // times as high as wide, and the other way round

/** The part that the state of the page names: [top, left, width], or all where it names none. */
export function viewOf(named: number[], down: number, across: number): View {
  const [top = 0, left = 0, wanted = across] = named.length === 3 && named.every(Number.isFinite) ? named : [];
  const width = Math.min(across, Math.max(wanted, Math.min(across, CLOSEST))), height = (width * down) / across;
  return { top: within(top, down - height), left: within(left, across - width), height, width };
}

/** The same place `factor` times as near; the position at (row, col) stays where it is. */
export function zoomed({ top, left, width }: View, factor: number, row: number, col: number): number[] {
  return [row - (row - top) / factor, col - (col - left) / factor, width / factor];
}

/** The part around a cell, so near that squares are seen. */
export function near(row: number, col: number, down: number, across: number): number[] {
  const width = Math.min(across, 24), height = (width * down) / across;
  return [Math.max(0, row - height / 2), Math.max(0, col - width / 2), width].map(Math.floor);
}

/** How high a grid is drawn that is so wide: cells are squares unless one side is far longer than the other. */
export function heightFor(width: number, down: number, across: number): number {
  return Math.round(width * Math.min(1, Math.max(1 / TALLEST, down / across)));
}

export function widthFor(available: number, down: number, across: number): number {
  return Math.round(available * Math.min(1, Math.max(1 / TALLEST, across / down)));
}

/** Tiles of 1, 2, 4, 8, ... positions that cover what is seen, each at least so many pixels wide and high. */
export function tilingOf(view: View, down: number, across: number, pixels: [number, number], smallest: number): Tiling {
  const cut = (start: number, length: number, whole: number, room: number) => {
    let size = 1;
    while ((size * room) / length < smallest) size *= 2;
    const first = Math.floor(start / size) * size, end = Math.min(whole, start + length);
    return [first, size, Math.max(1, Math.ceil((end - first) / size - 1e-9))] as const;
  };
  const [top, height, rows] = cut(view.top, view.height, down, pixels[0]);
  const [left, width, cols] = cut(view.left, view.width, across, pixels[1]);
  return { top, left, height, width, rows, cols };
}

/** Positions to write at a side: multiples of 1, 2, 5, 10, ... at least `apart` pixels from each other. */
export function ticksOf(start: number, length: number, pixels: number, apart: (step: number) => number): { step: number; places: number[] } {
  let step = 1;
  while ((step * pixels) / length < apart(step)) step = String(step)[0] === "2" ? (step * 5) / 2 : step * 2;
  const places: number[] = [];
  for (let at = Math.ceil(start / step) * step; at < start + length - 1e-9; at += step) places.push(at);
  return { step, places };
}

/** A position at a side: 12, 4,096, 100k, 3M. */
export function tickText(place: number, step: number): string {
  if (step % 1e6 === 0 && place >= 1e6) return `${commas(place / 1e6)}M`;
  if (step % 1e3 === 0 && place >= 1e3) return `${commas(place / 1e3)}k`;
  return commas(place);
}

export function within(value: number, most: number): number {
  return Math.max(0, Math.min(value, most));
}
