// The map of a plan's tiles: where pairs run, and how many of them are attended; zooms down to single pairs.
import { useEffect, useRef, useState } from "preact/hooks";
import { current, useAnswer } from "../../core/ask";
import { ProblemText } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import { isDark } from "../../core/theme";
import type { TileMapAnswer } from "../../schema";
import type { RuleState } from "./state";

const ZOOM = 4; // how many times closer a click comes
const CLOSEST = 16; // positions a side
type Box = [row: number, column: number];

export function TileMap({ state, at }: { state: RuleState; at: { [name: string]: number } }) {
  const sizes = [at.n ?? 0, at.m ?? at.n ?? 0] as const;
  const [, queryEnd = 0, , keyEnd = 0] = state.tiles_view;
  const view = queryEnd <= sizes[0] && keyEnd <= sizes[1] ? state.tiles_view : []; // of a longer line
  const question = { ...questionOf("tile_map", state), tiles_view: view };
  const reading = useAnswer("tile_map", question);
  const { answer, problem } = reading;
  const [pointedAt, setPointedAt] = useState<Box | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = isDark.value;
  useEffect(() => {
    if (answer && canvas.current) draw(canvas.current, answer, pointedAt);
  }, [answer, pointedAt, dark]);
  const all = (
    <button class="quiet" disabled={!view.length} onClick={() => change({ tiles_view: [] })}>All</button>
  );
  if (!answer)
    return problem && (
      <>
        <ProblemText problem={problem} />
        {view.length > 0 && all}
      </>
    );

  const rows = answer.query_edges.length - 1;
  const columns = answer.key_edges.length - 1;
  const box: Box | null = pointedAt && [Math.min(pointedAt[0], rows - 1), Math.min(pointedAt[1], columns - 1)];
  const [top = 0, bottom = answer.queries, left = 0, right = answer.keys] = view; // asked for: the picture may be older
  const zoomIn = ([row, column]: Box) => {
    const spans = [around(answer.query_edges, row, bottom - top, answer.queries), around(answer.key_edges, column, right - left, answer.keys)];
    change({ tiles_view: spans.flat() });
  };
  const zoomOut = () => {
    const spans = [widened(top, bottom, answer.queries), widened(left, right, answer.keys)];
    const all = spans[0]![1]! - spans[0]![0]! >= answer.queries && spans[1]![1]! - spans[1]![0]! >= answer.keys;
    change({ tiles_view: all ? [] : spans.flat() });
  };
  const boxUnder = (event: MouseEvent): Box => {
    const { left, top, width, height } = canvas.current!.getBoundingClientRect();
    return [boxAt((event.clientY - top) / height, answer.query_edges), boxAt((event.clientX - left) / width, answer.key_edges)];
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const [row, column] = box ?? [0, 0];
    const steps: { [key: string]: Box } = { ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1] };
    const next = steps[event.key];
    if (next) setPointedAt([Math.min(rows - 1, Math.max(0, next[0])), Math.min(columns - 1, Math.max(0, next[1]))]);
    else if (event.key === "Enter" || event.key === "+") zoomIn([row, column]);
    else if (event.key === "Escape" || event.key === "-") zoomOut();
    else return;
    event.preventDefault();
  };
  const older = problem !== null || current(reading, question) === null;
  return (
    <>
      {problem && <ProblemText problem={problem} />}
      <figure class={older ? "tile-map stale" : "tile-map"}>
        <canvas
          data-picture
          ref={canvas}
          class="tile-map-canvas"
          tabIndex={0}
          role="application"
          aria-roledescription="map"
          aria-label={`${summary(answer)} Arrow keys point at a box, Enter zooms in, Escape zooms out.`}
          onMouseMove={(event) => setPointedAt(boxUnder(event))}
          onMouseLeave={() => setPointedAt(null)}
          onClick={(event) => zoomIn(boxUnder(event))}
          onKeyDown={onKeyDown}
          onBlur={() => setPointedAt(null)}
        />
        <p class="tile-map-words" role="status">
          {box ? inWords(answer, box) : summary(answer)}
        </p>
        <div class="tile-map-legend">
          <span class="full" data-picture><i />attended</span>
          <span class="waste" data-picture><i />executed, not attended</span>
          <span class="none" data-picture><i />skipped</span>
          <span class="grow" />
          <div>
            <button class="quiet" disabled={!view.length} onClick={zoomOut}>Zoom out</button>
            {all}
          </div>
        </div>
      </figure>
    </>
  );
}

