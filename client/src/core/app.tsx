// The frame of everything: the menu of pages, undo, examples and questions, light and dark.
import { PAGES } from "../pages";
import { Live } from "./live";
import { canRedo, canUndo, here, linkTo, redo, undo, visit } from "./state";
import { ThemeButton } from "./theme";
import { Menus, Welcome } from "./menus";

export function App() {
  const { page, state } = here.value;
  const shown = PAGES.find((one) => one.name === page)!;
  const View = shown.view;
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
          >
            {one.title}
          </a>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        <h1 class="hidden">{shown.title}</h1>
        <Welcome />
        <View key={page} state={state} />
      </main>
      <Live />
    </>
  );
}
