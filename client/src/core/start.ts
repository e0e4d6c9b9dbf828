// The page's menus, asked for until they come: the catalogue, the examples, the questions.
import { signal } from "@preact/signals";
import type { StartAnswer } from "../schema";
import { ask } from "./ask";

const AGAIN = 1000; // ms; a server that has just begun may be busy

export const start = signal<StartAnswer | null>(null);
export const startFailed = signal(false);

/** Asks for them, again and again until they are here. */
export async function loadStart(): Promise<void> {
  try {
    start.value = await ask("start", {});
    startFailed.value = false;
  } catch {
    startFailed.value = true;
    setTimeout(() => void loadStart(), AGAIN);
  }
}
