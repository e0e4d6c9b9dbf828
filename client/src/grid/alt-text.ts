// A grid in words: for who cannot see it, and for what is under the pointer.
import { commas } from "./commas";
import type { Cells } from "./cells";
import { Unable } from "./evaluate";
import { coordinates, rowsOf, type Model, type Side } from "./model";

const LONGEST = 4096; // keys in a row that is described
const RUNS = 3;

/** A place along a side: "q = 7", or "pixel (1, 2)". */
export function placeText(side: Side, place: number): string {
  const at = coordinates(place, side).map((value) => commas(value));
  return side.names.length === 1 ? `${side.names[0]} = ${at[0]}` : `${side.names.join(", ")} = ${at.join(", ")}`;
}

/** Several places of a side: "q = 8 to 15". */
export function partText(side: Side, first: number, size: number): string {
  const last = Math.min(first + size, side.length) - 1;
  if (last === first) return placeText(side, first);
  if (side.names.length > 1) return `${side.title.split(" ")[0]} ${commas(first)} to ${commas(last)}`;
  return `${side.names[0]} = ${commas(first)} to ${commas(last)}`;
}

/** "0 to 3 and 7". */
export function runsText(row: ArrayLike<number>, length: number): string {
  const runs: string[] = [];
  const at = (place: number) => (row.length === 1 ? row[0] : row[place]) === 1;
  for (let from = 0; from < length; from++) {
    if (!at(from)) continue;
    let to = from;
    while (to + 1 < length && at(to + 1)) to++;
    runs.push(from === to ? String(from) : `${from} to ${to}`);
    from = to;
  }
  if (runs.length === 0) return "no key";
  const many = runs.length > 1 || runs[0]!.includes(" ");
  const shown = runs.slice(0, RUNS).join(", ") + (runs.length > RUNS ? ` and ${runs.length - RUNS} more runs` : "");
  return `${many ? "keys" : "key"} ${shown}`;
}

/** What is seen, in a few sentences. */
export function altText(model: Model, cells: Cells | null, exact: boolean): string {
  const names = model.rules.map(({ read }) => (read.name ? `${read.name}: ${read.text}` : read.text));
  const sizes = Object.entries(model.sizes).map(([name, value]) => `${name} = ${commas(value)}`);
  const said = [`${names.length === 1 ? "Grid of the rule" : "Two rules over each other, A:"} ${names.join(" and B: ")} at ${sizes.join(", ")}.`];
  if (model.kind === "pixel") said.push(`The keys of the query pixel (${model.query.join(", ")}).`);
  if (cells && exact && cells.counts) {
    const [a = "", b = "", both = ""] = cells.counts;
    const what = model.kind === "pixel" ? "pixels" : "pairs";
    said.push(model.rules.length === 1 ? `${a} of the ${cells.pairs} ${what} in view are attended.` : `Of the ${cells.pairs} ${what} in view, ${a} only by A, ${b} only by B, ${both} by both.`);
  }
  if (model.kind === "line" && model.rules.length === 1 && model.across.length <= LONGEST) said.push(...rowTexts(model));
  return said.join(" ");
}

/** The keys of the first query, of one in the middle, and of the last. */
function rowTexts(model: Model): string[] {
  const last = model.down.length - 1, keys = Float64Array.from({ length: model.across.length }, (_, i) => i);
  try {
    const row = rowsOf(model, model.across, keys, model.down)[0]!;
    const rows = [...new Set([0, Math.ceil(last / 2), last])].map((query) => `query ${query} attends to ${runsText(row(query), keys.length)}`);
    return [`${rows.join("; ")}.`.replace(/^q/, "Q")];
  } catch (error) {
    if (error instanceof Unable) return [];
    throw error;
  }
}
