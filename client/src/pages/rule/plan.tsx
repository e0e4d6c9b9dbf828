// Plan: what attention would do under the rule: which pairs run, by which kernel, and why not the others.
import { useAnswer } from "../../core/ask";
import { Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import type { Amount, KernelChoice, PlanPart } from "../../schema";
import "./plan.css";
import { PlanPicture } from "./plan-picture";
import type { RuleProps, RuleState } from "./state";
import { TileMap } from "./tile-map";

const ABOUT =
  "What lt.attention would do, found without doing it. Needed: pairs the rule attends. Executed: pairs in the tiles of the kernel that runs. Dense: all pairs. " +
  "No GPU is needed to ask about one. The map shows where tiles run: zoom from all positions down to single pairs.";
const DTYPES = ["bfloat16", "float16", "float32", "float64"];
const KERNELS = ["sdpa", "triton", "native", "cpu", "dense", "reference"];
const SIZES = [4096, 65536, 1_000_000];

export function PlanPanel({ state, read }: RuleProps) {
  const question = read.problem ? undefined : questionOf("explain", state);
  const reading = useAnswer("explain", question);
  const answer = reading.answer;
  return (
    <Panel title="Plan" about={ABOUT} panel="explain" question={question} reading={reading} picture wide controls={<Controls state={state} line={read.answer?.axes.length === 1} />}>
      {!answer && reading.busy && <p class="plan-call">planning…</p>}
      {answer && (
        <>
          <p class="plan-call">
            {answer.title}; {answer.tensors}
            {answer.examples.length > 0 && <>; {answer.examples.join(" and ")} as an example until set above</>}
          </p>
          <div class="plan-columns">
            <div>
              <Bars amounts={answer.amounts} of={answer.of} />
              <p class="plan-useful">{answer.useful}</p>
              {answer.why && <p class="plan-why">{answer.why}</p>}
              {answer.as_written && <p class="plan-why">planned as written: {answer.as_written}</p>}
              <Kernels kernels={answer.kernels} refused={answer.refused} />
              <dl class="facts">
                {answer.facts.map((fact) => (
                  <div>
                    <dt>{fact.name}</dt>
                    <dd>{fact.words}</dd>
                  </div>
                ))}
              </dl>
            </div>
            <div>
              {answer.mapped ? <TileMap state={state} at={answer.at} /> : question && <PlanPicture question={question} title={answer.title} />}
              {answer.parts.map((part, place) => (
                <Part part={part} name={answer.parts.length > 1 ? `part ${place + 1} of ${answer.parts.length}` : "one part"} />
              ))}
            </div>
          </div>
        </>
      )}
    </Panel>
  );
}

function Controls({ state, line }: { state: RuleState; line: boolean }) {
  const number = (name: "head_dim" | "heads" | "kv_heads" | "batch", label: string, least: number) => (
    <label>
      {label}{" "}
      <input
        type="number"
        min={least}
        value={state[name]}
        onInput={(event) => {
          const value = event.currentTarget.valueAsNumber;
          if (Number.isInteger(value)) change({ [name]: value }); // one below the least is answered by a message
        }}
      />
    </label>
  );
  return (
    <div class="plan-controls">
      <label>
        device{" "}
        <select value={state.device} onChange={(event) => change({ device: event.currentTarget.value })}>
          <option value="cpu">CPU</option>
          <option value="cuda">GPU (cuda)</option>
        </select>
      </label>
      <label>
        dtype{" "}
        <select value={state.dtype} onChange={(event) => change({ dtype: event.currentTarget.value })}>
          {DTYPES.map((name) => (
            <option value={name}>{name}</option>
          ))}
        </select>
      </label>
      {number("heads", "heads", 1)}
      {number("kv_heads", "kv_heads (0: as many as heads)", 0)}
      {number("head_dim", "head_dim", 1)}
      {number("batch", "batch", 1)}
      <label>
        kernel{" "}
        <select value={state.kernel} onChange={(event) => change({ kernel: event.currentTarget.value })}>
          <option value="">the best</option>
          {KERNELS.map((name) => (
            <option value={name}>{name}</option>
          ))}
        </select>
      </label>
      {line && (
        <span class="plan-sizes" role="group" aria-label="Sequence length">
          {SIZES.map((n) => (
            <button aria-pressed={state.numbers.n === n} onClick={() => change({ numbers: { ...state.numbers, n } })}>
              n = {n.toLocaleString("en")}
            </button>
          ))}
        </span>
      )}
    </div>
  );
}

/** Bars on a logarithmic axis, whose left end is a power of ten below the shortest. */
function Bars({ amounts, of }: { amounts: Amount[]; of: string }) {
  const shares = amounts.map((one) => one.share).filter((share): share is number => share !== null && share > 0);
  const decades = Math.max(1, Math.ceil(-Math.log10(Math.min(1, ...shares)) + 0.15));
  const width = (share: number) => Math.max(0.5, (100 * (Math.log10(share) + decades)) / decades);
  return (
    <table class="plan-bars">
      <caption>pairs {of}; each mark is ten times the one before</caption>
      <tbody>
        {amounts.map((one) => (
          <tr>
            <th scope="row">{one.name}</th>
            <td class="number">{one.pairs}</td>
            <td class="plan-bar">
              <div class="plan-marks" style={{ backgroundSize: `${100 / decades}% 100%` }}>
                {one.share !== null && one.share > 0 && <div class={`plan-fill ${one.name.split(",")[0]}`} style={{ width: `${Math.min(100, width(one.share))}%` }} />}
              </div>
            </td>
            <td class="number">{one.share_text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Kernels({ kernels, refused }: { kernels: KernelChoice[]; refused: string }) {
  return (
    <>
      <table class="plan-kernels">
        <caption>Which kernel, and why not the others</caption>
        <tbody>
          {kernels.map((kernel) => (
            <tr class={kernel.chosen ? "chosen" : kernel.reason ? "not" : ""}>
              <th scope="row">{kernel.name}</th>
              <td>{kernel.chosen ? "✓ chosen" : kernel.reason ? `no: ${kernel.reason}` : "could run it"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {refused && <p class="plan-why">attention would raise: {refused}</p>}
    </>
  );
}

function Part({ part, name }: { part: PlanPart; name: string }) {
  const rows: [string, string][] = [
    ["layout", part.layout],
    ["checked", part.checked && `for each pair: ${part.checked}`],
    ["tiles", part.tiles],
    ["steps", part.steps],
    ["executed", `${part.executed} pairs`],
  ];
  return (
    <div class="plan-part">
      <h3>
        {name}: <code>{part.condition}</code>
      </h3>
      <dl class="facts">
        {rows.map(
          ([label, words]) =>
            words && (
              <div>
                <dt>{label}</dt>
                <dd>{words}</dd>
              </div>
            ),
        )}
      </dl>
    </div>
  );
}
