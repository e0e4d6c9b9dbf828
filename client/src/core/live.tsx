// One line at the bottom of the page, read aloud by screen readers: "LaTeX copied". Problems are read aloud here too, once.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import "./live.css";

const message = signal("");
const problem = signal(""); // the one that is read aloud
const byHand = signal(""); // a text that could not be copied
let clearing = 0;
const PAUSE = 400; // ms without a key before a problem is read

export function say(text: string): void {
  message.value = text;
  clearTimeout(clearing);
  clearing = window.setTimeout(() => (message.value = ""), 4000);
}

/** Has a problem read aloud when typing rests: once, in however many places it is shown. */
export function useAnnounced(text: string): void {
  useEffect(() => {
    const waiting = setTimeout(() => (problem.value = text), PAUSE);
    return () => {
      clearTimeout(waiting);
      if (problem.value === text) problem.value = "";
    };
  }, [text]);
}

/** Copies a text; where the browser refuses, as it does without a secure origin, the text is shown to be copied by hand. */
export async function copy(name: string, text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    byHand.value = "";
    say(`${name} copied`);
  } catch {
    byHand.value = text;
  }
}

export function Live() {
  return (
    <>
      <div class={message.value ? "live shown" : "live"} role="status">
        {message.value}
      </div>
      <div class="hidden" role="status">{problem.value}</div>
      {byHand.value && <ByHand text={byHand.value} />}
    </>
  );
}

function ByHand({ text }: { text: string }) {
  const close = () => (byHand.value = "");
  const select = (area: HTMLTextAreaElement | null) => {
    area?.focus();
    area?.select();
  };
  return (
    <div class="by-hand" role="dialog" aria-label="Copy by hand" onKeyDown={(event) => event.key === "Escape" && close()}>
      <label>
        The browser does not let this page copy; here is the text:
        <textarea key={text} ref={select} readOnly rows={Math.min(8, text.split("\n").length + 1)} value={text} />
      </label>
      <button onClick={close}>Close</button>
    </div>
  );
}
