// The frame of a panel: title, what it is, ways to take it along, the problem if there is one.
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import type { Snippets, Problem } from "../schema";
import { askPicture, current, Refused, type Reading } from "./ask";
import { Guard } from "./guard";
import { copy, say, useAnnounced } from "./live";
import "./panel.css";
import { isExport } from "./recorded";
import { useFirstSaid } from "./said";
import { picturesOf } from "./save";
import { change, here, linkTo } from "./state";

interface Props {
  title: string;
  about: ComponentChildren; // what am I looking at
  panel: string;
  question: object | null | undefined; // undefined: what is shown belongs to an older one
  reading: Reading<{ copies: Snippets }>;
  stale?: boolean; // whether what is shown belongs to an older question, where that is not seen from the reading
  picture?: boolean; // whether the server draws it
  controls?: ComponentChildren; // what a person sets; never dimmed
  children?: ComponentChildren;
  wide?: boolean;
}

export function Panel({ title, about, panel, question, reading, stale, picture, controls, children, wide }: Props) {
  const [explained, setExplained] = useState(false);
  const id = useId();
  const copies = reading.answer?.copies;
  const noFormula = reading.problem?.kind === "no formula"; // the page says why, once
  const older = reading.problem !== null || current(reading, question) === null;
  return (
    <section class={`panel${wide ? " wide" : ""}`} aria-labelledby={id} aria-busy={reading.busy} data-panel={panel}>
      <header>
        <h2 id={id}>{title}</h2>
        <button class="quiet" aria-expanded={explained} onClick={() => setExplained(!explained)} title="What am I looking at?">
          <span aria-hidden="true">?</span>
          <span class="hidden">What am I looking at?</span>
        </button>
        <div class="take" role="group" aria-label={`Take along: ${title}`}>
          {copies?.python && <Copy name="Python" text={copies.python} off={older} />}
          {copies?.command && <Copy name="Shell" text={copies.command} off={older} />}
          {copies?.latex && <Copy name="LaTeX" text={copies.latex} off={older} />}
          {picture && question && !isExport && <Save form="svg" panel={panel} question={question} />}
          {picture && question && !isExport && <Save form="png" panel={panel} question={question} />}
          <SaveSeen form="svg" panel={panel} title={title} />
          <SaveSeen form="png" panel={panel} title={title} />
          <Copy name="Link" text={() => new URL(linkTo(here.value), location.href).href} />
        </div>
      </header>
      {explained && <p class="about">{about}</p>}
      <Guard of={here.value.state}>{controls}</Guard>
      {noFormula ? <p class="no-formula">Not for this rule: it has no formulas.</p> : reading.problem && <ProblemText problem={reading.problem} />}
      {!noFormula && (
        <div class={(stale ?? (older && copies)) ? "stale" : ""}>
          <Guard of={here.value.state}>{children}</Guard>
        </div>
      )}
    </section>
  );
}

/** What is wrong, and what would be right, one click away; where the page says it already, only that. */
export function ProblemText({ problem }: { problem: Problem }) {
  const place = useRef<HTMLDivElement>(null);
  const first = useFirstSaid(place, problem.message);
  useAnnounced(problem.message);
  if (!first) return <div ref={place} class="problem-again">Not answered, for the same reason.</div>;
  return (
    <div ref={place} class={`problem ${problem.kind.replace(" ", "-")}`}>
      <p>{problem.message}</p>
      {problem.fixes.map((fix) => (
        <button onClick={() => problem.field && change({ [problem.field]: fix.text }, true)}>{fix.label}</button>
      ))}
    </div>
  );
}

/** A button that copies a text; off while the text belongs to an older question. */
export function Copy({ name, text, off }: { name: string; text: string | (() => string); off?: boolean }) {
  const take = () => void copy(name, typeof text === "string" ? text : text());
  return (
    <button class="quiet" onClick={take} disabled={off} title={typeof text === "string" ? text : `Copy as ${name}`}>
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
    <button class="quiet save-drawn" onClick={save} title={`Save the library's figure as ${form.toUpperCase()}`}>
      {form.toUpperCase()}
    </button>
  );
}

/** Saves what is on the screen; hidden where the panel has no picture. */
function SaveSeen({ form, panel, title }: { form: "svg" | "png"; panel: string; title: string }) {
  const save = async (event: Event) => {
    const name = `${panel}-view.${form}`;
    saveFile(name, await picturesOf((event.currentTarget as Element).closest(".panel")!, title, form));
    say(`${name} saved`);
  };
  return (
    <button class="quiet save-seen" onClick={save} title={`Save what is on the screen as ${form.toUpperCase()}`}>
      {form.toUpperCase()}
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
