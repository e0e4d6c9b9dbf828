// What follows from a rule: how many pairs, keys and queries, how far back, which cache, which name.
import { current, together, useAnswer, type Reading } from "../../core/ask";
import { FoldedFormula, PiecewiseFormula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { change, questionOf } from "../../core/state";
import type { KeysAnswer } from "../../schema";
import { Spans } from "./spans";
import type { RuleProps } from "./state";

export function CountPanel({ state, read }: RuleProps) {
  const question = read.problem ? undefined : questionOf("count", state);
  const count = useAnswer("count", question);
  const grows = read.problem ? undefined : questionOf("growth", state);
  const growth = useAnswer("growth", grows);
  const found = count.answer;
  return (
    <Panel
      title="Pairs"
      about="How many (query, key) pairs the rule attends: exactly, in closed form, for every size and parameter at once, with the places where each formula holds. Give every letter a number to see its value."
      panel="count"
      question={question}
      reading={count}
    >
      {found?.formula && found.formula.text !== found.value.replaceAll(",", "") && <PiecewiseFormula formula={found.formula} />}
      {found?.partly && (
        <div class="rule-partly">
          <span class="rule-note">at the numbers given so far</span>
          <PiecewiseFormula formula={found.partly} />
        </div>
      )}
      {found?.value && (
        <p class="value">
          {found.value}
          {found.share && <small> of {found.dense} pairs, {found.share}</small>}
        </p>
      )}
      {found?.no_formula && <p class="rule-note">counted pair by pair{atText(found.examples)}</p>}
      <dl class="rule-facts-list">
        {growth.answer && !growth.problem && together(count, question, growth) && (
          <>
            <dt>grows as</dt>
            <dd class={current(growth, grows) ? "" : "stale"}>
              <FoldedFormula formula={growth.answer.order} />
            </dd>
          </>
        )}
        {growth.problem && growth.problem.kind !== "no formula" && !count.problem && (
          <>
            <dt>grows as</dt>
            <dd class="rule-note">{growth.problem.message}</dd>
          </>
        )}
        {found?.domain && (
          <>
            <dt>defined where</dt>
            <dd>
              <code>{found.domain}</code>
            </dd>
          </>
        )}
      </dl>
    </Panel>
  );
}

/** Keys of a query; the page asks for them, since what has no formula here has none in any panel. */
export function KeysPanel({ state, read, keys }: RuleProps & { keys: Reading<KeysAnswer> }) {
  const question = read.problem ? undefined : questionOf("keys", state);
  return (
    <Panel
      title="Keys and queries"
      about="How many keys one query attends (a row of the grid), and how many queries attend one key (a column), as formulas in its position, counted from 0."
      panel="keys"
      question={question}
      reading={keys}
    >
      {keys.answer && (
        <>
          <h3>keys of a query</h3>
          <PiecewiseFormula formula={keys.answer.per_query} />
          <h3>queries of a key</h3>
          <PiecewiseFormula formula={keys.answer.per_key} />
        </>
      )}
    </Panel>
  );
}

export function SpanPanel({ state, read }: RuleProps) {
  const question = read.problem ? undefined : questionOf("reach", state);
  const reach = useAnswer("reach", question);
  return (
    <Panel
      title="Attention span"
      about="The receptive field of one layer: how far back and how far ahead of a query its furthest key can be, along each axis."
      panel="reach"
      question={question}
      reading={reach}
    >
      <dl class="rule-facts-list">{reach.answer && <Spans spans={reach.answer.spans} />}</dl>
    </Panel>
  );
}

export function CachePanel({ state, read }: RuleProps) {
  const question = read.problem ? undefined : questionOf("cache", state);
  const cache = useAnswer("cache", question);
  const found = cache.answer;
  return (
    <Panel
      title="KV cache"
      about="While tokens are decoded one by one, a key is dropped after the last query that reaches it. So many keys are held at once at most: the size of the rolling buffer, per layer and key head."
      panel="cache"
      question={question}
      reading={cache}
    >
      {found?.no_cache && <p class="rule-note">{found.no_cache}</p>}
      {found?.sentence && (
        <>
          <p class="value">
            {found.most || "all"} <small>{found.most === "1" ? "key" : "keys"} at most{atText(found.examples)}</small>
          </p>
          <p>{found.sentence}</p>
        </>
      )}
    </Panel>
  );
}

export function NamesPanel({ state, read }: RuleProps) {
  const question = read.problem ? undefined : questionOf("rules", state);
  const names = useAnswer("rules", question);
  const found = names.answer;
  const given = found && Object.entries(found.arguments).map(([name, term]) => `${name} = ${term}`).join(", ");
  return (
    <Panel
      title="Also known as"
      about="The rule of the catalogue that attends the same pairs for every size and parameter, which is proved, not guessed; what other libraries call it, with their numbers in its letters; and its canonical form, one for this set however it was typed."
      panel="rules"
      question={question}
      reading={names}
    >
      {found && (
        <>
          {found.name ? (
            <p>
              <strong>{found.common || found.name}</strong>
              {found.common && `, here ${found.name}`}
              {given && ` with ${given}`}: {found.meaning.replaceAll("`", "")}.{" "}
              {found.call && <button onClick={() => change({ rule: found.call }, true)}>Write {found.call}</button>}
            </p>
          ) : (
            <p class="rule-note">None found: no rule of the catalogue was proved to attend the same pairs.</p>
          )}
          <dl class="rule-facts-list">
            {found.aliases.length > 0 && <Fact name="aliases" texts={found.aliases} />}
            {found.elsewhere.length > 0 && <Fact name="elsewhere" texts={found.elsewhere} />}
            {found.reference && <Fact name="reference" texts={[found.reference]} />}
            <dt>in canonical form</dt>
            <dd>
              {found.canonical ? (
                <>
                  <code>{found.canonical}</code>
                  <span class="rule-note">{atText(found.examples)}</span>
                </>
              ) : (
                <span class="rule-note">as typed: {found.unknown}</span>
              )}
            </dd>
          </dl>
        </>
      )}
    </Panel>
  );
}

/** At which numbers, where they are examples. */
function atText(examples: { [name: string]: number }): string {
  const taken = Object.entries(examples).map(([name, value]) => `${name} = ${value}`);
  return taken.length ? ` at ${taken.join(", ")}, as drawn` : "";
}

function Fact({ name, texts }: { name: string; texts: string[] }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>
        {texts.map((text) => (
          <div>{text}</div>
        ))}
      </dd>
    </>
  );
}
