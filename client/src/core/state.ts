// What the page shows: one page at a time, each with its own state. A link carries the state, undo goes back.
import { computed, signal } from "@preact/signals";
import { FIELDS } from "../schema";
import { wholeNumber } from "./whole-number";

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
export type State = { [field: string]: Json };
export interface Place {
  page: string;
  state: State;
}

const defaults: { [page: string]: State } = {};
const shapes: { [page: string]: State } = {}; // values like those that a link may hold
let fallback = "";
const kept = new Map<string, State>(); // of pages that were left
const undone = signal<Place[]>([]);
const done = signal<Place[]>([]);
let last = { field: "", time: 0 };

export const here = signal<Place>({ page: "", state: {} });
export const leftOut = signal(""); // what the last link held and the page does not
export const canUndo = computed(() => done.value.length > 0);
export const canRedo = computed(() => undone.value.length > 0);

const COALESCED = 700; // ms in which changes of one field are one step of undo
const STEPS = 200;
const LETTER = /^[A-Za-z]\w{0,20}$/;

/** Says which pages there are, with the state each begins with; the first is shown where a link names none. */
export function definePages(pages: readonly { name: string; state: State; like?: { [field: string]: Json | undefined } }[]): void {
  for (const { name, state, like } of pages) {
    defaults[name] = state;
    shapes[name] = { ...state, ...like } as State;
  }
  fallback = pages[0]!.name;
}

/** Changes fields of the page that is shown; a click, unlike typing, is always a step of undo of its own. */
export function change(patch: State, click = false): void {
  const field = Object.keys(patch).join();
  const now = performance.now();
  const { page, state } = here.value;
  if (click || field !== last.field || now - last.time > COALESCED) remember();
  last = click ? { field: "", time: 0 } : { field, time: now };
  here.value = { page, state: { ...state, ...patch } };
  writeLink("replace");
}

/** Shows a page, with this state, or as it was left. */
export function visit(page: string, state?: State): void {
  leftOut.value = "";
  finishLink();
  remember();
  last = { field: "", time: 0 };
  kept.set(here.value.page, here.value.state);
  here.value = { page, state: state ? { ...defaults[page], ...state } : (kept.get(page) ?? defaults[page]!) };
  writeLink("push");
}

function remember(): void {
  done.value = [...done.value.slice(-STEPS), here.value];
  undone.value = [];
}

export function undo(): void {
  step(done, undone);
}

export function redo(): void {
  step(undone, done);
}

function step(from: typeof done, to: typeof done): void {
  const place = from.value.at(-1);
  if (!place) return;
  from.value = from.value.slice(0, -1);
  to.value = [...to.value, here.value];
  last = { field: "", time: 0 };
  finishLink();
  const turned = place.page !== here.value.page;
  here.value = place;
  writeLink(turned ? "push" : "replace");
}

type Asked<Panel extends keyof typeof FIELDS, S> = Pick<S, Extract<(typeof FIELDS)[Panel][number], keyof S>>;

/** The question of a panel: the fields of a page's state that the question has. */
export function questionOf<Panel extends keyof typeof FIELDS, S extends object>(panel: Panel, state: S): Asked<Panel, S> {
  const fields: readonly string[] = FIELDS[panel];
  const held = fields.filter((field) => field in state);
  return Object.fromEntries(held.map((field) => [field, state[field as keyof S]])) as Asked<Panel, S>;
}

/** `#rule?rule=causal&numbers={"n":8}`: the fields that differ from those a page begins with. */
export function linkTo(place: Place): string {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(place.state)) {
    if (JSON.stringify(value) !== JSON.stringify(defaults[place.page]?.[name]))
      fields.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  const text = fields.toString();
  return `#${place.page}${text && "?" + text}`;
}

/** The place that a link names. What it holds is data: unknown pages and fields, and values of another kind, are left
 * out, which is said. Where a page has numbers, `n=200` is one of them. */
export function placeOf(hash: string): Place {
  const [name = "", text = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const page = Object.hasOwn(defaults, name) ? name : fallback;
  const state: State = { ...defaults[page] };
  const numbers: State = {}, lost: string[] = [];
  for (const [field, value] of new URLSearchParams(text)) {
    const read = readValue(value, shapes[page]![field]);
    const number = "numbers" in state && LETTER.test(field) ? wholeNumber(value) : undefined;
    if (Object.hasOwn(state, field) && read !== undefined) state[field] = read;
    else if (!Object.hasOwn(state, field) && number != null) numbers[field] = number;
    else lost.push(field);
  }
  if (Object.keys(numbers).length) state.numbers = { ...(state.numbers as State), ...numbers };
  leftOut.value = name && page !== name ? `There is no page ${cut(name)}; this is the first one.` : lost.length ? `Left out of the link, as this page has no such field or value: ${lost.map(cut).join(", ")}.` : "";
  return { page, state };
}

/** What a field of a link holds, undefined where it is not like what the page has there. */
function readValue(text: string, like: Json | undefined): Json | undefined {
  if (typeof like === "string" || like === undefined) return like === undefined ? undefined : text;
  try {
    const read = JSON.parse(text) as Json;
    return fits(read, like) ? read : undefined;
  } catch {
    return undefined;
  }
}

const cut = (text: string) => (text.length > 30 ? `${text.slice(0, 29)}…` : text);

/** Whether a value is of the kind of this one, and each of its parts of the kind of some part of it; where it has none, of any. */
function fits(value: Json, like: Json): boolean {
  if (like === null || typeof like !== "object") return typeof value === typeof like;
  if (value === null || typeof value !== "object" || Array.isArray(value) !== Array.isArray(like)) return false;
  const kinds = Object.values(like) as Json[];
  return kinds.length === 0 || Object.values(value).every((part: Json) => kinds.some((one) => fits(part, one)));
}

let writing = 0;
function writeLink(how: "push" | "replace"): void {
  clearTimeout(writing);
  writing = 0;
  if (how === "push") history.pushState(null, "", linkTo(here.value));
  else writing = window.setTimeout(finishLink, 200); // browsers limit how often
}

/** Writes the link that waits to be written, while the address is still that of its page. */
function finishLink(): void {
  if (!writing) return;
  clearTimeout(writing);
  writing = 0;
  history.replaceState(null, "", linkTo(here.value));
}

/** Follows the address bar: at the start, on Back and Forward, and when a link is pasted. */
export function followLinks(first?: Place): void {
  here.value = location.hash || !first ? placeOf(location.hash) : { page: first.page, state: { ...defaults[first.page], ...first.state } };
  window.addEventListener("pagehide", finishLink);
  window.addEventListener("popstate", () => {
    clearTimeout(writing);
    writing = 0;
    remember();
    here.value = placeOf(location.hash);
  });
}
