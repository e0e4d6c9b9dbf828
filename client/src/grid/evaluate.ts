// A rule's condition in the page: exact whole numbers, a whole row of positions at a time, as NumPy does it.
//
// Every part of the condition has an array for its values: as long as the row, or 1 long where they are all alike.
// What does not change from row to row is worked out once.

export type TextSpan = [number, number] | null; // the characters a node was read from

/** A node as the server gives it: its kind, its parts, its characters. */
export type Tree =
  | ["num", number, TextSpan]
  | ["name", string, TextSpan]
  | ["truth", boolean, TextSpan]
  | ["entry", string, Tree[], TextSpan]
  | ["arith", string, Tree[], TextSpan]
  | ["compare", string, [Tree, Tree], TextSpan]
  | ["and", Tree[], TextSpan]
  | ["or", Tree[], TextSpan]
  | ["not", Tree, TextSpan];

export type Values = { [name: string]: number };
export type Arrays = { [name: string]: unknown[] }; // nested, as the server gives them

/** Why the page does not work a rule out, for a person. */
export class Unable extends Error {}

/** 1 where the condition holds and 0 where it does not, along a row; 1 long where the whole row is alike. */
export type Row = Float64Array;

interface Evaluated {
  values: Float64Array;
  low: number;
  high: number;
  moves: boolean; // whether it differs from row to row
}

const LARGEST = Number.MAX_SAFE_INTEGER;

/**
 * The condition as a function of the positions `across`, which differ from row to row; it gives a row of truths over
 * the positions `along`. The array it gives is its own, and holds until the next call.
 */
export function sweep(
  tree: Tree,
  arrays: Arrays,
  values: Values,
  along: { [name: string]: Float64Array },
  across: { [name: string]: [number, number] }, // the least and the greatest of each
): (...places: number[]) => Row {
  const steps: (() => void)[] = [];
  const slots = Object.entries(across).map(([name, [low, high]]) => [name, { values: new Float64Array(1), low, high, moves: true }] as const);
  const named = new Map<string, Evaluated>(slots);
  for (const [name, row] of Object.entries(along)) named.set(name, { values: row, ...ends(row), moves: false });
  const data = new Map(Object.entries(arrays).map(([name, array]) => [name, flattened(array)]));

  function work(parts: Evaluated[], [low, high]: readonly [number, number], step: (out: Float64Array) => void): Evaluated {
    if (!(low >= -LARGEST && high <= LARGEST)) throw new Unable("numbers beyond 2^53 are more than the page works with");
    const values = new Float64Array(Math.max(1, ...parts.map((part) => part.values.length)));
    const part = { values, low, high, moves: parts.some((part) => part.moves) };
    const run = () => step(values);
    if (part.moves) steps.push(run);
    else run();
    return part;
  }

  function both(op: string, a: Evaluated, b: Evaluated): Evaluated {
    const loop = LOOPS[op]!, left = mask(a), right = mask(b);
    return work([a, b], BOUNDS[op]?.(a, b) ?? [0, 1], (out) => loop(out, a.values, b.values, left, right));
  }

  function built(node: Tree): Evaluated {
    switch (node[0]) {
      case "num":
        return constant(node[1]);
      case "truth":
        return constant(Number(node[1]));
      case "name": {
        const found = named.get(node[1]);
        if (found) return found;
        if (!Object.hasOwn(values, node[1])) throw new Unable(`no value is given for ${node[1]}`);
        return constant(values[node[1]]!, node[1]);
      }
      case "entry":
        return entry(node[1], node[2].map(built));
      case "not": {
        const part = built(node[1]);
        return both("==", part, constant(0));
      }
      case "and":
      case "or":
        return node[1].map(built).reduce((a, b) => both(node[0], a, b));
      case "compare":
        return both(node[1], built(node[2][0]), built(node[2][1]));
      case "arith": {
        const parts = node[2].map(built);
        if (parts.length === 1) return both(node[1], parts[0]!, parts[0]!);
        return parts.reduce((a, b) => both(node[1], a, b));
      }
    }
  }

  function entry(name: string, places: Evaluated[]): Evaluated {
    const array = data.get(name);
    if (!array || array.shape.length !== places.length) throw new Unable(`the array ${name} is too long for the page`);
    const masks = places.map(mask);
    return work(places, [array.low, array.high], (out) => {
      for (let i = 0; i < out.length; i++) {
        let at = 0;
        for (let axis = 0; axis < places.length; axis++) {
          const place = places[axis]!.values[i & masks[axis]!]!, length = array.shape[axis]!;
          if (place < 0 || place >= length) throw new Unable(`${name} is read at ${place}, outside 0 to ${length - 1}`);
          at = at * length + place;
        }
        out[i] = array.entries[at]!;
      }
    });
  }

  const whole = built(tree);
  return (...places) => {
    slots.forEach(([, part], i) => (part.values[0] = places[i]!));
    for (const step of steps) step();
    return whole.values;
  };
}

