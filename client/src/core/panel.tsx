// The frame of a panel: title, what it is, ways to take it along, the problem if there is one.
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import type { Copies, Problem } from "../schema";
import { askPicture, Refused, type Reading } from "./ask";
import { say } from "./live";
import { isExport } from "./recorded";
import { picturesOf } from "./save";
import { change, here, linkTo } from "./state";

interface Props {
  title: string;
  about: ComponentChildren; // what am I looking at
  panel: string;
  question: object | null | undefined; // undefined: what is shown belongs to an older one
  reading: Reading<{ copies: Copies }>;
  picture?: boolean; // whether the server draws it
  controls?: ComponentChildren; // what a person sets; never dimmed
  children?: ComponentChildren;
  wide?: boolean;
}

export function Panel({ title, about, panel, question, reading, picture, controls, children, wide }: Props) {
  const [told, setTold] = useState(false);
  const id = useId();
  const copies = reading.answer?.copies;
  return (
    <section class={`panel${wide ? " wide" : ""}`} aria-labelledby={id} aria-busy={reading.busy} data-panel={panel}>
      <header>
        <h2 id={id}>{title}</h2>
        <button class="quiet" aria-expanded={told} onClick={() => setTold(!told)} title="What am I looking at?">
          <span aria-hidden="true">?</span>
          <span class="hidden">What am I looking at?</span>
        </button>
        <span class="grow" />
        <div class="take" role="group" aria-label={`Take along: ${title}`}>
          {copies?.python && <Copy name="Python" text={copies.python} />}
          {copies?.command && <Copy name="Shell" text={copies.command} />}
          {copies?.latex && <Copy name="LaTeX" text={copies.latex} />}
          {picture && question && !isExport && <Save form="svg" panel={panel} question={question} />}
          {picture && question && !isExport && <Save form="png" panel={panel} question={question} />}
          <SaveSeen form="svg" name={picture && !isExport ? "Screen SVG" : "SVG"} panel={panel} title={title} />
          <SaveSeen form="png" name={picture && !isExport ? "Screen PNG" : "PNG"} panel={panel} title={title} />
          <Copy name="Link" text={() => new URL(linkTo(here.value), location.href).href} />
        </div>
      </header>
      {told && <p class="about">{about}</p>}
      {controls}
      {reading.problem && <ProblemText problem={reading.problem} />}
      <div class={reading.problem || !reading.answer || question === undefined ? "stale" : ""}>{children}</div>
    </section>
  );
}

/** What is wrong, and what would be right, one click away. */
export function ProblemText({ problem }: { problem: Problem }) {
  return (
    <div class={`problem ${problem.kind.replace(" ", "-")}`} role="status">
      <p>{problem.message}</p>
      {problem.fixes.map((fix) => (
        <button onClick={() => problem.field && change({ [problem.field]: fix.text }, true)}>{fix.label}</button>
      ))}
    </div>
  );
}

/** A button that copies a text. */
export function Copy({ name, text }: { name: string; text: string | (() => string) }) {
  const copy = async () => {
    const found = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(found);
      say(`${name} copied`);
    } catch {
      say(found); // a page without a secure origin may not write to the clipboard
    }
  };
  return (
    <button class="quiet" onClick={copy} title={typeof text === "string" ? text : `Copy as ${name}`}>
      {name}
    </button>
  );
}

function Save({ form, panel, question }: { form: "svg" | "png"; panel: string; question: object }) {
  const save = async () => {
    try {
      saveFile(`${panel}.${form}`, await askPicture(panel, question, form));
      say(`${panel}.${form} saved`);
    } catch (error) {
      say(error instanceof Refused ? error.problem.message : "the server does not answer");
    }
  };
  return (
    <button class="quiet" onClick={save} title={`Save the picture as ${form.toUpperCase()}`}>
      {form.toUpperCase()}
    </button>
  );
}

/** Saves what is on the screen; hidden where the panel has no picture. */
function SaveSeen({ form, name, panel, title }: { form: "svg" | "png"; name: string; panel: string; title: string }) {
  const save = async (event: Event) => {
    saveFile(`${panel}.${form}`, await picturesOf((event.currentTarget as Element).closest(".panel")!, title, form));
    say(`${panel}.${form} saved`);
  };
  return (
    <button class="quiet save-seen" onClick={save} title={`Save what is on the screen as ${form.toUpperCase()}`}>
      {name}
    </button>
  );
}

export function saveFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
