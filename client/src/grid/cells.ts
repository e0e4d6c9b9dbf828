// How full the cells of a grid are: from every pair in them, or from some.
import { commas } from "./commas";
import type { Row } from "./evaluate";

/** Tiles of a grid: where they begin, how many positions each covers, and how many tiles there are. */
export interface Tiling {
  top: number;
  left: number;
  height: number;
  width: number;
  rows: number;
  cols: number;
}

export interface Cells extends Tiling {
  looks: Uint8Array; // of one rule 0 to 20, by fullness; of two, a class
  counts: string[] | null; // of the pairs seen: attended, or only A, only B and both; null where it is not known
  pairs: string;
}

export const LEVELS = 20; // steps between empty and full
export const OWN = LEVELS + 1; // attended, and the query's own position
export const HERE = LEVELS + 2; // the query's own position, not attended
export const CLASSES = { a: 1, b: 2, both: 3, several: 4 };

interface Places {
  places: Float64Array;
  starts: Int32Array; // where the places of each tile begin, and the end
}

/** The positions of each tile to look at: all, or so many, which lie as far along a column of tiles as along a row. */
function placesOf(start: number, size: number, many: number, length: number, samples: number): Places {
  const places: number[] = [], starts = new Int32Array(many + 1);
  for (let tile = 0; tile < many; tile++) {
    const first = start + tile * size, held = Math.min(size, length - first);
    if (held <= samples) for (let at = 0; at < held; at++) places.push(first + at);
    else for (let at = 0; at < samples; at++) places.push(first + Math.floor(((at + scattered(first / size + at * 7)) * held) / samples));
    starts[tile + 1] = places.length;
  }
  return { places: Float64Array.from(places), starts };
}

/** A number from 0 to 1 that differs wildly from one seed to the next, so that samples are not in step with a rule. */
function scattered(seed: number): number {
  const sine = Math.sin(seed * 12.9898 + 1) * 43758.5453;
  return sine - Math.floor(sine);
}

export function pairsOf(tiling: Tiling, down: number, across: number): number {
  return Math.min(tiling.rows * tiling.height, down - tiling.top) * Math.min(tiling.cols * tiling.width, across - tiling.left);
}

/** The looks of the tiles of one rule or of two, from at most `samples` positions along a side of each. */
export function filled(
  tiling: Tiling,
  [down, across]: [number, number],
  rowsOver: (columns: Float64Array) => ((row: number) => Row)[],
  samples = Infinity,
): Cells {
  const { rows, cols } = tiling;
  const y = placesOf(tiling.top, tiling.height, rows, down, samples), x = placesOf(tiling.left, tiling.width, cols, across, samples);
  const rules = rowsOver(x.places);
  const looks = new Uint8Array(rows * cols), sums = [0, 0, 0];
  const counts = [new Float64Array(cols), new Float64Array(cols), new Float64Array(cols)] as const;
  for (let i = 0; i < rows; i++) {
    for (const count of counts) count.fill(0);
    for (let at = y.starts[i]!; at < y.starts[i + 1]!; at++) {
      const place = y.places[at]!, [a, b] = rules.map((row) => row(place));
      add(counts[0], a!, null, x.starts);
      if (b) {
        add(counts[1], b, null, x.starts);
        add(counts[2], a!, b, x.starts);
      }
    }
    const height = y.starts[i + 1]! - y.starts[i]!;
    for (let j = 0; j < cols; j++) {
      const area = height * (x.starts[j + 1]! - x.starts[j]!), a = counts[0][j]!, b = counts[1][j]!, both = counts[2][j]!;
      looks[i * cols + j] = rules.length === 1 ? Math.ceil((LEVELS * a) / area) : classOf(a - both, b - both, both);
      sums[0]! += a - both;
      sums[1]! += b - both;
      sums[2]! += both;
    }
  }
  const exact = samples >= Math.max(tiling.height, tiling.width);
  const totals = sums.slice(0, rules.length === 1 ? 1 : 3).map((sum) => commas(sum));
  return { ...tiling, looks, counts: exact ? totals : null, pairs: commas(pairsOf(tiling, down, across)) };
}

/** Adds to each tile's count the 1s in its part of a row, or of the product of two. */
function add(counts: Float64Array, a: Row, b: Row | null, starts: Int32Array): void {
  const left = a.length === 1 ? 0 : -1, right = b && b.length > 1 ? -1 : 0;
  const other = b ?? ONE;
  if (!left && !right) {
    if (a[0]! * other[0]!) for (let j = 0; j < counts.length; j++) counts[j]! += starts[j + 1]! - starts[j]!;
    return;
  }
  for (let j = 0; j < counts.length; j++) {
    let sum = 0;
    if (!b) for (let at = starts[j]!; at < starts[j + 1]!; at++) sum += a[at]!;
    else for (let at = starts[j]!; at < starts[j + 1]!; at++) sum += a[at & left]! * b[at & right]!;
    counts[j]! += sum;
  }
}
const ONE = Float64Array.of(1);

function classOf(onlyA: number, onlyB: number, both: number): number {
  if (Number(onlyA > 0) + Number(onlyB > 0) + Number(both > 0) > 1) return CLASSES.several;
  return onlyA > 0 ? CLASSES.a : onlyB > 0 ? CLASSES.b : both > 0 ? CLASSES.both : 0;
}

/** The tiles as the server gives them: a letter each. */
export function received(tiling: Tiling, answer: { cells: string[]; counts: string[]; pairs: string }): Cells {
  const looks = new Uint8Array(tiling.rows * tiling.cols);
  answer.cells.forEach((row, i) => {
    for (let j = 0; j < row.length; j++) looks[i * tiling.cols + j] = row.charCodeAt(j) - 97;
  });
  return { ...tiling, looks, counts: answer.counts, pairs: answer.pairs };
}
