// What is under the cursor: the pair, the clause that decides, and how many keys and queries share its row and column.
import type { Box } from "./paint";
import { decidingAt, type Clause } from "./clauses";
import { Unable } from "./evaluate";
import { holdsAt, pairAt, type Model } from "./model";
import { useCount, type Asked, type Count } from "./use-cells";
import { partText, placeText } from "./alt-text";

export function Readout({ model, cursor, asked }: { model: Model; cursor: Box | null; asked: Asked | null }) {
  const one = cursor !== null && cursor.height === 1 && cursor.width === 1;
  const { down, across, kind } = model;
  const place = model.rules.length > 1 ? "grid-readout two" : "grid-readout"; // as high for every pair: the grid below stays where it is
  const single = { rows: 1, cols: 1 };
  const row = one && kind !== "pixel" ? { top: cursor.row, left: 0, height: 1, width: across.length, ...single } : null;
  const col = one && kind !== "pixel" ? { top: 0, left: cursor.col, height: down.length, width: 1, ...single } : null;
  const tile = cursor && !one ? { top: cursor.row, left: cursor.col, height: cursor.height, width: cursor.width, ...single } : null;
  const keys = useCount(model, row, asked), queries = useCount(model, col, asked), inside = useCount(model, tile, asked);
  if (!cursor) return <p class={place}>{hint(model)}</p>;
  if (!one)
    return (
      <p class={place} aria-live="polite">
        <b>{partText(down, cursor.row, cursor.height)}</b>, <b>{partText(across, cursor.col, cursor.width)}</b>: {amount(inside)}{inside && <> of {inside.pairs} {kind === "pixel" ? "pixels" : "pairs"}</>}
      </p>
    );
  return (
    <div class={place} aria-live="polite">
      <p>
        {kind === "pixel" ? <>pixel <b>{placeText(down, cursor.row)}, {placeText(across, cursor.col)}</b></> : <><b>{placeText(down, cursor.row)}</b>, <b>{placeText(across, cursor.col)}</b></>}
        : <Verdict model={model} cursor={cursor} />
      </p>
      {kind !== "pixel" && (
        <p class="grid-counts">
          Keys of this query: <b>{amount(keys)}</b>. Queries of this key: <b>{amount(queries)}</b>.
        </p>
      )}
    </div>
  );
}

function hint({ kind }: Model): string {
  if (kind === "pixel") return "Click a pixel, or move with the arrow keys, to see its keys. Zoom: + and −, Ctrl and the wheel, or two fingers.";
  return "Point at a square, or press an arrow key, to see what decides about it. Zoom: + and −, Ctrl and the wheel, or two fingers; drag to move.";
}

/** Of one rule a number; of two, only A, only B and both. */
function amount(count: Count | null | undefined): string {
  if (!count) return count === null ? "…" : "not counted here";
  const [a, b, both] = count.counts;
  return b === undefined ? a! : `${a} only A, ${b} only B, ${both} both`;
}

function Verdict({ model, cursor }: { model: Model; cursor: Box }) {
  const pair = pairAt(model, cursor.row, cursor.col);
  try {
    const found = model.rules.map((_, which) => ({ attended: holdsAt(model, which, pair), clauses: decidingAt(model, which, pair) }));
    if (found.length === 1) return <>{found[0]!.attended ? "attended" : "not attended"}. <Clauses clauses={found[0]!.clauses} /></>;
    return <>{found.map(({ attended, clauses }, i) => <span>{"AB"[i]} {attended ? "attends" : "does not"}: <Clauses clauses={clauses} /> </span>)}</>;
  } catch (error) {
    if (error instanceof Unable) return <>{error.message}</>;
    throw error;
  }
}

function Clauses({ clauses }: { clauses: Clause[] }) {
  return (
    <>
      {clauses.map(({ text, numbers, holds }, i) => (
        <span class={holds ? "grid-holds" : "grid-fails"}>
          {i > 0 && ", "}
          <code>{text}</code> {holds ? "holds" : "fails"}{numbers && numbers !== text && <> ({numbers})</>}
        </span>
      ))}
    </>
  );
}
