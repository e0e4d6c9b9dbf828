// The grid of a rule, or of two over each other: queries down, keys across, from a few positions to as many as there are.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isDark } from "../core/theme";
import { HERE, LEVELS, OWN, type Cells } from "./cells";
import { readColours } from "./colours";
import { useGestures } from "./gestures";
import { Legend } from "./legend";
import type { Model } from "./model";
import { marginFor, paint, withOwn, type Box, type Layout, type Plan, type Scene } from "./paint";
import { Readout } from "./readout";
import "./style.css";
import { useCells, type Asked } from "./use-cells";
import { heightFor, viewOf, widthFor, within, zoomed } from "./view";
import { altText } from "./alt-text";

interface Props {
  model: Model;
  view: number[]; // [top, left, width] in positions; [] for all
  asked: Asked | null; // whom the server may count; null while the rule is not read
  marks: { row: number; col: number; label: string }[];
  plan: Plan | null;
  onView: (view: number[]) => void;
  onPixel: (pixel: number[]) => void;
  onCursor: (at: { row: number; col: number } | null) => void; // a single pair under the pointer
  children?: ComponentChildren; // more controls beside those of the zoom
}

const TOP = 34; // pixels for the numbers of the keys and their name
const WIDEST = 760;
const measuring = document.createElement("canvas").getContext("2d")!;
const MOVES: { [key: string]: [number, number] } = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export function Grid({ model, view: named, asked, marks, plan, onView, onPixel, onCursor, children }: Props) {
  const place = useRef<HTMLDivElement>(null), canvas = useRef<HTMLCanvasElement>(null);
  const room = useWidth(place);
  const [at, setAt] = useState<{ row: number; col: number } | null>(null);
  const down = model.down.length, across = model.across.length;
  const view = viewOf(named, down, across);
  const layout = layoutFor(room, down, across, view.top, view.height);
  const shown = useCells(model, view, [layout.height, layout.width], room ? asked : null);
  const colours = useMemo(() => readColours(place.current), [isDark.value, room > 0]);
  const cells = useMemo(() => shown.cells && withOwnSquares(model, shown.cells), [model, shown.cells]);
  const inside = at && at.row < down && at.col < across ? at : null;
  const cursor = inside && cells && boxAt(cells, inside, down, across);
  const single = cursor && cursor.height === 1 && cursor.width === 1 ? `${cursor.row},${cursor.col}` : "";
  useEffect(() => onCursor(single ? { row: cursor!.row, col: cursor!.col } : null), [single, model]);

  useLayoutEffect(() => {
    const { current: shownOn } = canvas, context = shownOn!.getContext("2d")!;
    const width = Math.round((layout.left + layout.width + 8) * layout.ratio), height = Math.round((layout.top + layout.height + 8) * layout.ratio);
    if (shownOn!.width !== width || shownOn!.height !== height) Object.assign(shownOn!, { width, height });
    if (!cells) return context.clearRect(0, 0, width, height);
    const heavy = model.kind === "matrix" ? down / model.down.lengths[0]! : 0;
    const scene: Scene = { view, cells, two: model.rules.length === 2, titles: [model.down.title, model.across.title], heavy, cursor, cross: model.kind !== "pixel", marks: [...queryMark(model, cells), ...marks], plan };
    paint(context, scene, layout, colours);
  }, [cells, colours, plan, JSON.stringify([view, layout, cursor, marks])]);

  const position = (x: number, y: number) => ({
    row: view.top + ((y - layout.top) * view.height) / layout.height,
    col: view.left + ((x - layout.left) * view.width) / layout.width,
  });
  const show = (wanted: number[]) => {
    const next = viewOf(wanted, down, across), digits = next.width > 1000 ? 0 : 2;
    onView(next.width >= across ? [] : [next.top, next.left, next.width].map((value) => Number(value.toFixed(digits))));
  };
  const zoom = (factor: number, row: number, col: number) => {
    const before = view.width, next = viewOf(zoomed(view, factor, row, col), down, across);
    if (next.width !== before) show([next.top, next.left, next.width]);
    return next.width !== before;
  };
  const point = (x: number, y: number) => {
    const { row, col } = position(x, y);
    const on = row >= 0 && col >= 0 && row < Math.min(down, view.top + view.height) && col < Math.min(across, view.left + view.width);
    const found = on ? { row: Math.floor(row), col: Math.floor(col) } : null;
    setAt(found);
    return found;
  };
  useGestures(canvas, {
    hover: point,
    leave: () => setAt(null),
    tap: (x, y) => {
      const found = point(x, y);
      if (found && model.kind === "pixel") onPixel([...model.query.slice(0, -2), found.row, found.col]);
    },
    pan: (dx, dy) => {
      if (view.width < across) show([view.top - (dy * view.height) / layout.height, view.left - (dx * view.width) / layout.width, view.width]);
    },
    zoom: (factor, x, y) => {
      const { row, col } = position(x, y);
      return zoom(factor, row, col);
    },
  });

  const middle = cursor ?? { row: view.top + view.height / 2, col: view.left + view.width / 2, height: 0, width: 0 };
  const nearer = (factor: number) => show(zoomed(view, factor, middle.row + middle.height / 2, middle.col + middle.width / 2).map(Math.round));
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !cells) return;
    const move = MOVES[event.key];
    if (move && model.kind === "pixel" && !event.shiftKey) {
      const [row = 0, col = 0] = model.query.slice(-2);
      onPixel([...model.query.slice(0, -2), within(row + move[0], down - 1), within(col + move[1], across - 1)]);
    } else if (move) {
      const step = event.shiftKey && model.kind !== "pixel" ? 10 : 1;
      const from = inside ?? { row: Math.floor(view.top) - move[0] * step * cells.height, col: Math.floor(view.left) - move[1] * step * cells.width };
      const row = within(from.row + move[0] * step * cells.height, down - 1), col = within(from.col + move[1] * step * cells.width, across - 1);
      setAt({ row, col });
      const follow = (to: number, start: number, length: number, tile: number) => Math.min(Math.max(start, to + tile - length), to);
      const top = follow(row, view.top, view.height, cells.height), left = follow(col, view.left, view.width, cells.width);
      if (top !== view.top || left !== view.left) show([top, left, view.width]);
    } else if (event.key === "+" || event.key === "=") nearer(2);
    else if (event.key === "-") nearer(0.5);
    else if (event.key === "0") onView([]);
    else if (event.key === "Escape") setAt(null);
    else return;
    event.preventDefault();
  };
  const label = useMemo(() => altText(model, shown.cells, shown.exact), [model, shown.cells, shown.exact]);
  const zoomedIn = view.width < across;
  const frame = JSON.stringify([layout.left, layout.top, layout.left + layout.width, layout.top + layout.height]);
  const size = { width: `${layout.left + layout.width + 8}px`, height: `${layout.top + layout.height + 8}px`, touchAction: zoomedIn ? "none" : "pan-y" };
  return (
    <div class="grid">
      <div class="grid-bar" role="group" aria-label="What is seen of the grid">
        <button onClick={() => nearer(2)} aria-label="Zoom in" title="Zoom in (+)">+</button>
        <button onClick={() => nearer(0.5)} disabled={!zoomedIn} aria-label="Zoom out" title="Zoom out (−)">−</button>
        <button onClick={() => onView([])} disabled={!zoomedIn} title="Show all of it (0)">Fit</button>
        {children}
      </div>
      {cells && <Readout model={model} cursor={cursor} asked={asked} />}
      <div ref={place} class="grid-place" data-picture tabIndex={0} role="application" aria-label="The grid: arrow keys move, plus and minus zoom, 0 shows all of it" onKeyDown={press}>
        <canvas ref={canvas} role="img" aria-label={label} class={zoomedIn ? "zoomed" : ""} style={size} data-frame={frame} />
      </div>
      {cells ? <Legend model={model} shown={{ ...shown, cells }} plan={plan} /> : <p role="status">{shown.reason}</p>}
    </div>
  );
}

