// One line of a derivation: the formula, why it holds, the verdict, and a field to change it.
import { Formula } from "../../core/formula";
import { TextField } from "../../core/text-field";
import type { LineView, Problem } from "../../schema";

interface Props {
  line: LineView;
  number: number;
  open: boolean;
  text: string;
  onOpen: () => void;
  onText: (text: string) => void;
  onUndo: () => void;
}

const SIGNS: { [verdict: string]: string } = { holds: "✓", refuted: "✗", unread: "?" };

export function LineRow({ line, number, open, text, onOpen, onText, onUndo }: Props) {
  const unread = line.verdict === "unread" && line.text === text;
  const problem: Problem | null = unread ? { kind: "input", message: line.sentence, field: `line ${number}`, text, start: line.start, end: line.end, fixes: [] } : null;
  return (
    <li class={`derive-line ${line.verdict}`} data-line={number} data-verdict={line.verdict}>
      <div class="derive-row">
        <span class="derive-sign" title={line.verdict}>
          <span aria-hidden="true">{SIGNS[line.verdict]}</span>
          <span class="hidden">{line.verdict}</span>
        </span>
        <div class="derive-formula scroll" tabIndex={0} role="group" aria-label={`Line ${number}`}>
          {line.left && <Formula latex={line.left} />} <Formula latex={`${line.relation} \\displaystyle ${line.right || "\\;?"}`} />
        </div>
        <button class="quiet" aria-expanded={open} onClick={line.changed ? onUndo : onOpen}>
          {line.changed ? "Undo" : open ? "Close" : "Change"}
          <span class="hidden"> line {number}</span>
        </button>
      </div>
      <p class="derive-reason">
        {line.changed ? "changed by you" : line.reason}
        {line.domain && <>, for {line.domain}</>}
      </p>
      {open && <TextField name={`line ${number}`} label={`Right side of line ${number}`} value={text} problem={problem} onInput={onText} />}
      {line.verdict !== "unread" && <p class="derive-sentence">{line.verdict === "holds" ? `checked: ${line.sentence}` : line.sentence}</p>}
    </li>
  );
}
