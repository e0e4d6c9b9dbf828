// In a static export there is no server: the answers to the examples were recorded into answers.json.
import type { Problem } from "../schema";

interface Recorded {
  answer?: unknown;
  problem?: Problem;
}

const isExport = document.querySelector("meta[name=lattend-recorded]") !== null;
let answers: Promise<{ [key: string]: Recorded }> | null = null;

/** The recorded answer; null where there is a server to ask. */
export async function recorded(panel: string, question: object): Promise<Recorded | null> {
  if (!isExport) return null;
  answers ??= fetch("answers.json").then((response) => response.json() as Promise<{ [key: string]: Recorded }>);
  const found = (await answers)[`${panel} ${canonical(question)}`];
  const message = "this page is a recording of its examples; `pip install 'lattend[web]'`, then `lattend serve`, answers what you type";
  return found ?? { problem: { kind: "no answer", message, field: "", text: "", start: 0, end: 0, fixes: [] } };
}

/** JSON with the fields in alphabetical order, as the export writes it. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, held]) => `${JSON.stringify(name)}:${canonical(held)}`).join(",")}}`;
}
