// The examples, grouped by page; on a first visit they stand open above the page. Beside them the questions.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { PAGES } from "../pages";
import type { Example } from "../schema";
import "./menus.css";
import { Questions } from "./questions";
import { start, startFailed } from "./start";
import { here, visit, type State } from "./state";
import { store, stored } from "./stored";
import { prepares } from "./views";

const SEEN = "lattend-seen";
const OFFERED = 12;
const isFirstVisit = signal(!location.hash && stored(SEEN) === null);

export const titleOf = (page: string) => PAGES.find((one) => one.name === page)?.title ?? "";

/** The examples whose page there is. */
const examples = () => start.value?.examples.filter((example) => titleOf(example.page)) ?? [];
const open = (example: Example) => visit(example.page, example.state as State);

export function Menus() {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      const leaves = event instanceof KeyboardEvent ? event.key === "Escape" : !menu.current!.contains(event.target as Node);
      if (leaves && menu.current!.open) menu.current!.open = false;
    };
    addEventListener("pointerdown", close);
    addEventListener("keydown", close);
    return () => {
      removeEventListener("pointerdown", close);
      removeEventListener("keydown", close);
    };
  }, []);
  return (
    <div class="menus">
      <details ref={menu}>
        <summary>Examples</summary>
        <div class="menu">
          {startFailed.value && <p role="status">The examples could not be had from the server; asking again…</p>}
          {PAGES.map((page) => {
            const of = examples().filter((example) => example.page === page.name);
            return (
              of.length > 0 && (
                <div role="group" aria-label={page.title}>
                  <h2>{page.title}</h2>
                  {of.map((example) => (
                    <button
                      onClick={() => {
                        open(example);
                        menu.current!.open = false;
                      }}
                      {...prepares(page.name)}
                    >
                      {example.title}
                    </button>
                  ))}
                </div>
              )
            );
          })}
        </div>
      </details>
      <Questions />
    </div>
  );
}

/** What one could try, for who comes without a link for the first time; gone once a rule is typed or a page is left. */
export function Welcome() {
  const { page, state } = here.value, [first] = PAGES;
  const close = () => {
    store(SEEN, "yes");
    isFirstVisit.value = false;
  };
  const begun = page !== first!.name || state.rule !== first!.state.rule;
  useEffect(() => {
    if (begun && isFirstVisit.value) close();
  }, [begun]);
  if (!isFirstVisit.value || begun || !start.value) return null;
  return (
    <aside class="welcome" aria-label="Where to begin">
      <p>
        <span>Type who attends to whom: the grid, the exact count, the plan and the price follow. Or try one of these:</span>
        <button class="quiet" onClick={close}>close</button>
      </p>
      <div class="scroll">
        {mixed(examples()).slice(0, OFFERED).map((example) => (
          <button onClick={() => { close(); open(example); }} {...prepares(example.page)}>{example.title}</button>
        ))}
      </div>
    </aside>
  );
}

/** The first two, then one example of every page in turn, so that the first few show what there is. */
function mixed(all: Example[]): Example[] {
  const turns = new Map<Example, number>();
  const seen = new Map<string, number>();
  for (const example of all) {
    const turn = seen.get(example.page) ?? 0;
    turns.set(example, turn);
    seen.set(example.page, turn + 1);
  }
  const [first, second, ...rest] = all;
  return [first!, second!, ...rest.sort((one, other) => turns.get(one)! - turns.get(other)!)].filter(Boolean);
}
