// The planes of pixels and states, and the weights as arrows: the library's own picture.
import { useAnswer } from "../../core/ask";
import { Panel } from "../../core/panel";
import { questionOf } from "../../core/state";
import type { GridState } from "./state";

export function DiagramPanel({ state }: { state: GridState }) {
  const question = questionOf("grid_diagram", state);
  const reading = useAnswer("grid_diagram", question);
  const found = reading.answer;
  return (
    <Panel
      title="Planes and weights"
      about="Pixels below, states above: W_in rises from each pixel to its state, W_left and W_top lead from state to state. All arrows of a kind have the same weights; the arrows into one pixel's state are bold."
      panel="grid_diagram"
      question={question}
      reading={reading}
      picture
      wide
    >
      {found && (
        <div class="scroll" tabIndex={0} role="group" aria-label="The planes">
          <img class="grid-diagram" style={{ minWidth: `${LEGIBLE * widthOf(found.svg)}px` }} src={`data:image/svg+xml,${encodeURIComponent(found.svg)}`} alt={`A 2-D RNN as two planes. ${found.facts.map(([name, words]) => `${name}: ${words}`).join(". ")}`} />
        </div>
      )}
    </Panel>
  );
}

const LEGIBLE = 11 / 9; // the picture's smallest letters are 9 of its units high, and 11 px are read

/** How many units wide a picture is. */
const widthOf = (svg: string) => Number(/<svg[^>]* width="([\d.]+)/.exec(svg)?.[1] ?? 600);
