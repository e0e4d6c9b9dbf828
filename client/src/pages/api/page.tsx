// API: the questions of all panels as JSON, for scripts; any of them tried here.
import { useEffect, useState } from "preact/hooks";
import { useAnswer } from "../../core/ask";
import { ProblemText } from "../../core/panel";
import { copy } from "../../core/live";
import { change } from "../../core/state";
import { boundsOf, entries, typeOf, type Entry, type Schema, type Shape } from "./schema";
import type { ApiState } from "./state";
import "./style.css";
import type { Answers } from "../../schema";

export default function ApiPage({ state }: { state: ApiState }) {
  const [schema, setSchema] = useState<Schema | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    const read = async () => setSchema((await (await fetch("api/schema.json")).json()) as Schema);
    read().catch(() => setFailed(true));
  }, []);
  const known = schema ? entries(schema) : [];
  const shown = known.find((one) => one.name === state.panel) ?? known[0];
  return (
    <div class="panels">
      <section class="panel wide" aria-labelledby="api-about" aria-busy={!schema && !failed}>
        <h2 id="api-about">The same answers as JSON</h2>
        <p>
          Every panel is one <code>POST</code> of its question as JSON; the answer is what the panel shows. There is no key and nothing is kept between questions. Whole numbers may
          be sent as text, of any length up to 60 digits, and long ones come back as text.
        </p>
        <p>
          What cannot be answered has status 422 and says why: <code>kind</code>, <code>message</code>, the <code>field</code> it speaks of and the characters <code>start</code> to{" "}
          <code>end</code> of its text. 429 and 503 mean too much at once: ask again in a moment. 504 means no answer in time. A question has at most 1 MB.{" "}
          <a class="api-link" href="api/schema.json" download="lattend-openapi.json">All of it as OpenAPI</a>, and the{" "}
          <a class="api-link" href="licences.txt">licences</a> of the libraries in this page.
        </p>
        {failed && <p class="problem">The schema could not be read; is `lattend serve` still running?</p>}
        {schema && (
          <div class="field">
            <label for="api-panel">Panel</label>
            <select id="api-panel" value={shown?.name} onChange={(event) => choose(known, event.currentTarget.value)}>
              {known.map((one) => (
                <option value={one.name}>{`${one.name}: ${one.title}`}</option>
              ))}
            </select>
          </div>
        )}
      </section>
      {shown && <Description entry={shown} />}
      {shown && <Try entry={shown} body={state.body} />}
    </div>
  );
}

function choose(known: Entry[], name: string): void {
  const entry = known.find((one) => one.name === name)!;
  change({ panel: name, body: JSON.stringify(sample(entry)) });
}

/** A question to begin with: what is required, a rule where a rule is asked. */
function sample(entry: Entry): { [name: string]: unknown } {
  const begin = (shape: Shape) => ({ string: "", integer: 1, number: 1, boolean: false, array: [], object: {} })[shape.type ?? "string"] ?? "";
  const required = entry.question.required ?? [];
  return Object.fromEntries(required.map((name) => [name, name === "rule" || name === "other" ? "causal" : begin(entry.question.properties![name]!)]));
}

function Description({ entry }: { entry: Entry }) {
  return (
    <section class="panel" aria-labelledby="api-fields">
      <h2 id="api-fields">
        <code>POST /api/{entry.name}</code>
      </h2>
      {entry.about && <p><WithCode text={entry.about} /></p>}
      <Fields title="Question" shape={entry.question} defaults />
      <Fields title="Answer" shape={entry.answer} />
      {entry.picture && (
        <p>
          The picture: the same question to <code>/api/{entry.name}/picture.svg</code> or <code>picture.png</code>.
        </p>
      )}
    </section>
  );
}

function Fields({ title, shape, defaults }: { title: string; shape: Shape; defaults?: boolean }) {
  const required = new Set(shape.required);
  return (
    <div class="scroll" role="region" aria-label={title} tabIndex={0}>
      <table class="api-fields">
        <caption>
          {title}
          {shape.description && <span class="api-soft"> <WithCode text={shape.description} /></span>}
        </caption>
        <thead>
          <tr>
            <th scope="col">field</th>
            <th scope="col">type</th>
            {defaults && <th scope="col">if left out</th>}
          </tr>
        </thead>
        <tbody>
          {Object.entries(shape.properties ?? {}).map(([name, field]) => (
            <tr>
              <th scope="row">
                <code>{name}</code>
              </th>
              <td>
                {typeOf(field)}
                {boundsOf(field) && <span class="api-soft"> {boundsOf(field)}</span>}
              </td>
              {defaults && <td>{required.has(name) ? "required" : <code>{JSON.stringify(field.default ?? (field.type === "array" ? [] : {}))}</code>}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Try({ entry, body }: { entry: Entry; body: string }) {
  const question = parsed(body);
  const reading = useAnswer(entry.name as keyof Answers, question);
  const address = new URL(`api/${entry.name}`, location.href).href.split("#")[0]!;
  const curl = `curl ${address} \\\n  --json ${shellQuoted(body)}`;
  return (
    <section class="panel" aria-labelledby="api-try" aria-busy={reading.busy} data-panel="api">
      <header>
        <h2 id="api-try">Try it</h2>
        <span class="grow" />
        <div class="take" role="group" aria-label="Take along">
          <button class="quiet" onClick={() => void copy("Shell", curl)}>Shell</button>
          <button class="quiet" onClick={() => void copy("JSON", JSON.stringify(reading.answer, null, 1))} disabled={!reading.answer}>JSON</button>
        </div>
      </header>
      <div class="field">
        <label for="api-body">Question, as JSON</label>
        <textarea id="api-body" rows={3} spellcheck={false} value={body} aria-invalid={question === null} onInput={(event) => change({ body: event.currentTarget.value })} />
      </div>
      {question === null && <p class="problem" role="status">This is not a JSON object.</p>}
      {question !== null && reading.problem && <ProblemText problem={{ ...reading.problem, fixes: [] }} />}
      <pre class="api-curl scroll" role="region" tabIndex={0} aria-label="The command">{curl}</pre>
      {question !== null && reading.answer && !reading.problem && (
        <pre class="api-answer scroll" role="region" tabIndex={0} aria-label="The answer">{JSON.stringify(reading.answer, null, 1).slice(0, MOST)}</pre>
      )}
    </section>
  );
}

const MOST = 20_000; // characters that are shown of an answer

function parsed(text: string): object | null {
  try {
    const found = JSON.parse(text) as unknown;
    return typeof found === "object" && found !== null && !Array.isArray(found) ? found : null;
  } catch {
    return null;
  }
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A text whose parts between backticks are code. */
function WithCode({ text }: { text: string }) {
  return <>{text.split("`").map((part, place) => (place % 2 ? <code>{part}</code> : part))}</>;
}
