// What pages show: their code, fetched when a page is opened, or a moment before, when its entry is pointed at.
import { effect, signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { PAGES } from "../pages";
import type { View } from "./page";
import { here, type Place } from "./state";

const views = signal<{ [page: string]: View | "lost" }>({});
const underway = new Set<string>();

/** Fetches a page's code, unless it is here or under way. */
export async function prepare(name: string): Promise<void> {
  const page = PAGES.find((one) => one.name === name);
  if (!page || name in views.peek() || underway.has(name)) return;
  underway.add(name);
  const found = await page.load().then((module) => module.default, () => "lost" as const);
  underway.delete(name);
  if (found === "lost" && here.peek().page !== name) return; // it was only pointed at; opened, it is asked for again
  views.value = { ...views.peek(), [name]: found };
}

/** For a link to a page: fetches its code when it is pointed at or reached by keyboard. */
export const prepares = (name: string) => ({ onPointerEnter: () => void prepare(name), onFocus: () => void prepare(name) });

/** Keeps the code of the page that is open here, or on its way. */
export function followPage(): void {
  effect(() => void prepare(here.value.page));
}

/** The open page and its view; until its code is here, the page before, which `waits`. */
export function useView(): { shown: Place; view: View | "lost" | undefined; waits: boolean } {
  const place = here.value;
  const shown = useRef(place);
  const waits = !(place.page in views.value);
  if (!waits) shown.current = place;
  return { shown: shown.current, view: views.value[shown.current.page], waits };
}
