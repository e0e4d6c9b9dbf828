// The state of the page of worked attention, and which numbers another number is made of.
import { BEGIN, type NumberView, type StepView } from "../../schema";

export const START = {
  ...BEGIN.check,
  tokens: [["1", "2"], ["2", "0"], ["0", "1"], ["1", "1"]],
  wq: [["1", "0"], ["0", "1"]], // [] for the identity
  wk: [["1", "0"], ["0", "0"]],
  wv: [["0", "0"], ["0", "1"]],
  show: "both", // or "exact", or "decimal"
  practice: false,
};

export type WorkState = typeof START;

const ROWS = [["", 0]]; // rows of texts or numbers
/** Of fields whose start does not tell: what a link may hold. */
export const LIKE = { tokens: ROWS, wq: ROWS, wk: ROWS, wv: ROWS, wo: ROWS, memory: ROWS, q: ROWS, k: ROWS, v: ROWS, answer: { scores: [[[""]]] } };


/** Whether queries, keys and values are given themselves. */
export const isDirect = ({ q, k, v }: WorkState): boolean => [q, k, v].some((rows) => rows.length > 0);

/** A number of a step, or of what is given. */
export interface NumberPlace {
  name: string;
  head: number;
  row: number;
  column: number;
}

export const isSame = (one: NumberPlace | null, other: NumberPlace) =>
  one !== null && one.name === other.name && one.head === other.head && one.row === other.row && one.column === other.column;

/** The number at a place of these steps. */
export function numberAt(steps: StepView[], place: NumberPlace | null): NumberView | null {
  if (!place) return null;
  return steps.find((step) => step.name === place.name)?.tables[place.head]?.[place.row]?.[place.column] ?? null;
}

/** Whether a number is one of those that the pointed one is made of. */
export function isSource(pointed: NumberView | null, { name, head, row, column }: NumberPlace): boolean {
  return (pointed?.sources ?? []).some(
    (source) => source.name === name && source.head === head && (source.row ?? row) === row && (source.column ?? column) === column,
  );
}

/** Where a cell of a matrix that heads share belongs: its head, and its row and column there. */
export function sharedPlace(name: string, cells: string[][], heads: number, columns: boolean, row: number, column: number): NumberPlace {
  const direct = ["q", "k", "v"].includes(name);
  const shares = heads > 1 && (direct || ["wq", "wk", "wv"].includes(name));
  if (direct) columns = false;
  const width = shares ? Math.max(1, Math.floor((columns ? cells.length : (cells[0]?.length ?? 1)) / heads)) : Infinity;
  const head = shares ? Math.floor((columns ? row : column) / width) : 0;
  return shares ? { name, head, row: columns ? row % width : row, column: columns ? column : column % width } : { name, head, row, column };
}
