// A page: a name for links, a title for the menu, the state it begins with, and what it shows.
import type { ComponentType } from "preact";
import type { Json, State } from "./state";

export interface Page<S extends State = State> {
  name: string;
  title: string;
  state: S;
  like?: { [field in keyof S]?: Json }; // of fields that begin empty or hold several kinds: a value like those that a link may hold; [] and {} for any
  view: ComponentType<{ state: S }>;
}

/** A page whose state has its own type. */
export function definePage<S extends State>(page: Page<S>): Page {
  return page as unknown as Page;
}
