// What may be meant at the caret of a rule: names of the catalogue, or the words of a condition.
import type { Completion } from "../../core/text-field";
import type { CatalogueRule, Letter } from "../../schema";

const WORDS: [string, string][] = [
  ["and", "both hold"],
  ["or", "one holds, or both"],
  ["not", "it does not hold"],
  ["abs", "abs(q - k): the distance"],
  ["min", "min(q, t): the smaller"],
  ["max", "max(q, t): the greater"],
];
const LINE: [string, string][] = [
  ["q", "position of the query, from 0"],
  ["k", "position of the key, from 0"],
  ["n", "sequence length"],
];
const IMAGE: [string, string][] = [
  ["qy", "row of the query"],
  ["qx", "column of the query"],
  ["ky", "row of the key"],
  ["kx", "column of the key"],
  ["rows", "height of the image"],
  ["cols", "width of the image"],
];
const HEAD: [string, string][] = [
  ["head", "number of the head, from 0"],
  ["heads", "number of heads"],
];

/** Completions at the caret. While a condition is typed they show only for a word of two letters or more. */
export function completions(catalogue: CatalogueRule[], letters: Letter[], text: string, caret: number, asked: boolean): Completion[] {
  const word = /[A-Za-z][A-Za-z0-9_]*$/.exec(text.slice(0, caret))?.[0] ?? "";
  const rest = /^[A-Za-z0-9_]*/.exec(text.slice(caret))![0];
  const start = caret - word.length;
  const before = text.slice(0, start);
  if ((rest && !asked) || (word.length < 2 && !asked && before.trim())) return [];
  const place = { start, end: caret + rest.length };
  const call = /^\s*([A-Za-z]\w*)\s*\(([^()]*)$/.exec(before);
  const named = call && catalogue.find((rule) => rule.name === call[1]);
  if (named) return fitting(named.parameters.map((name) => [name, `a number for ${name}`]), word).map(([name, detail]) => ({ ...place, insert: `${name}=`, detail }));
  const rules = before.trim() ? [] : fitting(catalogue.flatMap(entries), word).map(([name, detail, label]) => ({ ...place, insert: name, detail, label }));
  const own = letters.filter((letter) => !letter.size).map((letter): [string, string] => [letter.name, "a parameter of this rule"]);
  const image = /\b[qk][yxz]\b/.test(text);
  const known = [...(image ? IMAGE : LINE), ...own, ...WORDS, ...(image ? [] : IMAGE), ...HEAD];
  const words = !word && !asked ? [] : fitting(known, word).map(([insert, detail]) => ({ ...place, insert, detail }));
  const all = word || !asked ? [...rules, ...words] : [...words, ...rules];
  return all.some((one) => one.insert === word) && !asked ? [] : all;
}

type Entry = [name: string, detail: string, label: string];

function entries(rule: CatalogueRule): Entry[] {
  const brackets = rule.parameters.length ? `(${rule.parameters.join(", ")})` : "";
  return [
    [rule.name, rule.meaning, rule.name + brackets],
    ...rule.aliases.map((alias): Entry => [alias, `${rule.name} by another name`, alias]),
  ];
}

/** Those that begin with the word, then those that hold it, each once. */
function fitting<T extends [string, ...string[]]>(known: T[], word: string): T[] {
  const lower = word.toLowerCase();
  const rank = ([name]: T) => (name.toLowerCase().startsWith(lower) ? 0 : lower.length > 2 && name.toLowerCase().includes(lower) ? 1 : 2);
  const seen = new Set<string>();
  return known
    .filter((one) => rank(one) < 2 && !seen.has(one[0]) && seen.add(one[0]))
    .sort((a, b) => rank(a) - rank(b));
}
