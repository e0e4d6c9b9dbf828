// The cells of what is seen: worked out in the page where that is quick, else counted by the server and sampled until then.
import { useEffect, useMemo, useState } from "preact/hooks";
import { useAnswer } from "../core/ask";
import type { TilesAnswer } from "../schema";
import { filled, pairsOf, received, type Cells, type Tiling } from "./cells";
import { Unable } from "./evaluate";
import { rowsOf, type Model } from "./model";
import { tilingOf, type View } from "./view";

const AT_ONCE = 1 << 19; // pairs that are looked at in a frame
const AT_REST = 1 << 23; // and once nothing has moved for a while
const REST = 200; // ms
const SAMPLES = 4; // along a side of a tile
const SQUARE = 2; // pixels of a cell while all its pairs are looked at
const TILE = 3; // and beyond
const MOST_TILES = 128; // along a side

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
}

export function useCells(model: Model, view: View, pixels: [number, number], asked: Asked | null): Shown {
  const down = model.down.length, across = model.across.length;
  const fine = tilingOf(view, down, across, pixels, SQUARE);
  const small = pairsOf(fine, down, across) <= AT_ONCE;
  const tiling = small ? fine : tilingOf(view, down, across, pixels, TILE, MOST_TILES);
  const question = small || model.kind !== "line" || !asked ? null : { ...asked, ...tiling };
  const key = JSON.stringify([tiling, question && JSON.stringify(question)]);
  const reading = useAnswer<TilesAnswer>("tiles", question);
  const answer = question && reading.to === JSON.stringify(question) ? reading.answer : null;
  const rested = useRested(key, model) && pairsOf(tiling, down, across) <= AT_REST;
  const whole = small || rested;
  return useMemo(() => {
    if (answer) return { cells: received(tiling, answer), exact: true, reason: "" };
    try {
      const cells = filled(tiling, [down, across], (columns) => rowsOf(model, model.across, columns, model.down), whole ? Infinity : SAMPLES);
      return { cells, exact: cells.counts !== null, reason: reading.problem?.message ?? "" };
    } catch (error) {
      if (!(error instanceof Unable)) throw error;
      return { cells: null, exact: false, reason: error.message };
    }
  }, [model, key, answer, whole, reading.problem]);
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

/** How many pairs of a part of the grid each rule attends; null while it is not known. */
export function useCount(model: Model, part: Tiling | null, asked: Asked | null): { counts: string[]; pairs: string } | null {
  const small = part !== null && pairsOf(part, model.down.length, model.across.length) <= 1 << 17;
  const question = part === null || small || model.kind !== "line" || !asked ? null : { ...asked, ...part };
  const reading = useAnswer<TilesAnswer>("tiles", question);
  return useMemo(() => {
    if (part === null) return null;
    if (question) return reading.to === JSON.stringify(question) ? reading.answer : null;
    if (!small) return null;
    try {
      const { counts, pairs } = filled(part, [model.down.length, model.across.length], (columns) => rowsOf(model, model.across, columns, model.down));
      return { counts: counts!, pairs };
    } catch {
      return null;
    }
  }, [model, JSON.stringify(part), reading.answer, reading.to]);
}
