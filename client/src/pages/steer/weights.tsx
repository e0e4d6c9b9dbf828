// Weights as bars, and wanted weights with a slider each.
import type { SteerAnswer, TryQueryAnswer } from "../../schema";
import { Chart } from "../../core/chart";
import { change } from "../../core/state";
import { read, toneOf } from "./keys";
import type { SteerState } from "./state";

/** What every key gets, what is wanted for it, and what it gets of a query without end in this direction. */
export function Weights({ answer }: { answer: TryQueryAnswer }) {
  return (
    <table class="steer-weights">
      <thead>
        <tr>
          <th scope="col">key</th>
          <th scope="col" class="number">logit</th>
          <th scope="col" colSpan={2}>weight, wanted at the line</th>
          <th scope="col" class="number" title="as the query is made longer without end">limit</th>
        </tr>
      </thead>
      <tbody>
        {answer.weights.map((weight, key) => (
          <tr>
            <th scope="row"><span class="steer-swatch" style={{ background: `var(--${toneOf(key)})` }} />k{key}</th>
            <td class="number">{weight.logit}</td>
            <td class="steer-bar" aria-hidden="true">
              <div style={{ width: `${100 * weight.share}%`, background: `var(--${toneOf(key)})` }} />
              <i style={{ left: `${100 * weight.wanted}%` }} title="wanted" />
            </td>
            <td class="number">{weight.weight}</td>
            <td class="number">{weight.limit === 0 ? "0" : weight.limit === 1 ? "1" : `1/${Math.round(1 / weight.limit)}`}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The weights as the query is made shorter and longer. */
export function Growth({ answer }: { answer: TryQueryAnswer }) {
  const { lengths, weights } = answer.growth;
  return (
    <div class="steer-growth">
      <Chart
        about={`The weight of every key as the query is made longer, from 0 to 5 times its length. ${answer.how}`}
        x={lengths}
        curves={weights.map((y, key) => ({ name: `k${key}`, y }))}
        xName="length of the query, 1 as drawn"
        yName="weight"
        yRange={[0, 1]}
        height={220}
      />
    </div>
  );
}

/** A slider and a number for each wanted part; the share it has of all is the server's. */
export function Wanted({ state, answer }: { state: SteerState; answer: SteerAnswer | null }) {
  const { keys, wanted } = read(state);
  const set = (key: number, text: string) => change({ wanted: keys.map((_, at) => (at === key ? text : (wanted[at] ?? "0"))) });
  const fresh = answer?.wanted.length === keys.length;
  return (
    <div class="steer-wanted" role="group" aria-label="Wanted weights, as parts">
      {keys.map((_, key) => {
        const text = wanted[key] ?? "0";
        const number = Number(text);
        return (
          <div>
            <span><span class="steer-swatch" style={{ background: `var(--${toneOf(key)})` }} />k{key}</span>
            <input type="range" min={0} max={4} step={0.05} value={Number.isFinite(number) ? number : 1} aria-label={`Wanted part of key ${key}`} aria-valuetext={`${text}, weight ${fresh ? answer.wanted[key] : ""}`} onInput={(event) => set(key, event.currentTarget.value)} />
            <input type="text" value={text} aria-label={`Wanted part of key ${key}, number`} onInput={(event) => set(key, event.currentTarget.value)} />
            <output class="number">{fresh ? answer.wanted[key] : ""}</output>
            <button class="quiet" title={`All weight to key ${key}`} onClick={() => change({ wanted: keys.map((_, at) => (at === key ? "1" : "0")) })}>only</button>
          </div>
        );
      })}
    </div>
  );
}
