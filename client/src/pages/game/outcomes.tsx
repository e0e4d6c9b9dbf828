// The step rules: which are drawn, and what each does at this step.
import { useAnswer } from "../../core/ask";
import { Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import { WordsView } from "../../core/words";
import type { Outcome } from "../../schema";
import { Typed } from "./controls";
import { TONES, type GameState } from "./state";

const METHODS: { [name: string]: string } = {
  simultaneous: "both move at once",
  alternating: "one moves, the other answers",
  optimistic: "twice the gradient less the last one",
  extragradient: "the gradient of one step ahead",
  momentum: "keeps a share of the last move",
  consensus: "also goes down the length of the gradient",
  gradient_penalty: "the maximiser pays for the gradient it gives",
};
const TURNS = ["alternating", "momentum", "consensus", "gradient_penalty"];
const ABOUT =
  "Each step rule near the equilibrium: one step multiplies the distance from it by a matrix, and the largest absolute value of its eigenvalues, the factor, decides. " +
  "All of it is exact; a period is proved by a power of the matrix that is the identity.";

export function Outcomes({ state }: { state: GameState }) {
  const question = questionOf("game_outcome", state);
  const reading = useAnswer("game_outcome", question);
  const drawn = [state.method, ...state.also.filter((name) => name !== state.method)];
  const toggle = (name: string) => change({ also: state.also.includes(name) ? state.also.filter((one) => one !== name) : [...state.also, name] });
  return (
    <Panel title="Step rules" about={ABOUT} panel="game_outcome" question={question} reading={reading}>
      <table class="game-rules">
        <thead>
          <tr>
            <th scope="col">in detail</th>
            <th scope="col">drawn</th>
            <th scope="col">rule, and what it does at this step</th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(METHODS).map(([name, about]) => {
            const outcome = reading.answer?.outcomes.find((one) => one.name === name);
            const at = drawn.indexOf(name);
            const label = name.replace("_", " ");
            return (
              <tr class={at < 0 ? "" : "drawn"}>
                <td>
                  <input type="radio" name="method" checked={name === state.method} aria-label={`${label} in detail`} onChange={() => change({ method: name })} />
                </td>
                <td>
                  <input type="checkbox" checked={at >= 0} disabled={name === state.method} aria-label={`draw ${label}`} onChange={() => toggle(name)} />
                </td>
                <td>
                  {at >= 0 && <span class="game-swatch" style={{ background: `var(--${TONES[at]})` }} />}
                  <b>{label}</b> <span class="game-about">{about}</span>
                  {at >= 0 && outcome && <Words outcome={outcome} />}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <MethodOptions state={state} drawn={drawn} />
      {reading.answer && <p class="game-rest">This holds {reading.answer.reach}.</p>}
    </Panel>
  );
}

function Words({ outcome }: { outcome: Outcome }) {
  return (
    <div class={`game-outcome ${outcome.kind}`} data-method={outcome.name}>
      <WordsView words={outcome.words} />
    </div>
  );
}

/** What some of the rules can be told. */
function MethodOptions({ state, drawn }: { state: GameState; drawn: string[] }) {
  const has = (...names: string[]) => names.some((name) => drawn.includes(name));
  return (
    <div class="game-options">
      {has(...TURNS) && (
        <label>
          who moves first{" "}
          <select value={state.first} onChange={(event) => change({ first: event.currentTarget.value })}>
            <option value="">{has("momentum", "consensus", "gradient_penalty") ? "alternating: the maximiser; others: both at once" : "the maximiser, as by default"}</option>
            <option value="p">the minimiser</option>
            <option value="q">the maximiser</option>
          </select>
        </label>
      )}
      {has("momentum") && <Typed name="mass" text={state.mass} hint="-1/2" onChange={(mass) => change({ mass })} />}
      {has("consensus", "gradient_penalty") && <Typed name="weight" text={state.weight} hint="1" onChange={(weight) => change({ weight })} />}
    </div>
  );
}
