// Keys, values and wanted weights as they are read from the state, and changes that keep them as many.
import { change } from "../../core/state";
import { rowsOf, textsOf } from "../../core/matrix";
import type { Coordinates, Tone } from "../../core/plane";
import type { SteerState } from "./state";

export const TONES: Tone[] = ["mark", "other", "good", "both", "warn", "bad"]; // as charts have them
export const toneOf = (key: number): Tone => TONES[key % TONES.length]!;
export const nameOf = (key: number): string => `key ${key}`;

/** The matrices of the state, whatever a link holds. */
export function read(state: SteerState) {
  return { keys: rowsOf(state.keys), values: rowsOf(state.values), query: textsOf(state.query), wanted: textsOf(state.wanted) };
}

/** A typed number at once, if it is a plain one; else what the server made of it last. */
export function numberOf(text: string | undefined, last: number | undefined): number {
  const found = text?.trim() ? Number(text) : NaN;
  return Number.isFinite(found) ? found : (last ?? 0);
}

/** The place of a row of two numbers. */
export function placeOf(row: string[] | undefined, last: number[] | undefined): Coordinates {
  return [numberOf(row?.[0], last?.[0]), numberOf(row?.[1], last?.[1])];
}

/** New keys: values and wanted weights get as many rows, the query as many numbers. */
export function setKeys(state: SteerState, keys: string[][]): void {
  const { values, query, wanted } = read(state);
  const many = keys.length;
  const wide = values[0]?.length ?? 0;
  const patch: Partial<SteerState> = { keys };
  if (wide > 0 && values.length !== many) patch.values = keys.map((_, at) => values[at] ?? Array<string>(wide).fill("0"));
  if (wanted.length !== many) patch.wanted = keys.map((_, at) => wanted[at] ?? "0");
  if (query.length !== keys[0]!.length) patch.query = keys[0]!.map((_, at) => query[at] ?? "0");
  change(patch as SteerState);
}

/** A row of a matrix, moved on the plane. */
export function moved(rows: string[][], at: number, to: Coordinates): string[][] {
  return rows.map((row, index) => (index === at ? [String(to[0]), String(to[1])] : row));
}
