// What the work starts from: tokens, matrices, the rule, and how scores are scaled.
import type { NumberView, Problem, StepView } from "../../schema";
import { useAnswer } from "../../core/ask";
import { cellOf, Matrix, rowsOf, type Cell } from "../../core/matrix";
import { Slider } from "../../core/slider";
import { start } from "../../core/start";
import { change, questionOf } from "../../core/state";
import { TextField } from "../../core/text-field";
import { completions } from "../rule/completion";
import { isDirect, isSource, sharedPlace, type WorkState } from "./state";

type MatrixName = "tokens" | "wq" | "wk" | "wv" | "wo" | "memory" | "q" | "k" | "v";
const WITH_TOKENS: MatrixName[] = ["tokens", "wq", "wk", "wv", "wo", "memory"];
const DIRECT: MatrixName[] = ["q", "k", "v", "wo"];
const TITLES: { [name in MatrixName]: [string, string, string] } = {
  tokens: ["X", "Tokens", ""],
  wq: ["W_q", "Query matrix", "queries are the tokens"],
  wk: ["W_k", "Key matrix", "keys are the tokens"],
  wv: ["W_v", "Value matrix", "values are the tokens"],
  wo: ["W_o", "Output matrix", "no output matrix"],
  memory: ["Y", "Memory", "keys and values from the tokens"],
  q: ["Q", "Queries", ""],
  k: ["K", "Keys", ""],
  v: ["V", "Values", ""],
};

const ROWS: { [name: string]: string } = { tokens: "token", memory: "token", q: "query", k: "key", v: "key" }; // what a row is
const FROM_TOKENS = ["n", "m", "heads"]; // sizes that are known

interface Props {
  state: WorkState;
  problem: Problem | null;
  pointed: NumberView | null;
  steps: StepView[];
}

export function Inputs({ state, problem, pointed, steps }: Props) {
  const direct = isDirect(state);
  const read = useAnswer("read", questionOf("read", state));
  const letters = read.answer?.letters.filter((letter) => letter.value === null && !FROM_TOKENS.includes(letter.name)) ?? [];
  const set = (name: string) => (value: number | string | null) => {
    const { [name]: _, ...others } = state.numbers;
    change({ numbers: value === null ? others : { ...others, [name]: value } });
  };
  return (
    <>
      <div class="work-inputs">
        {(direct ? DIRECT : WITH_TOKENS).map((name) => (
          <GivenMatrix name={name} state={state} problem={problem} pointed={pointed} steps={steps} />
        ))}
      </div>
      <div class="work-options">
        <div class="work-option" role="radiogroup" aria-label="The work starts from">
          <label><input type="radio" name="from" checked={!direct} onChange={() => change({ q: [], k: [], v: [] })} /> tokens and matrices</label>
          <label><input type="radio" name="from" checked={direct} onChange={() => change(asGiven(steps))} /> Q, K and V</label>
        </div>
        <TextField
          name="rule"
          label="Attention mask, as a rule"
          value={state.rule}
          problem={read.problem}
          onInput={(rule) => change({ rule })}
          placeholder="full, causal, or a condition such as k <= q"
          complete={(text, caret, asked) => completions(start.value?.catalogue ?? [], read.answer?.letters ?? [], text, caret, asked)}
        />
        <Scale scale={state.scale} />
        <label class="work-option">
          heads
          <input type="number" min={1} max={16} value={state.heads} onInput={(event) => change({ heads: Math.max(1, Math.min(16, Math.round(event.currentTarget.valueAsNumber) || 1)) })} />
        </label>
        {!direct && (
          <label class="work-option" title="q = W_q x in place of q = x W_q">
            <input type="checkbox" checked={state.columns} onChange={(event) => change({ columns: event.currentTarget.checked })} /> tokens are columns
          </label>
        )}
      </div>
      {letters.length > 0 && (
        <div class="sliders">
          {letters.map((letter) => (
            <Slider name={letter.name} value={state.numbers[letter.name] ?? null} example={letter.example} min={letter.size ? 1 : 0} max={16} onChange={set(letter.name)} />
          ))}
        </div>
      )}
    </>
  );
}

function GivenMatrix({ name, state, problem, pointed }: Props & { name: MatrixName }) {
  const cells = rowsOf(state[name]);
  const [sign, label, without] = TITLES[name];
  const wide = rowsOf(state.tokens)[0]?.length ?? 1;
  if (cells.length === 0)
    return (
      <button class="quiet work-absent" onClick={() => change({ [name]: beginning(name, wide, rowsOf(state.tokens)) })}>
        <span class="hidden">Give {label.toLowerCase()} </span>+ <var><Sign of={sign} /></var> <small>{without}</small>
      </button>
    );
  const wrong = cellOf(problem, name);
  return (
    <div class="work-given">
      <Matrix
        label={label}
        name={<Sign of={sign} />}
        cells={cells}
        most={ROWS[name] ? 12 : 8}
        rowNames={ROWS[name] ? cells.map((_, at) => `${ROWS[name]} ${at + 1}`) : undefined}
        note={({ row, column }: Cell) => (wrong?.row === row && wrong.column === column ? problem!.message : "")}
        look={({ row, column }) => (isSource(pointed, sharedPlace(name, cells, state.heads, state.columns, row, column)) ? "work-source" : "")}
        onChange={(rows) => change({ [name]: rows })}
      />
      {without && (
        <button class="quiet" title={`Leave ${sign} out: ${without}`} aria-label={`Leave ${label} out`} onClick={() => change({ [name]: [] })}>✕</button>
      )}
    </div>
  );
}

function Sign({ of }: { of: string }) {
  const [letter, index] = of.split("_");
  return <>{letter}{index && <sub>{index}</sub>}</>;
}

/** The queries, keys and values that were worked out, heads side by side, to go on from. */
function asGiven(steps: StepView[]): { [name: string]: string[][] } {
  const rows = (name: string) => {
    const tables = steps.find((step) => step.name === name)?.tables ?? [];
    return (tables[0] ?? []).map((_, row) => tables.flatMap((table) => table[row]!.map((number) => number.text || number.decimal)));
  };
  const found = { q: rows("q"), k: rows("k"), v: rows("v") };
  return found.q.length ? found : { q: [["1", "0"]], k: [["1", "0"], ["0", "1"]], v: [["1"], ["2"]] };
}

/** The identity, or the tokens again for a memory. */
function beginning(name: MatrixName, wide: number, tokens: string[][]): string[][] {
  if (name === "memory") return tokens;
  return Array.from({ length: wide }, (_, row) => Array.from({ length: wide }, (_, column) => (row === column ? "1" : "0")));
}

function Scale({ scale }: { scale: string }) {
  const isNamed = scale === "1" || scale === "sqrt";
  return (
    <label class="work-option">
      scores times
      <select value={isNamed ? scale : ""} onChange={(event) => change({ scale: event.currentTarget.value || "1/2" })}>
        <option value="1">1</option>
        <option value="sqrt">1/√D</option>
        <option value="">…</option>
      </select>
      {!isNamed && <input type="text" size={6} value={scale} aria-label="Scale of the scores" onInput={(event) => change({ scale: event.currentTarget.value })} />}
    </label>
  );
}
