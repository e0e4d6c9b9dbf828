// What the rule page holds, and what its panels share.
import { signal } from "@preact/signals";
import type { Reading } from "../../core/ask";
import { BEGIN, type ReadAnswer } from "../../schema";

export type Numbers = { [name: string]: number | string }; // a text where a number has more than 53 bits

export const START = {
  rule: "k <= q and q - k <= t",
  claim: "",
  ...BEGIN.field,
  ...BEGIN.claim,
  ...BEGIN.tile_map,
  ...BEGIN.draw,
  view: [] as number[], // the part of the grid that is seen: [top, left, width] in positions; [] for all of it
  layers: 2,
  pixel: [] as number[], // of an image: the query whose keys are shown; [] for the one in the middle
  slice: -1, // of a volume: the slice of keys that is shown; -1 for the query's own
  head: 0,
  runs: false, // whether what the plan computes is outlined on the grid
};

export type RuleState = typeof START;

/** Of fields whose start does not tell: what a link may hold. */
export const LIKE = { rename: { n: "" }, tiles_view: [0], view: [0], pixel: [0] };

/** What every panel of the page gets: the state, and what the two rules' texts mean. */
export interface RuleProps {
  state: RuleState;
  read: Reading<ReadAnswer>;
  other: Reading<ReadAnswer>;
}

/** A pair that a panel points at, by its coordinates: q and k, or qy, qx, ky and kx. */
export interface Mark {
  pair: { [position: string]: number };
  label: string;
}

/** Part of the rule's text that decides about the square under the pointer; its field shows it. */
export const hoveredSpan = signal<[number, number] | null>(null);
/** Pairs that panels point at, each panel under its name; the grid shows them. */
export const marks = signal<{ [panel: string]: Mark[] }>({});
