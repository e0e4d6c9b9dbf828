// What is wrong with a text, and what would be right; takes the place of the one of core/panel.
import type { Problem } from "../schema";

/** A click on what would be right is an event for whoever holds the text. */
export function ProblemText({ problem }: { problem: Problem }) {
  const mend = (text: string) => (event: Event) => event.currentTarget!.dispatchEvent(new CustomEvent("mend", { bubbles: true, detail: text }));
  return (
    <div class="problem" role="status">
      <p>{problem.message}</p>
      {problem.fixes.map((fix) => <button onClick={mend(fix.text)}>{fix.label}</button>)}
    </div>
  );
}
