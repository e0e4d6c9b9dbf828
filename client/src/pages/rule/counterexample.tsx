// The pairs at the numbers where a claim fails: what the formula says against what there is.
import { useEffect } from "preact/hooks";
import { change } from "../../core/state";
import type { CounterexampleGrid, Judgement } from "../../schema";
import { marks, type Numbers } from "./state";

const SIDE = 18;
const GAP = 2;

interface Props {
  grid: CounterexampleGrid;
  verdict: Judgement;
  numbers: Numbers; // at which the page draws its grid
}

export function CounterexampleView({ grid, verdict, numbers }: Props) {
  const isDrawn = Object.entries(grid.numbers).every(([name, value]) => numbers[name] === value);
  useEffect(() => {
    if (isDrawn) marks.value = { ...marks.value, claim: countedPairs(grid) };
    return () => {
      const { claim: _, ...others } = marks.value;
      marks.value = others;
    };
  }, [isDrawn, grid]);
  const example = verdict.example ?? verdict.links.find((link) => link.example)?.example;
  if (!example) return null;
  const at = Object.entries(grid.numbers).map(([name, value]) => `${name} = ${value}`).join(", ");
  const counted = (row: number, column: number) => (grid.row ?? row) === row && (grid.column ?? column) === column;
  const marked = grid.squares.flatMap((line, row) => [...line].filter((square, column) => square === "1" && counted(row, column))).length;
  const columns = grid.squares[0]?.length ?? 0;
  const sums = grid.squares.map((line) => [...line].filter((square) => square === "1").length);
  const rows = grid.squares.length;
  return (
    <figure class="counterexample" data-picture>
      <svg
        role="img"
        aria-label={`The rule at ${at}: ${rows} queries, ${columns} keys; attended per query: ${sums.join(", ") || "none"}`}
        viewBox={`0 0 ${columns * SIDE + 30} ${Math.max(1, rows) * SIDE}`}
        width={columns * SIDE + 30}
      >
        {grid.squares.map((line, row) =>
          [...line].map((square, column) => (
            <rect
              class={square === "1" ? (counted(row, column) ? "attended" : "aside") : counted(row, column) ? "empty" : "empty aside"}
              x={column * SIDE}
              y={row * SIDE}
              width={SIDE - GAP}
              height={SIDE - GAP}
              rx={2}
            />
          )),
        )}
        {grid.column === null &&
          sums.map((sum, row) => (grid.row === null || grid.row === row) && <text x={columns * SIDE + 6} y={row * SIDE + SIDE - 6}>{sum}</text>)}
      </svg>
      <figcaption>
        <p>
          at {at}
          {grid.row !== null && <>, query {example.values.q}</>}
          {grid.column !== null && <>, key {example.values.k}</>}
        </p>
        {verdict.example && (
          <dl>
            <div>
              <dt>the formula</dt>
              <dd>{example.claimed || "no value"}</dd>
            </div>
            <div>
              <dt>the squares</dt>
              <dd>{marked}</dd>
            </div>
          </dl>
        )}
        <button onClick={() => show(grid)}>show {at} on the grid</button>
      </figcaption>
    </figure>
  );
}

function show({ numbers }: CounterexampleGrid): void {
  change({ numbers, view: [] });
  document.querySelector("[data-panel=draw]")?.scrollIntoView({ block: "nearest" });
}

/** The pairs of the query, or of the key, whose number is claimed, one after the other; none where all are counted. */
function countedPairs({ squares, row, column }: CounterexampleGrid) {
  if ((row ?? column) === null) return [];
  const pairs = squares.flatMap((line, q) => [...line].flatMap((square, k) => (square === "1" && (row ?? q) === q && (column ?? k) === k ? [{ q, k }] : [])));
  return pairs.map((pair, place) => ({ pair, label: String(place + 1) }));
}
