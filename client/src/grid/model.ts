// What a grid shows: which positions go down and across, and the rules on them at numbers.
import type { ReadAnswer } from "../schema";
import { holds, sweep, Unable, type Arrays, type Row, type Tree, type Values } from "./evaluate";

export interface Choices {
  numbers: { [name: string]: number | string };
  head: number;
  pixel: number[]; // the query of an image; the one in the middle where it has none such
  slice: number; // of a volume: which slice of keys, -1 for the query's own
  flat: boolean; // of an image: all queries against all keys
}

export interface Side {
  title: string; // "query q"
  names: string[]; // the coordinates that follow each other along it: q, or qy and qx row by row
  lengths: number[];
  length: number;
}

/** One or two rules on a grid. */
export interface Model {
  kind: "line" | "pixel" | "matrix";
  down: Side;
  across: Side;
  rules: { read: ReadAnswer; values: Values }[];
  tied: boolean; // whether the diagonal is a query's own position
  query: number[]; // of an image: the pixel whose keys are shown
  chosen: { head: number; pixel: number[]; slice: number }; // what of it is shown
  sizes: Values;
}

export const MIDDLE: Choices = { numbers: {}, head: 0, pixel: [], slice: -1, flat: false };

/** The grid of one rule or of two; Unable where the page cannot draw it. */
export function modelOf(reads: ReadAnswer[], choices: Choices): Model {
  const axes = reads[0]!.axes.map(([query, key, queries, keys]) => ({ query: query!, key: key!, queries: queries!, keys: keys! }));
  if (reads.some((read) => read.axes.length !== axes.length)) throw new Unable("one of the rules lives on a line, the other on an image");
  const shared = valuesOf(reads, choices.numbers);
  for (const axis of axes) if (reads.some((read) => read.axes[0]![3] === "m") && axis.keys === "n") axis.keys = "m";
  if (axes.some((axis) => axis.keys === "m")) shared.m ??= shared.n!;
  const sizes = Object.fromEntries(axes.flatMap((axis) => [axis.queries, axis.keys]).map((size) => [size, shared[size]!]));
  for (const [name, value] of Object.entries(sizes)) {
    if (!Number.isSafeInteger(value)) throw new Unable(`${name} is larger than what the page draws; what is counted holds all the same`);
    if (value < 1) throw new Unable(`${name} = ${value}: there are no positions`);
  }
  const kind = axes.length === 1 ? "line" : choices.flat ? "matrix" : "pixel";
  const lengths = axes.map((axis) => sizes[axis.queries]!);
  const inside = choices.pixel.length === axes.length && choices.pixel.every((at, i) => Number.isInteger(at) && at >= 0 && at < lengths[i]!);
  const query = kind === "pixel" ? (inside ? choices.pixel : lengths.map((length) => Math.floor(length / 2))) : [];
  const fixed: Values = { head: Math.max(0, Math.min(choices.head, (shared.heads ?? 1) - 1)) };
  let down = axes.map((axis) => axis.query), across = axes.map((axis) => axis.key);
  if (kind === "pixel") {
    axes.forEach((axis, i) => (fixed[axis.query] = query[i]!));
    if (axes.length === 3) fixed[axes[0]!.key] = choices.slice >= 0 && choices.slice < lengths[0]! ? choices.slice : query[0]!;
    down = across.slice(-2, -1);
    across = across.slice(-1);
  }
  const size = new Map(axes.flatMap((axis) => [[axis.query, sizes[axis.queries]!], [axis.key, sizes[axis.keys]!]] as const));
  const order = axes.length === 2 ? " pixel, row by row" : " voxel, slice by slice";
  const title = (names: string[], what: string) => (kind === "line" ? `${what} ${names[0]}` : kind === "matrix" ? what + order : `${what} ${names[0]}`);
  const side = (names: string[], what: string): Side => {
    const lengths = names.map((name) => size.get(name)!);
    return { title: title(names, what), names, lengths, length: lengths.reduce((a, b) => a * b) };
  };
  return {
    kind,
    down: side(down, kind === "pixel" ? "row" : "query"),
    across: side(across, kind === "pixel" ? "column" : "key"),
    rules: reads.map((read) => ({ read, values: { ...shared, ...boundOf(read), ...fixed } })),
    tied: kind !== "pixel" && axes.every((axis) => sizes[axis.queries] === sizes[axis.keys]),
    query,
    chosen: { head: fixed.head!, pixel: query, slice: fixed[axes[0]!.key] ?? 0 },
    sizes: { ...sizes, ...("heads" in shared ? { heads: shared.heads! } : {}) },
  };
}

/** A number for every letter: of a size that one of the rules fixes, that one; else the one given, else the example. */
function valuesOf(reads: ReadAnswer[], numbers: Choices["numbers"]): Values {
  const values: Values = {};
  for (const read of [...reads].reverse()) for (const letter of read.letters) values[letter.name] = Number(numbers[letter.name] ?? letter.example);
  for (const read of reads) for (const letter of read.letters) if (letter.size && letter.value !== null) values[letter.name] = letter.value;
  return values;
}

function boundOf(read: ReadAnswer): Values {
  return Object.fromEntries(read.letters.flatMap((letter) => (letter.value === null ? [] : [[letter.name, letter.value]])));
}

/** The coordinates of a place along a side: 7 is row 1, column 2 of an image 5 wide. */
export function coordinates(place: number, { lengths }: Side): number[] {
  const found = Array<number>(lengths.length);
  for (let axis = lengths.length - 1; axis >= 0; axis--) {
    found[axis] = place % lengths[axis]!;
    place = Math.floor(place / lengths[axis]!);
  }
  return found;
}

/** Of every rule: its truths along these places of one side, at a place of the other. */
export function rowsOf({ rules }: Model, along: Side, places: Float64Array, across: Side): ((place: number) => Row)[] {
  const vectors = along.names.map(() => new Float64Array(places.length));
  places.forEach((place, i) => coordinates(place, along).forEach((at, axis) => (vectors[axis]![i] = at)));
  const named = Object.fromEntries(along.names.map((name, axis) => [name, vectors[axis]!]));
  const ranges = Object.fromEntries(across.names.map((name, axis): [string, [number, number]] => [name, [0, across.lengths[axis]! - 1]]));
  return rules.map(({ read, values }) => {
    const row = sweep(read.tree as Tree, read.data as Arrays, values, named, ranges);
    return across.names.length === 1 ? row : (place) => row(...coordinates(place, across));
  });
}

/** The coordinates of a cell by name. */
export function pairAt({ down, across }: Model, row: number, col: number): Values {
  const places = [...coordinates(row, down), ...coordinates(col, across)];
  return Object.fromEntries([...down.names, ...across.names].map((name, i) => [name, places[i]!]));
}

/** Whether one of the rules, or a part of it, holds at a pair. */
export function holdsAt({ rules }: Model, which: number, pair: Values, part?: Tree): boolean {
  const { read, values } = rules[which]!;
  return holds(part ?? (read.tree as Tree), read.data as Arrays, { ...values, ...pair });
}