/** The box under this share of a side. */
function boxAt(share: number, edges: number[]): number {
  const position = edges[0]! + share * (edges.at(-1)! - edges[0]!);
  const next = edges.findIndex((edge) => edge > position);
  return Math.max(0, (next < 0 ? edges.length - 1 : next) - 1);
}

/** Positions around a box, a part of those in view; never fewer than can be seen well. */
function around(edges: number[], box: number, positions: number, size: number): [number, number] {
  return centred((edges[box]! + edges[box + 1]!) / 2, Math.max(Math.min(CLOSEST, size), Math.round(positions / ZOOM)), size);
}

function widened(first: number, end: number, size: number): [number, number] {
  return centred((first + end) / 2, (end - first) * ZOOM, size);
}

function centred(middle: number, length: number, size: number): [number, number] {
  const whole = Math.min(size, length);
  const first = Math.max(0, Math.min(size - whole, Math.round(middle - whole / 2)));
  return [first, first + whole];
}

function span(edges: number[], from: number, to: number): string {
  const [first, last] = [edges[from]!, edges[to]! - 1];
  return first === last ? first.toLocaleString("en") : `${first.toLocaleString("en")} to ${last.toLocaleString("en")}`;
}

function summary({ query_edges, key_edges }: TileMapAnswer): string {
  return `Queries ${span(query_edges, 0, query_edges.length - 1)} from top to bottom, keys ${span(key_edges, 0, key_edges.length - 1)} from left to right.`;
}

function inWords(answer: TileMapAnswer, [row, column]: Box): string {
  const executed = answer.executed[row]?.[column] ?? 0;
  const needed = answer.needed[row]?.[column];
  const where = `queries ${span(answer.query_edges, row, row + 1)}, keys ${span(answer.key_edges, column, column + 1)}`;
  const attended = needed === undefined ? "" : `, ${needed.toLocaleString("en")} of them attended`;
  return executed ? `${where}: ${executed.toLocaleString("en")} pairs run${attended}` : `${where}: skipped`;
}

/** `#2f5bd0` as its red, green and blue. */
function numbersOf(hex: string): number[] {
  return [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));
}

function mix(from: number[], to: number[], share: number): number[] {
  return from.map((part, place) => Math.round(part + share * (to[place]! - part)));
}

/** Every box in the colour of what runs there: attended or not, and stronger the more pairs of the box run. */
function draw(canvas: HTMLCanvasElement, answer: TileMapAnswer, box: Box | null): void {
  const { query_edges: tops, key_edges: lefts, executed, needed } = answer;
  const [height, width] = [tops.at(-1)! - tops[0]!, lefts.at(-1)! - lefts[0]!];
  const side = Math.round(canvas.clientWidth * devicePixelRatio);
  canvas.width = side;
  canvas.height = side;
  const pen = canvas.getContext("2d")!;
  const style = getComputedStyle(canvas);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  pen.fillStyle = colour("--shade");
  pen.fillRect(0, 0, side, side);
  const x = (key: number) => Math.round(((key - lefts[0]!) * side) / width);
  const y = (query: number) => Math.round(((query - tops[0]!) * side) / height);
  const gap = side / lefts.length > 12 ? Math.ceil(devicePixelRatio) : 0;
  const [shade, waste, mark] = ["--shade", "--other", "--mark"].map((name) => numbersOf(colour(name)));
  executed.forEach((line, row) =>
    line.forEach((pairs, column) => {
      if (!pairs) return;
      const area = (tops[row + 1]! - tops[row]!) * (lefts[column + 1]! - lefts[column]!);
      const attended = (needed[row]?.[column] ?? pairs) / pairs;
      const dense = Math.max(0.2, Math.min(1, pairs / area) ** 0.4); // thin boxes are seen too
      pen.fillStyle = `rgb(${mix(shade!, mix(waste!, mark!, attended), dense).join(" ")})`;
      const [left, top] = [x(lefts[column]!), y(tops[row]!)];
      pen.fillRect(left, top, x(lefts[column + 1]!) - left - gap, y(tops[row + 1]!) - top - gap);
    }),
  );
  if (!box) return;
  const [row, column] = [Math.min(box[0], tops.length - 2), Math.min(box[1], lefts.length - 2)];
  pen.strokeStyle = colour("--text");
  pen.lineWidth = 2 * devicePixelRatio;
  pen.strokeRect(x(lefts[column]!), y(tops[row]!), x(lefts[column + 1]!) - x(lefts[column]!), y(tops[row + 1]!) - y(tops[row]!));
}
