// The page's menus, asked for once: the catalogue, the examples, the questions.
import { signal } from "@preact/signals";
import type { StartAnswer } from "../schema";
import { ask } from "./ask";

export const start = signal<StartAnswer | null>(null);
void ask<StartAnswer>("start", {}).then(
  (answer) => (start.value = answer),
  () => undefined,
);
