// One line at the bottom of the page, read aloud by screen readers: "LaTeX copied".
import { signal } from "@preact/signals";

const message = signal("");
let clearing = 0;

export function say(text: string): void {
  message.value = text;
  clearTimeout(clearing);
  clearing = window.setTimeout(() => (message.value = ""), 4000);
}

export function Live() {
  return (
    <div class={message.value ? "live shown" : "live"} role="status">
      {message.value}
    </div>
  );
}
