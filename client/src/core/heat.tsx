// A heat map: a cell for each number, what the cell under the pointer says, and marks drawn over the cells.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import "./heat.css";
import { isDark } from "./theme";

export type Tone = "amount" | "signed" | "grey";
export type Cell = [row: number, col: number];

interface Props {
  values: number[][];
  range: [number, number]; // the numbers of the palest and of the darkest cell
  tone?: Tone; // signed: below 0 is another colour
  label: string; // what is seen, in words
  describe?: (cell: Cell) => string; // what a cell says when it is pointed at
  at?: Cell; // the cell that is chosen
  onPick?: (cell: Cell) => void; // by click or drag
  onStep?: (by: Cell) => void; // by arrow keys
  children?: ComponentChildren; // SVG over the map; a cell is one unit
}

export function Heat({ values, range, tone = "amount", label, describe, at, onPick, onStep, children }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [over, setOver] = useState<Cell | null>(null);
  const rows = values.length;
  const cols = values[0]?.length ?? 0;
  useEffect(() => paint(canvas.current!, values, range, tone), [values, range[0], range[1], tone, isDark.value]);

  const cellOf = (event: PointerEvent): Cell => {
    const box = canvas.current!.getBoundingClientRect();
    const place = (along: number, length: number, many: number) => Math.min(many - 1, Math.max(0, Math.floor((along / length) * many)));
    return [place(event.clientY - box.top, box.height, rows), place(event.clientX - box.left, box.width, cols)];
  };
  const move = (event: PointerEvent) => {
    const cell = cellOf(event);
    setOver(cell);
    if (event.buttons & 1) onPick?.(cell);
  };
  const step = (event: KeyboardEvent) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by || !onStep) return;
    event.preventDefault();
    setOver(null);
    onStep(by as Cell);
  };
  const inside = (cell: Cell | null | undefined) => (cell && cell[0] < rows && cell[1] < cols ? cell : null);
  const spoken = inside(over) ?? inside(at);
  const words = (spoken && describe?.(spoken)) ?? "";
  const choice = onPick && {
    role: "slider" as const,
    tabIndex: 0,
    "aria-valuemin": 0,
    "aria-valuemax": Math.max(0, rows * cols - 1),
    "aria-valuenow": at ? at[0] * cols + at[1] : 0,
    "aria-valuetext": (inside(at) && describe?.(at!)) || label,
    onKeyDown: step,
    onPointerDown: (event: PointerEvent) => {
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
      onPick(cellOf(event));
    },
  };
  return (
    <>
      <div class={onPick ? "heat picks" : "heat"} data-picture role="img" aria-label={label} {...choice} onPointerMove={move} onPointerLeave={() => setOver(null)}>
        <canvas ref={canvas} width={cols} height={rows} aria-hidden="true" />
        {children && (
          <svg viewBox={`0 0 ${cols} ${rows}`} preserveAspectRatio="none" aria-hidden="true">
            {children}
          </svg>
        )}
      </div>
      {describe && <p class="heat-description">{words}</p>}
    </>
  );
}

/** The colours of a map, from its least number to its greatest. */
export function HeatScale({ range, tone = "amount", texts }: { range: [number, number]; tone?: Tone; texts: [string, string] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const steps = Array.from({ length: 64 }, (_, step) => range[0] + ((range[1] - range[0]) * step) / 63);
    paint(canvas.current!, [steps], range, tone);
  }, [range[0], range[1], tone, isDark.value]);
  return (
    <div class="heat-scale" data-picture>
      {texts[0]}
      <canvas ref={canvas} width={64} height={1} aria-hidden="true" />
      {texts[1]}
    </div>
  );
}

type Colour = [number, number, number];

function paint(canvas: HTMLCanvasElement, values: number[][], [low, high]: [number, number], tone: Tone): void {
  const style = getComputedStyle(canvas);
  const variable = (name: string): Colour => {
    const digits = style.getPropertyValue(name).trim().slice(1);
    return [0, 2, 4].map((from) => parseInt(digits.slice(from, from + 2), 16)) as Colour;
  };
  const [ground, full, below] = tone === "grey" ? [[20, 20, 20] as Colour, [245, 245, 245] as Colour, [20, 20, 20] as Colour] : [variable("--card"), variable("--mark"), variable("--other")];
  const rows = values.length;
  const cols = values[0]?.length ?? 0;
  if (!rows || !cols) return;
  const image = new ImageData(cols, rows);
  values.flat().forEach((value, place) => {
    const share = tone === "signed" ? value / (Math.max(Math.abs(low), Math.abs(high)) || 1) : (value - low) / (high - low || 1);
    const far = share < 0 ? below : full;
    const along = Math.min(1, Math.abs(share));
    for (let channel = 0; channel < 3; channel++) image.data[4 * place + channel] = ground[channel]! + (far[channel]! - ground[channel]!) * along;
    image.data[4 * place + 3] = 255;
  });
  canvas.width = cols;
  canvas.height = rows;
  canvas.getContext("2d")!.putImageData(image, 0, 0);
}
