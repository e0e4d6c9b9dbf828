// The wavefront: which cells run at a step, which are done, which wait; played, paused or stepped by hand.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Reading } from "../../core/ask";
import { Formulas, PiecewiseFormula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { change } from "../../core/state";
import { letterScale, useWidth } from "../../core/width";
import type { GridAnswer } from "../../schema";
import type { GridState } from "./state";

export interface GridProps {
  state: GridState;
  grid: Reading<GridAnswer>;
  question: object;
}

const SPEEDS = [1, 2, 4, 8, 16];
export const LETTER = 0.45; // of a cell, the size of the number in it
const READABLE = 11; // px
const HIGHEST = 416; // px, as the style sheet has it in rem
/** Whether cells of this many pixels hold numbers that can be read. */
export const hasRoom = (cell: number) => LETTER * cell >= READABLE;

export function WavePanel({ state, grid, question }: GridProps) {
  const found = grid.answer;
  return (
    <Panel
      title="The wavefront"
      about="A cell of a 2-D RNN waits for the states on its left and above it, so that all cells of one diagonal run at once: an image of n rows and m columns takes n + m − 1 steps one after another, not n·m. With several directions every corner sends a wave of its own, and they run side by side."
      panel="grid"
      question={question}
      reading={grid}
      picture
      wide
    >
      {found && <Wave found={found} state={state} />}
    </Panel>
  );
}

function Wave({ found, state }: { found: GridAnswer; state: GridState }) {
  const last = found.depth - 1;
  const [playing, setPlaying] = useState(false);
  const [shown, setShown] = useState(state.step);
  const now = Math.max(-1, Math.min(Math.floor(playing ? shown : state.step), last)); // a link may hold any number
  const speed = Math.max(SPEEDS[0]!, Math.min(SPEEDS.at(-1)!, state.speed));
  const newest = useRef(now);
  newest.current = now;

  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => setShown(newest.current >= last ? -1 : newest.current + 1), 1000 / speed);
    return () => clearInterval(timer);
  }, [playing, speed, last]);

  const stop = (step: number) => {
    setPlaying(false);
    change({ step: Math.max(-1, Math.min(last, step)) });
  };
  const play = () => {
    if (playing) return stop(now);
    setShown(now >= last ? -1 : now);
    setPlaying(true);
  };
  const running = now < 0 ? 0 : (found.at_once[now] ?? 0) * found.sweeps.length;
  const cells = found.size[0] * found.size[1] * found.sweeps.length;
  const done = found.at_once.slice(0, Math.max(0, now)).reduce((sum, many) => sum + many, 0) * found.sweeps.length;
  return (
    <>
      <div class="grid-controls" role="group" aria-label="The wavefront">
        <button onClick={play}>{playing ? "Pause" : "Play"}</button>
        <button onClick={() => stop(now - 1)} disabled={now < 0}>Step back</button>
        <button onClick={() => stop(now + 1)} disabled={now >= last}>Step</button>
        <label class="grid-step">
          Step{" "}
          <input type="range" min={-1} max={last} value={now} aria-valuetext={now < 0 ? "before the first step" : `step ${now} of ${last}`} onInput={(event) => stop(Number(event.currentTarget.value))} />
          <span class="grid-now">{now < 0 ? "–" : now}</span>
        </label>
        <label>
          Speed{" "}
          <select value={String(speed)} onChange={(event) => change({ speed: Number(event.currentTarget.value) })}>
            {SPEEDS.map((speed) => (
              <option value={String(speed)}>{speed} a second</option>
            ))}
          </select>
        </label>
      </div>
      <div class="grid-wave">
        <div class={found.sweeps.length > 1 ? "grid-sweeps several" : "grid-sweeps"}>
          {found.sweeps.map((sweep) => (
            <Sweep name={found.sweeps.length > 1 ? sweep.name : ""} steps={sweep.steps} waits={sweep.waits} now={now} />
          ))}
        </div>
        <div class="grid-side">
          <p class="grid-count" role="status" aria-live={playing ? "off" : "polite"}>
            {now < 0 ? "Before the first step." : `Step ${now}: ${running} of ${cells} cells run, ${done} are done.`}
          </p>
          <AtOnce many={found.at_once} now={now} />
          <div class="grid-depth">
            <PiecewiseFormula formula={found.depth_formula} />
            <p>
              <strong>{found.depth}</strong> steps one after another, for {cells} cells
            </p>
          </div>
          <p class="grid-legend">
            <span class="grid-key now" /> runs at this step <span class="grid-key done" /> done <span class="grid-key" /> waits
          </p>
        </div>
      </div>
      <Formulas lines={found.equation} />
    </>
  );
}

/** One direction: every cell with its step; those that run now have arrows from what they waited for. */
function Sweep({ name, steps, waits, now }: { name: string; steps: number[][]; waits: [number, number][]; now: number }) {
  const rows = steps.length;
  const cols = steps[0]!.length;
  const place = useRef<HTMLElement>(null);
  const numbered = hasRoom(Math.min(useWidth(place) / cols, (HIGHEST * letterScale()) / rows));
  const look = (step: number) => (step === now ? "now" : step < now ? "done" : "");
  const cells = steps.flatMap((row, y) => row.map((step, x) => ({ step, y, x })));
  const arrows = cells.filter(({ step }) => step === now).flatMap(({ y, x }) => waits.map(([dy, dx]) => ({ y, x, dy, dx })));
  return (
    <figure class="grid-sweep" data-picture ref={place}>
      {name && <figcaption>{name}</figcaption>}
      <svg viewBox={`-0.1 -0.1 ${cols + 0.2} ${rows + 0.2}`} role="img" aria-label={`${rows} × ${cols} cells${name && `, ${name}`}: those whose step is ${now} run now, on one diagonal`}>
        {cells.map(({ step, y, x }) => (
          <g class={`grid-cell ${look(step)}`}>
            <rect x={x + 0.03} y={y + 0.03} width="0.94" height="0.94" rx="0.08" />
            {numbered && (
              <text x={x + 0.5} y={y + 0.54} font-size={LETTER}>{step}</text>
            )}
          </g>
        ))}
        {arrows
          .filter(({ y, x, dy, dx }) => steps[y + dy]?.[x + dx] !== undefined)
          .map(({ y, x, dy, dx }) => (
            <line class="grid-arrow" x1={x + 0.5 + 0.75 * dx} y1={y + 0.5 + 0.75 * dy} x2={x + 0.5 + 0.36 * dx} y2={y + 0.5 + 0.36 * dy} />
          ))}
      </svg>
    </figure>
  );
}

/** How many cells run at each step, as bars. */
function AtOnce({ many, now }: { many: number[]; now: number }) {
  const most = Math.max(...many);
  return (
    <figure class="grid-bars" data-picture>
      <figcaption>cells at once, by step: up to {most}</figcaption>
      <svg viewBox={`0 0 ${many.length} 10`} preserveAspectRatio="none" role="img" aria-label={`Cells of one direction that run at each step: they grow to ${most} and fall again`}>
        {many.map((count, step) => (
          <rect class={step === now ? "now" : ""} x={step + 0.1} width="0.8" y={10 - (10 * count) / most} height={(10 * count) / most} />
        ))}
      </svg>
    </figure>
  );
}
