// Words with formulas among them.
import type { Run } from "../schema";
import { Formula } from "./formula";

export type Words = string | Run[];

export function WordsView({ words }: { words: Words }) {
  if (typeof words === "string") return <>{words}</>;
  return <>{words.map((run) => (run.latex ? <Formula latex={run.latex} /> : run.text))}</>;
}

/** The same as one text. */
export function textOf(words: Words): string {
  return typeof words === "string" ? words : words.map((run) => run.text).join("");
}
