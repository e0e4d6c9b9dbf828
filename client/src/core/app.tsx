// The frame of everything: the menu of pages, undo, examples and questions, light and dark.
import { useEffect, useRef } from "preact/hooks";
import { PAGES } from "../pages";
import { Guard } from "./guard";
import { Live } from "./live";
import { canRedo, canUndo, here, leftOut, linkTo, redo, undo, visit } from "./state";
import { loadStart } from "./start";
import { ThemeButton } from "./theme";
import { Menus, titleOf, Welcome } from "./menus";
import { prepares, useView } from "./views";

export function App() {
  const { page } = here.value;
  const title = titleOf(page);
  useEffect(() => void loadStart(), []);
  const heading = useOpened(page, title);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")!.focus(); }}>
        Skip to the page
      </a>
      <header class="top">
        <a class="logo" href="#" onClick={(event) => { event.preventDefault(); visit(PAGES[0]!.name, {}); }}>
          Lattend
        </a>
        <Menus />
        <span class="grow" />
        <button class="quiet" onClick={undo} disabled={!canUndo.value} title="Undo (Ctrl+Z)">Undo</button>
        <button class="quiet" onClick={redo} disabled={!canRedo.value} title="Redo (Ctrl+Shift+Z)">Redo</button>
        <ThemeButton />
      </header>
      <nav aria-label="Pages">
        {PAGES.map((one) => (
          <a
            href={linkTo({ page: one.name, state: one.state })}
            aria-current={one.name === page ? "page" : undefined}
            onClick={(event) => { event.preventDefault(); visit(one.name); }}
            {...prepares(one.name)}
          >
            {one.title}
          </a>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        <h1 class="hidden" tabIndex={-1} ref={heading}>{title}</h1>
        <LeftOut />
        <Welcome />
        <Opened />
      </main>
      <Live />
    </>
  );
}

/** What of a link was not read. */
function LeftOut() {
  return leftOut.value ? (
    <p class="left-out" role="status">
      {leftOut.value}
      <button class="quiet" onClick={() => (leftOut.value = "")}>close</button>
    </p>
  ) : null;
}

/** What the open page shows; while its code is on its way the page before stands there, and takes no input. */
function Opened() {
  const { shown, view: View, waits } = useView();
  return (
    <div inert={waits} aria-busy={waits} data-page={shown.page}>
      {View === "lost" && (
        <div class="problem" role="alert">
          <p>This page could not be fetched; is `lattend serve` still running?</p>
          <button onClick={() => location.reload()}>Fetch it again</button>
        </div>
      )}
      {View && View !== "lost" && (
        <Guard key={shown.page} of={shown.state}>
          <View state={shown.state} />
        </Guard>
      )}
    </div>
  );
}

/** Names the window after the page, and goes to its heading when another page is opened. */
function useOpened(page: string, title: string) {
  const heading = useRef<HTMLHeadingElement>(null);
  const first = useRef(true);
  useEffect(() => {
    document.title = `${title} · Lattend`;
    const link = document.querySelector<HTMLElement>("nav [aria-current]")!;
    const menu = link.parentElement!;
    menu.scrollLeft = link.offsetLeft - menu.clientWidth / 2; // in a narrow window; scrollIntoView would let Tab begin at the link
    if (!first.current) heading.current!.focus();
    first.current = false;
  }, [page]);
  return heading;
}
