// The rule explorer in a notebook: the workbench's text field, sliders and grid, and the count below.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAnswer } from "../core/ask";
import { PiecewiseFormula } from "../core/formula";
import { LetterSliders } from "../grid/letter-sliders";
import { TextField } from "../core/text-field";
import { spanAt } from "../grid/clauses";
import { Grid } from "../grid/grid";
import { modelOrReason } from "../grid/model";
import { completions } from "../pages/rule/completion";
import type { CountAnswer } from "../schema";
import type { WidgetModel } from "./channel";
import "./style.css";

const NOTHING = {}; // is asked of the start: it has the catalogue

type Numbers = { [name: string]: number | string };

export function Explorer({ model: held }: { model: WidgetModel }) {
  const [rule, setRule] = useHeld<string>(held, "rule");
  const [numbers, setNumbers] = useHeld<Numbers>(held, "numbers");
  const [view, setView] = useState<number[]>([]);
  const [pixel, setPixel] = useState<number[]>([]);
  const [spoken, setSpoken] = useState<[number, number] | null>(null);
  const start = useAnswer("start", NOTHING);
  const read = useAnswer("read", { rule });
  const count = useAnswer("count", read.problem ? undefined : { rule, numbers });
  const { model, reason } = useMemo(
    () => modelOrReason(read.answer ? [read.answer] : [], { numbers, pixel, head: 0, slice: -1, flat: false }),
    [read.answer, JSON.stringify([numbers, pixel])],
  );
  const complete = (text: string, caret: number, asked: boolean) => completions(start.answer?.catalogue ?? [], read.answer?.letters ?? [], text, caret, asked);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const mend = (event: Event) => setRule((event as CustomEvent<string>).detail);
    place.current!.addEventListener("mend", mend);
    return () => place.current?.removeEventListener("mend", mend);
  }, []);
  return (
    <div class="explorer" ref={place}>
      <TextField name="rule" label="Who attends to whom" value={rule} problem={read.problem} onInput={setRule} placeholder="k <= q, or a name such as causal; the key ↓ lists them" highlight={spoken} complete={complete} known={start.answer} />
      {read.answer?.meaning && <p class="explorer-note">{read.answer.meaning}</p>}
      <LetterSliders letters={(read.answer?.letters ?? []).filter((letter) => letter.value === null)} numbers={numbers} onChange={setNumbers} />
      {reason && <p role="status">{reason}</p>}
      {model && (
        <Grid
          model={model}
          view={view}
          plan={null}
          asked={read.problem ? null : { rule, other: "", numbers, ...model.chosen }}
          marks={[]}
          onView={setView}
          onPixel={setPixel}
          onCursor={(at) => setSpoken(at && spanAt(model, at))}
        />
      )}
      {count.answer && !read.problem && <Pairs found={count.answer} />}
      {count.problem && !read.problem && <p class="explorer-note">{count.problem.message}</p>}
    </div>
  );
}

/** How many pairs, in closed form, and at the numbers given. */
function Pairs({ found }: { found: CountAnswer }) {
  return (
    <div class="explorer-pairs" data-value={found.value}>
      <h3>Attended pairs</h3>
      {found.formula && <PiecewiseFormula formula={found.formula} />}
      {found.value && (
        <p class="value">
          {found.value}
          {found.share && <small> of {found.dense} pairs, {found.share}</small>}
        </p>
      )}
      {found.no_formula && <p class="explorer-note">counted pair by pair: {found.no_formula}</p>}
    </div>
  );
}

/** A value that Python holds: what it is now, and what sets it. */
function useHeld<Value>(model: WidgetModel, name: string): [Value, (value: Value) => void] {
  const [value, setValue] = useState(() => model.get(name) as Value);
  useEffect(() => {
    const changed = () => setValue(model.get(name) as Value);
    model.on(`change:${name}`, changed);
    changed();
    return () => model.off(`change:${name}`, changed);
  }, [model]);
  const set = (next: Value) => {
    setValue(next);
    model.set(name, next);
    model.save_changes();
  };
  return [value, set];
}
