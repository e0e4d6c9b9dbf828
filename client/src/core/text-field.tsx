// A text that is read as it is typed: mistakes are underlined where they are, and words can be completed.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Problem } from "../schema";
import { ProblemText } from "./panel";

/** A word that may be meant at the caret: it takes the place of `text[start:end]`. */
export interface Completion {
  insert: string;
  start: number;
  end: number;
  label?: string; // where it is shown otherwise than it is written
  detail?: string;
}

interface Props {
  name: string; // the field of the state, by which a problem finds it
  label: string;
  value: string;
  problem: Problem | null;
  onInput: (text: string) => void;
  placeholder?: string;
  highlight?: [number, number] | null; // characters of the text that something else speaks of
  complete?: (text: string, caret: number, asked: boolean) => Completion[];
  known?: unknown; // what completions are made of; once it comes they are offered for what was typed before
  focused?: boolean; // from the start
  children?: ComponentChildren; // beside the label
}

const SHOWN = 40;

export function TextField({ name, label, value, problem, onInput, placeholder, highlight, complete, known, focused, children }: Props) {
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const [offered, setOffered] = useState<Completion[]>([]);
  const [chosen, setChosen] = useState(0);
  const wrong = problem?.field === name && problem.text === value ? problem : null;
  const open = offered.length > 0;

  const offer = (asked: boolean) => {
    const { value: text, selectionStart, selectionEnd } = area.current!;
    setChosen(0);
    setOffered(complete && selectionStart === selectionEnd ? complete(text, selectionStart, asked).slice(0, SHOWN) : []);
  };
  const typed = useRef(false);
  useEffect(() => {
    if (typed.current && document.activeElement === area.current) offer(false);
  }, [known]);
  useEffect(() => void (focused && area.current!.focus()), []);
  const close = () => setOffered([]);
  const accept = (one: Completion) => {
    const caret = one.start + one.insert.length;
    const field = area.current!;
    field.value = value.slice(0, one.start) + one.insert + value.slice(one.end);
    field.focus();
    field.setSelectionRange(caret, caret); // at once: what is typed next goes there
    onInput(field.value);
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const key = event.key;
    if (key === " " && event.ctrlKey) offer(true);
    else if (key === "Enter" && !event.shiftKey) open && accept(offered[chosen]!);
    else if (!open && key === "ArrowDown" && area.current!.selectionStart === value.length) offer(true);
    else if (!open) return;
    else if (key === "Escape") close();
    else if (key === "Tab" && !event.shiftKey) accept(offered[chosen]!);
    else if (key === "ArrowDown") setChosen((chosen + 1) % offered.length);
    else if (key === "ArrowUp") setChosen((chosen + offered.length - 1) % offered.length);
    else return;
    event.preventDefault();
  };
  return (
    <div class="field text-field">
      <div class="field-head">
        <label for={id}>{label}</label>
        {children}
      </div>
      <div class="typed">
        <Mirror text={value} wrong={wrong && [wrong.start, wrong.end]} highlight={highlight ?? null} />
        <textarea
          id={id}
          ref={area}
          rows={1}
          value={value}
          placeholder={placeholder}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          aria-invalid={wrong !== null}
          aria-describedby={wrong ? `${id}-problem` : undefined}
          aria-autocomplete={complete && "list"}
          aria-haspopup={complete && "listbox"}
          aria-controls={open ? `${id}-list` : undefined}
          aria-activedescendant={open ? `${id}-${chosen}` : undefined}
          onInput={(event) => {
            onInput(event.currentTarget.value);
            typed.current = true;
            offer(false);
          }}
          onKeyDown={onKeyDown}
          onBlur={close}
          onClick={close}
        />
        {open && <Offered id={id} offered={offered} chosen={chosen} accept={accept} />}
      </div>
      <div class="hidden" role="status">
        {open ? `${offered.length} completions; ${completionText(offered[chosen]!)}; Tab takes it` : ""}
      </div>
      <div id={`${id}-problem`}>{problem && <ProblemText problem={problem} />}</div>
    </div>
  );
}

function Offered({ id, offered, chosen, accept }: { id: string; offered: Completion[]; chosen: number; accept: (one: Completion) => void }) {
  const reveal = (place: HTMLElement | null) => place?.scrollIntoView({ block: "nearest" });
  return (
    <ul class="offered" role="listbox" id={`${id}-list`} aria-label="Completions">
      {offered.map((one, index) => (
        <li
          key={one.insert}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === chosen}
          ref={index === chosen ? reveal : null}
          onMouseDown={(event) => {
            event.preventDefault(); // the text keeps the focus
            accept(one);
          }}
        >
          <code>{completionText(one)}</code> {one.detail && <span>{one.detail}</span>}
        </li>
      ))}
    </ul>
  );
}

function completionText(one: Completion): string {
  return one.label ?? one.insert;
}

type TextSpan = [number, number];

/** The same text behind the typed one, with marks under some of its characters. */
function Mirror({ text, wrong, highlight }: { text: string; wrong: TextSpan | null; highlight: TextSpan | null }) {
  const letters = [...text]; // places count characters, not the halves that JavaScript cuts some into
  const cuts = [0, ...(wrong ?? []), ...(highlight ?? []), letters.length].sort((a, b) => a - b);
  const within = (place: TextSpan | null, at: number) => place !== null && place[0] <= at && at < place[1];
  const parts = cuts.slice(1).map((end, index) => {
    const start = cuts[index]!;
    const kinds = [within(wrong, start) && "wrong", within(highlight, start) && "spoken-of"].filter(Boolean);
    const part = letters.slice(start, end).join("");
    return kinds.length && part ? <span class={kinds.join(" ")}>{part}</span> : part;
  });
  return (
    <div class="mirror" aria-hidden="true">
      {parts}
      {wrong && letters.length > 0 && wrong[0] >= letters.length && <span class="wrong"> </span>}{"\u200b"}
    </div>
  );
}
