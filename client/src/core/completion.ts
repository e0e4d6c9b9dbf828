// What completions have in common: the word at the caret, and which names fit it.
import type { CatalogueRule } from "../schema";

/** The part of the word before the caret, the rest of it behind, and the characters that it takes. */
export function wordAt(text: string, caret: number): { word: string; rest: string; place: { start: number; end: number } } {
  const word = /[A-Za-z]\w*$/.exec(text.slice(0, caret))?.[0] ?? "";
  const rest = /^\w*/.exec(text.slice(caret))![0];
  return { word, rest, place: { start: caret - word.length, end: caret + rest.length } };
}

/** Those that begin with the word, then those that hold it, each once. */
export function fitting<T extends [string, ...unknown[]]>(known: T[], word: string): T[] {
  const lower = word.toLowerCase();
  const rank = ([name]: T) => (name.toLowerCase().startsWith(lower) ? 0 : lower.length > 2 && name.toLowerCase().includes(lower) ? 1 : 2);
  const seen = new Set<string>();
  return known
    .filter((one) => rank(one) < 2 && !seen.has(one[0]) && seen.add(one[0]))
    .sort((a, b) => rank(a) - rank(b));
}

type RuleName = [name: string, detail: string, label: string];

/** The name of a rule of the catalogue, and what else it is called. */
export function ruleNames(rule: CatalogueRule): RuleName[] {
  const brackets = rule.parameters.length ? `(${rule.parameters.join(", ")})` : "";
  return [
    [rule.name, rule.meaning, rule.name + brackets],
    ...rule.aliases.map((alias): RuleName => [alias, `${rule.name} by another name`, alias]),
  ];
}
