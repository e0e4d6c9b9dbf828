// The cells of what is seen: worked out in the page where that is quick, else counted by the server and sampled until then.
import { useEffect, useMemo, useState } from "preact/hooks";
import { current, useAnswer } from "../core/ask";
import { filled, pairsOf, received, type Cells, type Tiling } from "./cells";
import { Unable } from "./evaluate";
import { rowsOf, type Model } from "./model";
import { tilingOf, type View } from "./view";

const AT_ONCE = 1 << 18; // pairs that are looked at in a frame
const AT_REST = 1 << 23; // and once nothing has moved for a while
const REST = 200; // ms
const ROW = 1 << 17; // pairs that are counted when they are pointed at
const SAMPLES = 4; // along a side of a tile
const SQUARE = 2; // pixels of a cell while all its pairs are looked at
const TILES = 128; // along a side, beyond: whatever the screen, so that the same tiles are asked for

export interface Shown {
  cells: Cells | null;
  exact: boolean;
  reason: string; // why there is nothing, or nothing exact
}

/** What the question of a tile is made of, beside the tiles. */
export interface Asked {
  rule: string;
  other: string;
  numbers: { [name: string]: number | string };
  head: number;
  pixel: number[]; // of an image: whose keys
  slice: number;
}

export function useCells(model: Model, view: View, pixels: [number, number], asked: Asked | null): Shown {
  const down = model.down.length, across = model.across.length;
  const fine = tilingOf(view, down, across, pixels, SQUARE), tiling = tilingOf(view, down, across, [TILES, TILES], 1);
  const small = pairsOf(fine, down, across) <= AT_ONCE;
  const direct = useMemo(() => (small ? attempt(model, fine, Infinity) : null), [model, JSON.stringify(fine), small]);
  const question = direct?.cells || model.kind === "matrix" || !asked ? null : { ...asked, ...tiling };
  const reading = useAnswer("tiles", question);
  const answer = current(reading, question);
  const key = JSON.stringify(tiling);
  const counted = useMemo(() => answer && { cells: received(tiling, answer), exact: true, reason: "" }, [answer, key]);
  const bearable = pairsOf(tiling, down, across) <= AT_REST, rested = useRested(key, model) && bearable;
  const needed = !direct?.cells && !counted;
  const tried = useMemo(() => (needed ? attempt(model, tiling, rested ? Infinity : SAMPLES) : null), [model, key, needed, rested]);
  if (direct?.cells) return direct;
  if (counted) return counted;
  if (question && !reading.problem) return { ...tried!, reason: tried!.cells ? "" : "counting…" };
  return { ...tried!, reason: reading.problem?.message ?? (tried!.reason || (bearable ? "" : "zoom in for the exact share")) };
}

/** The cells as the page works them out, or why it does not. */
function attempt(model: Model, tiling: Tiling, samples: number): Shown {
  try {
    const cells = filled(tiling, [model.down.length, model.across.length], (columns) => rowsOf(model, model.across, columns, model.down), samples);
    return { cells, exact: cells.counts !== null, reason: "" };
  } catch (error) {
    if (!(error instanceof Unable)) throw error;
    return { cells: null, exact: false, reason: error.message };
  }
}

/** Whether what these say has stayed the same for a while. */
function useRested(key: string, model: Model): boolean {
  const [rested, setRested] = useState<unknown>(null);
  useEffect(() => {
    const waiting = setTimeout(() => setRested(key), REST);
    return () => {
      clearTimeout(waiting);
      setRested(null);
    };
  }, [key, model]);
  return rested === key;
}

export interface Count {
  counts: string[];
  pairs: string;
}

/** How many pairs of a part of the grid each rule attends; null while it is counted, undefined where nobody counts it. */
export function useCount(model: Model, part: Tiling | null, asked: Asked | null): Count | null | undefined {
  const most = model.kind === "matrix" ? AT_REST : ROW;
  const small = part !== null && pairsOf(part, model.down.length, model.across.length) <= most;
  const question = part === null || small || model.kind === "matrix" || !asked ? null : { ...asked, ...part };
  const reading = useAnswer("tiles", question);
  return useMemo(() => {
    if (question) return current(reading, question) ?? (reading.problem ? undefined : null);
    const cells = small && attempt(model, part, Infinity).cells;
    return cells ? { counts: cells.counts!, pairs: cells.pairs } : undefined;
  }, [model, JSON.stringify(part), reading.answer, reading.to, reading.problem]);
}
