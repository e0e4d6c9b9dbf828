// Which parts of a rule decide about a pair.
import { commas } from "./commas";
import { sweep, type Arrays, type TextSpan, type Tree, type Values } from "./evaluate";
import { holdsAt, pairAt, type Model } from "./model";

export interface Clause {
  text: string; // "q - k <= t"
  numbers: string; // "5 <= 3"
  holds: boolean;
  place: TextSpan;
}

/** The comparisons that decide: of a pair that is attended those that mark it, else those that exclude it. */
export function decidingAt(model: Model, which: number, pair: Values): Clause[] {
  const { read, values } = model.rules[which]!, at = { ...values, ...pair };
  const arrays = read.data as Arrays;
  return deciding(read.tree as Tree, (node) => holdsAt(model, which, pair, node)).map((leaf) => {
    const place = leaf.at(-1) as TextSpan;
    const numbers = leaf[0] === "compare" ? leaf[2].map((term) => commas(sweep(term, arrays, at, {}, {})()[0]!)).join(` ${leaf[1]} `) : "";
    const text = place && read.written ? read.written.slice(...place) : read.text;
    return { text, numbers, holds: holdsAt(model, which, pair, leaf), place };
  });
}

function deciding(node: Tree, truth: (node: Tree) => boolean): Tree[] {
  switch (node[0]) {
    case "not":
      return deciding(node[1], truth);
    case "and":
    case "or": {
      const decided = (node[0] === "or") === truth(node); // one part is enough
      return node[1].filter((part) => !decided || truth(part) === (node[0] === "or")).flatMap((part) => deciding(part, truth));
    }
    default:
      return [node];
  }
}

/** The characters of the first rule as typed that decide about a cell. */
export function spanAt(model: Model, { row, col }: { row: number; col: number }): [number, number] | null {
  try {
    return model.rules[0]!.read.source ? covering(decidingAt(model, 0, pairAt(model, row, col))) : null;
  } catch {
    return null; // the grid itself says why
  }
}

/** The characters from the first clause to the last. */
function covering(clauses: Clause[]): [number, number] | null {
  const places = clauses.flatMap(({ place }) => (place ? [place] : []));
  return places.length ? [Math.min(...places.map(([start]) => start)), Math.max(...places.map(([, end]) => end))] : null;
}
