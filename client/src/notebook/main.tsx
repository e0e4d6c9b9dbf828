// The widget: what anywidget loads, one of it for every explorer on the page.
import { effect } from "@preact/signals";
import { render as put } from "preact";
import "temml/dist/Temml-Local.css";
import "../style.css";
import { connect, type WidgetModel } from "./channel";
import { Explorer } from "./explorer";
import { followTheme, isDark } from "./theme";

declare const STYLE: string; // of all that is shown, by the build

/** Shows a model in an element, apart from the style of the page; gives what takes it away again. */
function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const host = document.createElement("div");
  host.dataset.lmSuppressShortcuts = "true"; // JupyterLab's keys are not for what is typed here
  for (const event of ["keydown", "keyup", "keypress"]) host.addEventListener(event, (pressed) => pressed.stopPropagation());
  el.append(host);
  const root = host.attachShadow({ mode: "open" });
  const style = document.createElement("style"), place = document.createElement("div");
  style.textContent = STYLE;
  root.append(style, place);
  const ends = [connect(model), followTheme(el), effect(() => void (host.dataset.theme = isDark.value ? "dark" : "light"))];
  put(<Explorer model={model} />, place);
  return () => {
    put(null, place);
    for (const end of ends) end();
    host.remove();
  };
}

export default { render };
