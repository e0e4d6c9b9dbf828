import { render } from "preact";
import "temml/dist/Temml-Local.css";
import "./style.css";
import { App } from "./core/app";
import { definePages, followLinks, redo, undo } from "./core/state";
import { PAGES } from "./pages";

definePages(PAGES);
followLinks();
window.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement && event.target.type === "text";
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || typing) return;
  event.preventDefault();
  if (event.shiftKey) redo();
  else undo();
});
const place = document.getElementById("app")!;
place.textContent = "";
render(<App />, place);
