// The grid of the rule, and of the second rule over it.
import { useMemo } from "preact/hooks";
import { current, useAnswer } from "../../core/ask";
import { Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import { spanAt } from "../../grid/clauses";
import { Grid } from "../../grid/grid";
import { modelOrReason, type Model } from "../../grid/model";
import type { Plan } from "../../grid/paint";
import { near, viewOf } from "../../grid/view";
import { hoveredSpan, marks, type Mark, type RuleProps, type RuleState } from "./state";

const ABOUT =
  "A query a row, a key a column: a square is filled where that query attends to that key. Where there are more pairs than pixels, a cell stands for many, shaded by the share of them that is attended. Of an image the keys of one query pixel are shown.";

const NEAR = 32; // positions down of a grid on which a pair is found without help

/** Where the library has no picture, the page has one all the same. */
const UNDRAWN = { copies: { python: "", command: "", latex: "" } };

export function GridPanel({ state, read, other }: RuleProps) {
  const question = read.problem || other.problem ? null : questionOf("draw", state);
  const drawing = useAnswer("draw", question);
  const undrawn = drawing.problem?.kind === "no answer" && { ...drawing, answer: drawing.answer ?? UNDRAWN, problem: null };
  const second = state.other ? other.answer : null;
  const { numbers, head, pixel, slice, flat } = state;
  const { model, reason } = useMemo(
    () => modelOrReason(read.answer ? [read.answer, ...(second ? [second] : [])] : [], state),
    [read.answer, second, JSON.stringify([numbers, head, pixel, slice, flat])],
  );
  const [plan, planProblem] = usePlan(state, model);
  const stale = read.answer !== null && (!current(read, questionOf("read", state)) || (state.other !== "" && !current(other, questionOf("other", state))));
  return (
    <Panel title="Grid" about={ABOUT} panel="draw" question={question} reading={undrawn || drawing} stale={stale} picture>
      {reason && <p role="status">{reason}</p>}
      {model && (
        <Grid
          model={model}
          view={state.view}
          plan={plan}
          asked={question && { ...questionOf("same", state), ...model.chosen }}
          marks={Object.values(marks.value).flat().flatMap((mark) => markedAt(model, mark) ?? [])}
          onView={(view) => change({ view })}
          onPixel={(pixel) => change({ pixel })}
          onCursor={(at) => (hoveredSpan.value = at && spanAt(model, at))}
        >
          <Choosing model={model} state={state} />
          <Places model={model} />
          {model.kind === "line" && <button aria-pressed={state.runs} onClick={() => change({ runs: !state.runs })} title="Outline the pairs that the plan below computes">What runs</button>}
          {planProblem && <span role="status">{planProblem}</span>}
        </Grid>
      )}
    </Panel>
  );
}

/** What the plan computes of the part that is seen. */
function usePlan(state: RuleState, model: Model | null): [Plan | null, string] {
  const wanted = state.runs && model?.kind === "line" ? model : null;
  const { top, left, height, width } = viewOf(state.view, wanted?.down.length ?? 1, wanted?.across.length ?? 1);
  const part = state.view.length ? [Math.floor(top), Math.ceil(top + height), Math.floor(left), Math.ceil(left + width)] : [];
  const question = wanted && { ...questionOf("tile_map", state), tiles_view: part };
  const reading = useAnswer("tile_map", question);
  const { problem, busy } = reading;
  const answer = problem ? null : current(reading, question, "tiles_view");
  const plan = useMemo(() => answer && { rows: answer.query_edges, cols: answer.key_edges, runs: answer.executed.map((row) => row.map((pairs) => pairs > 0)) }, [answer]);
  return [wanted && plan, problem?.message ?? (busy && !plan ? "planning…" : "")];
}

/** Which head, and of an image which of its pictures. */
function Choosing({ model, state }: { model: Model; state: RuleState }) {
  const { axes } = model.rules[0]!.read;
  const image = axes.length > 1, volume = axes.length > 2 && model.kind === "pixel";
  const heads = model.sizes.heads ?? 0;
  if (!image && !heads) return null;
  return (
    <>
      {image && (
        <div role="group" aria-label="What the grid shows">
          <button aria-pressed={!state.flat} onClick={() => change({ flat: false, view: [] })}>Keys of one pixel</button>{" "}
          <button aria-pressed={state.flat} onClick={() => change({ flat: true, view: [] })}>All pairs</button>
        </div>
      )}
      {volume && <Whole label="slice" value={model.chosen.slice} most={model.sizes[axes[0]![2]!]! - 1} onChange={(slice) => change({ slice })} />}
      {heads > 0 && <Whole label="head" value={model.chosen.head} most={heads - 1} onChange={(head) => change({ head })} />}
    </>
  );
}

function Whole({ label, value, most, onChange }: { label: string; value: number; most: number; onChange: (value: number) => void }) {
  return (
    <label>
      {label}{" "}
      <input type="number" min={0} max={most} value={value} onInput={(event) => Number.isInteger(event.currentTarget.valueAsNumber) && onChange(Math.max(0, Math.min(most, event.currentTarget.valueAsNumber)))} />
    </label>
  );
}

/** Pairs that other panels point at: one click shows them from near. */
function Places({ model }: { model: Model }) {
  const found = Object.values(marks.value).flat().slice(0, 4);
  if (found.length === 0 || model.down.length <= NEAR) return null;
  return (
    <div role="group" aria-label="Pairs to look at">
      {found.map((mark) => (
        <button onClick={() => change(shownNear(model, mark))}>Show {mark.label || pairText(mark)}</button>
      ))}
    </div>
  );
}

function pairText({ pair }: Mark): string {
  return Object.entries(pair).map(([name, value]) => `${name} = ${value}`).join(", ");
}

/** Where a mark is on the grid; null where it is not on it. */
function markedAt(model: Model, { pair, label }: Mark): { row: number; col: number; label: string } | null {
  const along = ({ names, lengths }: Model["down"]) => names.reduce((place, name, axis) => place * lengths[axis]! + (pair[name] ?? NaN), 0);
  const row = along(model.down), col = along(model.across);
  const here = Object.entries(pair).every(([name, value]) => model.down.names.includes(name) || model.across.names.includes(name) || model.rules[0]!.values[name] === value);
  return here && row < model.down.length && col < model.across.length ? { row, col, label } : null;
}

/** The state in which a mark is seen from near. */
function shownNear(model: Model, mark: Mark): { view: number[]; pixel?: number[]; slice?: number } {
  if (model.kind === "pixel") {
    const names = model.rules[0]!.read.axes.map((axis) => axis[0]!);
    return { view: [], pixel: names.map((name) => mark.pair[name] ?? 0), slice: mark.pair.kz ?? -1 };
  }
  const place = markedAt(model, mark);
  return { view: place ? near(place.row, place.col, model.down.length, model.across.length) : [] };
}
