// Steering: drag the query and see the weights; or say the weights, and get the query or the proof that there is none.
import type { SteerAnswer } from "../../schema";
import { useAnswer } from "../../core/ask";
import { cellOf, Matrix, type Cell } from "../../core/matrix";
import { Panel } from "../../core/panel";
import { PartView, type ReportView } from "../../core/report";
import { Slider } from "../../core/slider";
import { change, questionOf } from "../../core/state";
import { read, setKeys } from "./keys";
import { OutputPlane, QueryPlane, WhyPlane } from "./planes";
import type { SteerState } from "./state";
import "./style.css";
import { Growth, Wanted, Weights } from "./weights";

const TRY_ABOUT = (
  <>
    Attention over a few keys, for one query. Drag the query <b>q</b>, or any key: the weights softmax(Kq) follow. The shaded
    directions say which key wins all weight as the query is made longer; a key inside the hull of the others never does. On
    the right, the output is the mixture of the values by these weights.
  </>
);
const STEER_ABOUT = (
  <>
    The other way round: say which weights attention should return. Either a query gives them exactly, or queries near them in
    the limit as they grow, or no query ever does; then two mixtures of keys are one point, and every query gives both the same
    logit. Wanted weights are parts: 1, 1, 2 is ¼, ¼, ½.
  </>
);

export default function SteerPage({ state }: { state: SteerState }) {
  const trying = questionOf("try_query", state);
  const aiming = questionOf("steer", state);
  const tried = useAnswer("try_query", trying);
  const steered = useAnswer("steer", aiming);
  const { keys, query } = read(state);
  const flat = keys[0]?.length === 2 && query.length === 2;
  return (
    <>
      <Inputs state={state} problem={tried.problem} />
      <div class="panels">
        <Panel title="What the query gets" about={TRY_ABOUT} panel="try_query" question={trying} reading={tried} picture wide>
          <div class="steer-beside">
            <div>
              {flat ? <QueryPlane state={state} answer={tried.answer} steered={steered.answer} /> : <p class="steer-note">The plane is drawn for keys of two numbers.</p>}
              {tried.answer && <Facts report={tried.answer.report} />}
            </div>
            <div>
              {tried.answer && <Weights answer={tried.answer} />}
              {tried.answer && <p class="steer-how">{tried.answer.how}</p>}
              <OutputPlane state={state} answer={tried.answer} />
              {tried.answer && <Growth answer={tried.answer} />}
            </div>
          </div>
        </Panel>
        <Panel title="The query for wanted weights" about={STEER_ABOUT} panel="steer" question={aiming} reading={steered} picture wide>
          <div class="steer-beside">
            <div>
              <Wanted state={state} answer={steered.answer} />
              {steered.answer?.sharp && (
                <Slider name="β" label="sharpness β" value={state.sharpness === "" ? null : state.sharpness} example={7} min={0} max={20} step={0.1} onChange={(value) => change({ sharpness: value === null ? "" : String(value) })} />
              )}
              {steered.answer && <Verdict answer={steered.answer} />}
              {steered.answer && <Facts report={steered.answer.report} />}
            </div>
            {steered.answer && steered.answer.keys[0]?.length === 2 && <WhyPlane answer={steered.answer} />}
          </div>
        </Panel>
      </div>
    </>
  );
}

function Facts({ report }: { report: ReportView }) {
  return <>{report.parts.filter((part) => part.kind === "facts").map((part) => <PartView part={part} />)}</>;
}

const SIGNS: { [reach: string]: [string, string] } = {
  exactly: ["✓ exactly", "good"],
  "in the limit": ["→ in the limit", "warn"],
  never: ["✗ never", "bad"],
};

function Verdict({ answer }: { answer: SteerAnswer }) {
  const [sign, tone] = SIGNS[answer.reach] ?? [answer.reach, "warn"];
  return (
    <div class="steer-verdict">
      <p>
        <strong class={`steer-reach ${tone}`}>{sign}</strong> {answer.how}
      </p>
      <button onClick={() => change({ query: answer.query })}>Try this query</button>
    </div>
  );
}

function Inputs({ state, problem }: { state: SteerState; problem: { message: string } | null }) {
  const { keys, values, query } = read(state);
  const wrong = (name: string) => {
    const found = cellOf(problem, name);
    return ({ row, column }: Cell) => (found && found.row === row && found.column === column ? problem!.message : "");
  };
  const names = keys.map((_, at) => `key ${at}`);
  return (
    <div class="steer-inputs">
      <Matrix label="Keys" name="K" cells={keys} rowNames={names} note={wrong("keys")} onChange={(cells) => setKeys(state, cells)} />
      {values.length > 0 && <Matrix label="Values" name="V" cells={values} rowNames={names} fixedRows note={wrong("values")} onChange={(cells) => change({ values: cells })} />}
      <Matrix label="Query" name="q" cells={[query]} rowNames={["query"]} fixedRows fixedColumns note={wrong("query")} onChange={([row]) => change({ query: row! })} />
      <label class="steer-scale">
        scale <input type="text" value={state.scale} size={6} onInput={(event) => change({ scale: event.currentTarget.value })} aria-describedby="steer-scale-note" />
        <span id="steer-scale-note" class="hidden">of the logits: a number, or sqrt for 1/√D</span>
      </label>
      <label>
        <input type="checkbox" checked={values.length > 0} onChange={(event) => change({ values: event.currentTarget.checked ? keys.map((row) => [...row]) : [] })} /> values
      </label>
    </div>
  );
}