/** Whether a condition holds where every name has a value. */
export function holds(tree: Tree, arrays: Arrays, values: Values): boolean {
  return sweep(tree, arrays, values, {}, {})()[0] === 1;
}

function constant(value: number, name?: string): Evaluated {
  if (!Number.isSafeInteger(value)) throw new Unable(name ? `${name} is more than the page works with` : "numbers beyond 2^53 are more than the page works with");
  return { values: Float64Array.of(value), low: value, high: value, moves: false };
}

/** What an index is cut with: nothing of a row, and to 0 where there is one value for all. */
function mask(part: Evaluated): number {
  return part.values.length === 1 ? 0 : -1;
}

function ends(row: Float64Array): { low: number; high: number } {
  let low = Infinity, high = -Infinity;
  for (const value of row) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return { low, high };
}

function flattened(array: unknown[]): { entries: Float64Array; shape: number[]; low: number; high: number } {
  const shape: number[] = [];
  for (let part: unknown = array; Array.isArray(part); part = part[0]) shape.push(part.length);
  const entries = Float64Array.from(array.flat(Infinity as 1) as (number | boolean)[], Number);
  return { entries, shape, ...ends(entries) };
}

type Loop = (out: Float64Array, a: Float64Array, b: Float64Array, left: number, right: number) => void;

function divisor(by: number): number {
  if (by >= 1) return by;
  throw new Unable(`a divisor is ${by}, and it must be at least 1`);
}

// Quotients of numbers below 2^53 never round up to the next whole number, so that their floor is exact.
const LOOPS: { [op: string]: Loop } = {
  "+": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = a[i & l]! + b[i & r]!; },
  "-": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = a[i & l]! - b[i & r]!; },
  "*": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = a[i & l]! * b[i & r]!; },
  "//": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = Math.floor(a[i & l]! / divisor(b[i & r]!)); },
  "%": (out, a, b, l, r) => {
    for (let i = 0; i < out.length; i++) {
      const value = a[i & l]!, by = divisor(b[i & r]!);
      out[i] = value - by * Math.floor(value / by);
    }
  },
  "min": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = Math.min(a[i & l]!, b[i & r]!); },
  "max": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = Math.max(a[i & l]!, b[i & r]!); },
  "neg": (out, a) => { for (let i = 0; i < out.length; i++) out[i] = -a[i]!; },
  "abs": (out, a) => { for (let i = 0; i < out.length; i++) out[i] = Math.abs(a[i]!); },
  "<": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = a[i & l]! < b[i & r]! ? 1 : 0; },
  "<=": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = a[i & l]! <= b[i & r]! ? 1 : 0; },
  "==": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = a[i & l] === b[i & r] ? 1 : 0; },
  "!=": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = a[i & l] !== b[i & r] ? 1 : 0; },
  ">=": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = a[i & l]! >= b[i & r]! ? 1 : 0; },
  ">": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = a[i & l]! > b[i & r]! ? 1 : 0; },
  "and": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = a[i & l]! & b[i & r]!; },
  "or": (out, a, b, l, r) => { for (let i = 0; i < out.length; i++) out[i] = a[i & l]! | b[i & r]!; },
};

type Ends = { low: number; high: number };

/** Between which numbers the values of an operation lie; of a comparison, 0 and 1. */
const BOUNDS: { [op: string]: (a: Ends, b: Ends) => [number, number] } = {
  "+": (a, b) => [a.low + b.low, a.high + b.high],
  "-": (a, b) => [a.low - b.high, a.high - b.low],
  "*": (a, b) => around([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]),
  "//": (a, b) => around([a.low, a.high].flatMap((end) => [Math.floor(end / Math.max(1, b.low)), Math.floor(end / Math.max(1, b.high))])),
  "%": (_, b) => [0, Math.max(0, b.high - 1)],
  "min": (a, b) => [Math.min(a.low, b.low), Math.min(a.high, b.high)],
  "max": (a, b) => [Math.max(a.low, b.low), Math.max(a.high, b.high)],
  "neg": (a) => [-a.high, -a.low],
  "abs": (a) => [a.low <= 0 && a.high >= 0 ? 0 : Math.min(Math.abs(a.low), Math.abs(a.high)), Math.max(Math.abs(a.low), Math.abs(a.high))],
};

function around(found: number[]): [number, number] {
  return [Math.min(...found), Math.max(...found)];
}
