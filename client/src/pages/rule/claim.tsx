// Claim: is this formula the count? Proved, or refuted with the smallest counterexample.
import { useAnswer } from "../../core/ask";
import { Formula, PiecewiseFormula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import { TextField } from "../../core/text-field";
import type { Judgement, OpenLetter, Problem } from "../../schema";
import "./claim.css";
import { CounterexampleView } from "./counterexample";
import type { RuleProps, RuleState } from "./state";

const ABOUT =
  "Type what you believe the number of attended pairs to be, as on paper: n(n + 1)/2, 1 + 2 + … + n, \\sum_{i=1}^n i, N = a = b, min(q + 1, t + 1), O(n t), Θ(n²). " +
  "It is compared with the exact count for every size and parameter at once; sliders change nothing here. Where it fails, the smallest numbers at which it does are drawn.";
const TRY = ["n^2", "n(n + 1)/2", "Θ(n^2)", "O(n)"];
const TRY_IMAGE = ["rows^2 cols^2", "9 rows cols", "Θ(rows cols)"];
const SIGNS = { holds: "✓", "holds only where": "◐", fails: "✗", undecided: "?" };

export function ClaimPanel({ state, read }: RuleProps) {
  const question = read.problem || !state.claim.trim() ? null : questionOf("claim", state);
  const reading = useAnswer("claim", question);
  const answer = question && reading.answer;
  return (
    <Panel
      title="Claim"
      about={ABOUT}
      panel="claim"
      question={question}
      reading={{ ...reading, problem: question && reading.problem?.field !== "claim" ? reading.problem : null }}
      picture={Boolean(answer?.drawing)}
      controls={<Controls state={state} problem={question && reading.problem?.field === "claim" ? reading.problem : null} letter={answer?.letter ?? null} />}
    >
      {!question && !read.problem && (
        <p class="claim-try">
          try{" "}
          {(read.answer?.letters.some((letter) => letter.name === "rows") ? TRY_IMAGE : TRY).map((text) => (
            <button onClick={() => change({ claim: text })}>{text}</button>
          ))}
        </p>
      )}
      {answer && !reading.problem && (
        <div>
          <p class="claim-read">
            read as <Formula latex={answer.read} block />
          </p>
          {answer.letter && <Letter letter={answer.letter} state={state} />}
          {answer.verdict && <Verdict verdict={answer.verdict} />}
          {answer.drawing && answer.verdict && <CounterexampleView grid={answer.drawing} verdict={answer.verdict} numbers={state.numbers} />}
          {answer.verdict && answer.verdict.status !== "holds" && (state.per || state.assume) && (
            <div class="claim-count">
              {state.per === "query" ? "the keys of a query, exactly" : state.per === "key" ? "the queries of a key, exactly" : "the count there, exactly"}
              <PiecewiseFormula formula={answer.count} />
            </div>
          )}
        </div>
      )}
    </Panel>
  );
}

function Controls({ state, problem, letter }: { state: RuleState; problem: Problem | null; letter: OpenLetter | null }) {
  const names = Object.entries(state.rename);
  return (
    <>
      <TextField name="claim" label="The count is" value={state.claim} placeholder="n(n + 1)/2" problem={problem} highlight={letter && [letter.start, letter.end]} onInput={(claim) => change({ claim })} />
      <div class="claim-options">
        <label>
          of{" "}
          <select value={state.per} onChange={(event) => change({ per: event.currentTarget.value })}>
            <option value="">all pairs</option>
            <option value="query">the keys of a query</option>
            <option value="key">the queries of a key</option>
          </select>
        </label>
        <label>
          positions count from{" "}
          <select value={state.first} onChange={(event) => change({ first: Number(event.currentTarget.value) })}>
            <option value={0}>0</option>
            <option value={1}>1</option>
          </select>
        </label>
        <label>
          assuming{" "}
          <input class="claim-assume" value={state.assume} placeholder="t < n, w | n" spellcheck={false} autocomplete="off" onInput={(event) => change({ assume: event.currentTarget.value })} />
        </label>
        {names.map(([name, ours]) => (
          <span class="claim-name">
            <label>
              <var>{name}</var> is{" "}
              <input value={ours} size={Math.max(2, String(ours).length)} spellcheck={false} onInput={(event) => change({ rename: { ...state.rename, [name]: event.currentTarget.value } })} />
            </label>
            <button class="quiet" aria-label={`${name} is ${ours}: take that back`} onClick={() => change({ rename: Object.fromEntries(names.filter(([other]) => other !== name)) })}>
              ×
            </button>
          </span>
        ))}
      </div>
    </>
  );
}

function Letter({ letter, state }: { letter: OpenLetter; state: RuleState }) {
  return (
    <div class="claim-letter" role="status">
      <p>
        What is <var>{letter.name}</var>? {letter.message}.
      </p>
      {letter.offers.map((ours) => (
        <button onClick={() => change({ rename: { ...state.rename, [letter.name]: ours } })}>
          {letter.name} is {ours}
        </button>
      ))}
    </div>
  );
}

/** What is decided about a formula, with its links and other readings. */
export function Verdict({ verdict }: { verdict: Judgement }) {
  return (
    <div class="claim-verdict">
      <div role="status">
        <Status verdict={verdict} />
      </div>
      {verdict.links.length > 0 && (
        <ol class="claim-links">
          {verdict.links.map((link) => (
            <li>
              <code>{link.claim}</code> <Status verdict={link} />
            </li>
          ))}
        </ol>
      )}
      {verdict.readings.length > 0 && <p class="claim-readings">{verdict.readings.join("; ")}</p>}
      {verdict.instead.map((other) => (
        <div class="claim-instead">
          <p>
            {other.how}: <Status verdict={other} />
          </p>
          {other.how.includes("first=1") && <button onClick={() => change({ first: 1 })}>count positions from 1</button>}
          {other.how.includes("bracket") && <button onClick={() => change({ claim: other.claim })}>write {other.claim}</button>}
        </div>
      ))}
    </div>
  );
}

/** The verdict's sign and word, then where it holds and why, in words. */
function Status({ verdict }: { verdict: Judgement }) {
  const { status, where, because, remaining, example } = verdict;
  const place = !where ? "" : where === "nowhere" ? "it agrees nowhere" : status === "fails" ? `it agrees only where ${where}` : status === "holds" ? `for ${where}` : where;
  return (
    <span class={`claim-status ${status.replaceAll(" ", "-")}`}>
      <strong>
        <span aria-hidden="true">{SIGNS[status]}</span> {status}
      </strong>
      {place && <> {withSigns(place)}</>}
      {example && <span class="claim-why">{example.sentence}</span>}
      {because && <span class="claim-why">{because}</span>}
      {remaining && <span class="claim-why">what remains: {withSigns(remaining)}</span>}
    </span>
  );
}

/** Conditions as they are printed: ≤ for <=. */
function withSigns(text: string): string {
  return text.replaceAll("<=", "≤").replaceAll(">=", "≥").replaceAll("!=", "≠").replaceAll("==", "=");
}
