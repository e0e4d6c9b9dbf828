// What may be meant at the caret of a rule: names of the catalogue, or the words of a condition.
import { fitting, ruleNames, wordAt } from "../../core/completion";
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

/** Completions at the caret. Unasked they show for the first word, and in a condition for one of two letters or more. */
export function completions(catalogue: CatalogueRule[], letters: Letter[], text: string, caret: number, asked: boolean): Completion[] {
  const { word, rest, place } = wordAt(text, caret);
  const before = text.slice(0, place.start);
  if (!asked && (rest || !word || (word.length < 2 && before.trim()))) return [];
  const call = /^\s*([A-Za-z]\w*)\s*\(([^()]*)$/.exec(before);
  const named = call && catalogue.find((rule) => rule.name === call[1]);
  if (named) return fitting(named.parameters.map((name) => [name, `a number for ${name}`]), word).map(([name, detail]) => ({ ...place, insert: `${name}=`, detail }));
  const rules = before.trim() ? [] : fitting(catalogue.flatMap(ruleNames), word).map(([name, detail, label]) => ({ ...place, insert: name, detail, label }));
  const own = letters.filter((letter) => !letter.size).map((letter): [string, string] => [letter.name, "a parameter of this rule"]);
  const image = /\b[qk][yxz]\b/.test(text);
  const known = [...(image ? IMAGE : LINE), ...own, ...WORDS, ...(image ? [] : IMAGE), ...HEAD];
  const words = !word && !asked ? [] : fitting(known, word).map(([insert, detail]) => ({ ...place, insert, detail }));
  const all = word || !asked ? [...rules, ...words] : [...words, ...rules];
  return all.some((one) => one.insert === word) && !asked ? [] : all;
}
