// A page: a name for links, a title for the menu, the state it begins with, and the module of what it shows.
import type { ComponentType } from "preact";
import type { Json, State } from "./state";

export type View<S extends State = State> = ComponentType<{ state: S }>;

export interface Page {
  name: string;
  title: string;
  state: State;
  like?: { [field: string]: Json | undefined };
  load: () => Promise<{ default: View }>;
}

/** What a page's state.ts tells: how it begins, and of fields that begin empty or hold several kinds a value like those
 * that a link may hold; [] and {} for any. */
interface Begins<S extends State> {
  START: S;
  LIKE?: { [field in keyof S]?: Json };
}

/** A page; its view takes the state that its state.ts begins with. */
export function definePage<S extends State>(name: string, title: string, { START, LIKE }: Begins<S>, load: () => Promise<{ default: View<S> }>): Page {
  return { name, title, state: START, ...(LIKE && { like: LIKE }), load: load as unknown as Page["load"] };
}
