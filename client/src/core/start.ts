// The page's menus, asked for once: the catalogue, the examples, the questions.
import { signal } from "@preact/signals";
import type { StartAnswer } from "../schema";
import { ask } from "./ask";

export const start = signal<StartAnswer | null>(null);
const AGAIN = 1000; // ms; a server that has just begun may be busy

function read(): void {
  void ask<StartAnswer>("start", {}).then(
    (answer) => (start.value = answer),
    () => window.setTimeout(read, AGAIN),
  );
}
read();
