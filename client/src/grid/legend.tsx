// What the colours of a grid mean, with the numbers of what is seen.
import { commas } from "./commas";
import { LEVELS, OWN, HERE, type Cells } from "./cells";
import type { Model } from "./model";
import type { Plan } from "./paint";
import type { Shown } from "./use-cells";

export function Legend({ model, shown, plan }: { model: Model; shown: Shown; plan: Plan | null }) {
  const { cells } = shown;
  if (!cells) return null;
  const squares = cells.height === 1 && cells.width === 1;
  const what = model.kind === "pixel" ? "pixels" : "pairs";
  const counts = shown.exact ? cells.counts : null;
  const two = model.rules.length === 2;
  const has = (look: number) => cells.looks.includes(look);
  return (
    <div class="grid-legend" data-picture>
      {two ? (
        <>
          <Entry look="a" text={`only A${counts ? `: ${counts[0]}` : ""}`} />
          <Entry look="b" text={`only B${counts ? `: ${counts[1]}` : ""}`} />
          <Entry look="both" text={`both${counts ? `: ${counts[2]}` : ""}`} />
          {!squares && <Entry look="several" text="several of these" />}
        </>
      ) : squares ? (
        <>
          <Entry look="full" text={model.kind === "pixel" ? "key of the query pixel" : "attended"} />
          {has(OWN) && <Entry look="own" text={model.kind === "pixel" ? "the query pixel itself" : "attended, own position"} />}
          {has(HERE) && <Entry look="here" text="the query pixel, not attended" />}
        </>
      ) : (
        <>
          <Entry look="empty" text={model.kind === "pixel" ? "no key" : "no attended pair"} />
          <Entry look="ramp" text="1 to all of them" />
        </>
      )}
      {plan && <Entry look="plan" text={plan.runs.every((row) => row.every(Boolean)) ? "all of this is computed by the plan" : "inside the outline: computed by the plan"} />}
      <span class="grid-seen">{seenText(cells, what, counts, two)}</span>
      <span class="grid-how" data-exact={shown.exact}>
        {squares ? `each square is one ${what.slice(0, -1)}` : `each cell is ${sizeText(cells)} ${what}, ${howText(shown, two)}`}
      </span>
    </div>
  );
}

function Entry({ look, text }: { look: string; text: string }) {
  return (
    <span class="grid-entry">
      <span class={`grid-swatch grid-swatch-${look}`} aria-hidden="true" />
      {text}
    </span>
  );
}

function sizeText({ height, width }: Cells): string {
  return `${commas(height)} × ${commas(width)}`;
}

function howText({ exact, reason }: Shown, two: boolean): string {
  if (exact) return two ? "by what is in it, exactly" : `its shade the exact share in ${LEVELS} steps`;
  return reason ? `from samples of it: ${reason}` : "from samples of it; the exact share follows";
}

function seenText(cells: Cells, what: string, counts: string[] | null, two: boolean): string {
  if (!counts) return `${cells.pairs} ${what} in view`;
  return two ? `of ${cells.pairs} ${what} in view` : `${counts[0]} of ${cells.pairs} ${what} in view`;
}
