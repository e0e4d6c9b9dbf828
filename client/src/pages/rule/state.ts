// What the rule page holds, and what its panels share.
import { signal } from "@preact/signals";
import type { Reading } from "../../core/ask";
import type { ReadAnswer } from "../../schema";

export type Numbers = { [name: string]: number | string }; // a text where a number has more than 53 bits

export type RuleState = {
  rule: string;
  other: string; // a second rule to compare with; "" for none
  numbers: Numbers; // of the letters that have one
  layers: number; // of the stack whose receptive field is shown
  claim: string;
  per: string; // what a claim counts: "" for all pairs, "query" or "key"
  assume: string;
  first: number; // the first position, 0 or 1
  rename: { [name: string]: string };
  device: string;
  dtype: string;
  head_dim: number;
  heads: number;
  kv_heads: number; // 0 for as many as heads
  batch: number;
  kernel: string; // "" for the best
  tiles_view: number[]; // what the map of tiles shows: first query, end of queries, first key, end of keys; [] for all
  view: number[]; // the part of the grid that is seen: [top, left, width] in positions; [] for all of it
  pixel: number[]; // of an image: the query whose keys are shown; [] for the one in the middle
  slice: number; // of a volume: the slice of keys that is shown; -1 for the query's own
  head: number;
  runs: boolean; // whether what the plan computes is outlined on the grid
  flat: boolean; // of an image: whether all queries are shown against all keys
};

export const START: RuleState = {
  rule: "k <= q and q - k <= t",
  other: "",
  numbers: {},
  layers: 2,
  claim: "",
  per: "",
  assume: "",
  first: 0,
  rename: {},
  device: "cpu",
  dtype: "float32",
  head_dim: 64,
  heads: 8,
  kv_heads: 0,
  batch: 1,
  kernel: "",
  tiles_view: [],
  view: [],
  pixel: [],
  slice: -1,
  head: 0,
  runs: false,
  flat: false,
};

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