/** The cells with the query's own position told apart, where a cell is one pair. */
function withOwnSquares(model: Model, cells: Cells): Cells {
  if (model.rules.length === 2 || cells.height > 1 || cells.width > 1) return cells;
  if (model.tied) return withOwn(cells, LEVELS);
  if (model.kind !== "pixel") return cells;
  const [row = 0, col = 0] = model.query.slice(-2), i = row - cells.top, j = col - cells.left;
  if (i < 0 || j < 0 || i >= cells.rows || j >= cells.cols) return cells;
  const looks = cells.looks.slice();
  looks[i * cells.cols + j] = looks[i * cells.cols + j] ? OWN : HERE;
  return { ...cells, looks };
}

/** The query of an image, where its own square does not show it. */
function queryMark(model: Model, cells: Cells): Props["marks"] {
  const [row = 0, col = 0] = model.query.slice(-2);
  const ownSquare = model.rules.length === 1 && cells.height === 1 && cells.width === 1;
  return model.kind !== "pixel" || ownSquare ? [] : [{ row, col, label: "query" }];
}

/** The cell that a position is in. */
function boxAt(cells: Cells, { row, col }: { row: number; col: number }, down: number, across: number): Box {
  const top = Math.floor(row / cells.height) * cells.height, left = Math.floor(col / cells.width) * cells.width;
  return { row: top, col: left, height: Math.min(cells.height, down - top), width: Math.min(cells.width, across - left) };
}

function layoutFor(room: number, down: number, across: number, top: number, height: number): Layout {
  const left = 12 * Math.ceil(marginFor(measuring, { top, left: 0, height, width: 1 }, room) / 12);
  const available = Math.max(80, Math.min(WIDEST, room - left - 8));
  const width = widthFor(available, down, across);
  return { left, top: TOP, width, height: heightFor(available, down, across), ratio: window.devicePixelRatio || 1 };
}

/** How wide the place is, now and later; 0 until it is known. */
function useWidth(place: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = () => setWidth(Math.floor(place.current!.clientWidth));
    measure();
    const watching = new ResizeObserver(measure);
    watching.observe(place.current!);
    return () => watching.disconnect();
  }, []);
  return width;
}
