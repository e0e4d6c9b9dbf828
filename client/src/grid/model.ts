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

interface Axis {
  query: string;
  key: string;
  queries: number; // how many positions
  keys: number;
}

/** The grid of one rule or of two; Unable where the page cannot draw it. */
export function modelOf(reads: ReadAnswer[], choices: Choices): Model {
  const values = valuesOf(reads, choices.numbers), axes = axesOf(reads, values);
  const kind = axes.length === 1 ? "line" : choices.flat ? "matrix" : "pixel";
  const query = kind === "pixel" ? pixelOf(axes, choices.pixel) : [];
  const fixed: Values = { head: within(choices.head, (values.heads ?? 1) - 1) };
  query.forEach((at, i) => (fixed[axes[i]!.query] = at));
  const [deepest] = axes, deep = kind === "pixel" && axes.length === 3;
  if (deep) fixed[deepest!.key] = choices.slice < 0 ? query[0]! : within(choices.slice, deepest!.keys - 1);
  const [rows, cols] = axes.slice(-2);
  const unit = kind === "line" ? "" : axes.length === 2 ? " pixel, row by row" : " voxel, slice by slice";
  return {
    kind,
    down: kind === "pixel" ? side("row", [rows!.key], [rows!.keys]) : side(`query${unit}`, axes.map((axis) => axis.query), axes.map((axis) => axis.queries)),
    across: kind === "pixel" ? side("column", [cols!.key], [cols!.keys]) : side(`key${unit}`, axes.map((axis) => axis.key), axes.map((axis) => axis.keys)),
    rules: reads.map((read) => ({ read, values: { ...values, ...boundOf(read), ...fixed } })),
    tied: kind !== "pixel" && axes.every((axis) => axis.queries === axis.keys),
    query,
    chosen: { head: fixed.head!, pixel: query, slice: deep ? fixed[deepest!.key]! : 0 },
    sizes: Object.fromEntries([...new Set(reads.flatMap((read) => read.letters.filter((letter) => letter.size).map((letter) => letter.name)))].map((name) => [name, values[name]!])),
  };
}

/** The grid, or why there is none. */
export function modelOrReason(reads: ReadAnswer[], choices: Choices): { model: Model | null; reason: string } {
  if (reads.length === 0) return { model: null, reason: "" };
  try {
    return { model: modelOf(reads, choices), reason: "" };
  } catch (error) {
    if (error instanceof Unable) return { model: null, reason: error.message };
    throw error;
  }
}

function side(title: string, names: string[], lengths: number[]): Side {
  return { title: names.length === 1 ? `${title} ${names[0]}` : title, names, lengths, length: lengths.reduce((a, b) => a * b) };
}

/** The axes with their lengths; a rule that has m keys makes them m for both. */
function axesOf(reads: ReadAnswer[], values: Values): Axis[] {
  const [{ axes }, other] = reads as [ReadAnswer, ReadAnswer?];
  if (other && other.axes.length !== axes.length) throw new Unable("one of the rules lives on a line, the other on an image");
  return axes.map(([query, key, queries, keys], i) => {
    const sizes = [queries!, other?.axes[i]![3] === "m" ? "m" : keys!].map((name) => {
      const value = values[name] ?? values.n!;
      if (!Number.isInteger(value)) throw new Unable(`${name} is not a whole number`);
      if (!Number.isSafeInteger(value)) throw new Unable(`${name} is larger than what the page draws; what is counted holds all the same`);
      if (value < 1) throw new Unable(`${name} = ${value}: there are no positions`);
      return value;
    });
    return { query: query!, key: key!, queries: sizes[0]!, keys: sizes[1]! };
  });
}

/** The pixel chosen, or the one in the middle where the image has none such. */
function pixelOf(axes: Axis[], chosen: number[]): number[] {
  const inside = chosen.length === axes.length && chosen.every((at, i) => Number.isInteger(at) && at >= 0 && at < axes[i]!.queries);
  return inside ? chosen : axes.map((axis) => Math.floor(axis.queries / 2));
}

function within(place: number, most: number): number {
  return Number.isInteger(place) ? Math.max(0, Math.min(place, most)) : 0;
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
  const vectors = along.names.length === 1 ? [places] : along.names.map(() => new Float64Array(places.length));
  if (vectors.length > 1) places.forEach((place, i) => coordinates(place, along).forEach((at, axis) => (vectors[axis]![i] = at)));
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
