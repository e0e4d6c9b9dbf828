// A z of few values: typed probabilities, every z summed, all of it exact.
import { useAnswer } from "../../core/ask";
import { Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import type { DiscreteAnswer } from "../../schema";
import type { ElboState } from "./state";
import { Terms } from "./terms";

const FIELDS = [
  ["prior", "p(z), the prior"],
  ["likelihood", "p(x|z), of the x that is seen"],
  ["guess", "q(z|x)"],
] as const;

export function DiscretePanel({ state }: { state: ElboState }) {
  const question = questionOf("elbo_discrete", state);
  const reading = useAnswer("elbo_discrete", question);
  const answer = reading.answer;
  return (
    <Panel
      title="A z of few values"
      about="Type one number for each value of z, with commas: fractions or decimals. Every z is summed, so that p(x), the bound and the gap are exact."
      panel="elbo_discrete"
      question={question}
      reading={reading}
    >
      <div class="elbo-typed">
        {FIELDS.map(([name, label]) => (
          <label>
            {label}
            <input type="text" value={state[name]} spellcheck={false} autocomplete="off" onInput={(event) => change({ [name]: event.currentTarget.value })} />
          </label>
        ))}
        <button disabled={!answer} onClick={() => answer && change({ guess: answer.best })}>q = posterior</button>
      </div>
      {answer && <Values answer={answer} />}
      {answer && <Terms bound={answer.bound} />}
    </Panel>
  );
}

/** For every z three bars: prior, posterior and q. */
function Values({ answer }: { answer: DiscreteAnswer }) {
  const kinds = [["prior", "mark"], ["posterior", "good"], ["guess", "other"]] as const;
  return (
    <table class="elbo-values">
      <thead>
        <tr>
          <th scope="col">z</th>
          <th scope="col">prior, posterior, q</th>
          <th scope="col">p(z|x)</th>
        </tr>
      </thead>
      <tbody>
        {answer.values.map((value, index) => (
          <tr>
            <th scope="row">{index + 1}</th>
            <td>
              {kinds.map(([kind, tone]) => (
                <div class="elbo-share" role="img" aria-label={`${kind === "guess" ? "q" : kind} ${value[kind].toFixed(3)}`}>
                  <span style={{ width: `${100 * value[kind]}%`, background: `var(--${tone})` }} />
                </div>
              ))}
            </td>
            <td class="number">{value.text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
