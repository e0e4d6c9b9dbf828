import { render } from "preact";
import "temml/dist/Temml-Local.css";
import "./style.css";
import { App } from "./core/app";
import { definePages, followLinks, redo, undo } from "./core/state";
import { followPage } from "./core/views";
import { PAGES } from "./pages";

definePages(PAGES);
followLinks();
followPage();
window.addEventListener("keydown", (event) => {
  const box = event.target as HTMLElement;
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || box.closest("dialog")) return;
  event.preventDefault();
  if (box instanceof HTMLInputElement) { // what is typed counts before it is taken back
    box.blur();
    box.focus();
  }
  if (event.shiftKey) redo();
  else undo();
});
const place = document.getElementById("app")!;
place.textContent = "";
render(<App />, place);
