// In a static export there is no server: the answers to the examples were recorded into answers.json.
import type { Problem } from "../schema";

interface Recorded {
  answer?: unknown;
  problem?: Problem;
}

export const isExport = document.querySelector("meta[name=lattend-recorded]") !== null;
interface Recording {
  defaults: { [panel: string]: { [field: string]: unknown } };
  answers: { [key: string]: Recorded };
}
let recording: Promise<Recording> | null = null;
const ONLY_EXAMPLES =
  "this site has the answers to its examples only; `pip install 'lattend[web]'`, then `lattend serve`, answers what you type";

/** The recorded answer; null where there is a server to ask. */
export async function recorded(panel: string, question: object): Promise<Recorded | null> {
  if (!isExport) return null;
  recording ??= fetch("answers.json").then((response) => response.json() as Promise<Recording>);
  const { defaults, answers } = await recording;
  const byDefault = defaults[panel] ?? {};
  const given = Object.entries(question).filter(([field, value]) => !(field in byDefault) || canonical(value) !== canonical(byDefault[field]));
  const found = answers[`${panel} ${canonical(Object.fromEntries(given))}`];
  return found ?? { problem: { kind: "no answer", message: ONLY_EXAMPLES, field: "", text: "", start: 0, end: 0, fixes: [] } };
}

/** JSON with the fields in alphabetical order, as the export writes it. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, held]) => `${JSON.stringify(name)}:${canonical(held)}`).join(",")}}`;
}
