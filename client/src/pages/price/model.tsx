// A model from its config.json: parameters, multiply-adds at a length, KV cache.
import { useEffect } from "preact/hooks";
import type { ModelAnswer } from "../../schema";
import { useAnswer } from "../../core/ask";
import { Chart } from "../../core/chart";
import { Panel } from "../../core/panel";
import { Report } from "../../core/report";
import { Slider } from "../../core/slider";
import { change, questionOf } from "../../core/state";
import { ConfigEditor, ConfigSource, refusal, takeText } from "./config";
import type { ViewProps } from "./state";

const MOST = 2 ** 20;

export function ModelView({ state, menus }: ViewProps) {
  const question = questionOf("model", state);
  const reading = useAnswer("model", question);
  const found = reading.answer;
  useEffect(() => {
    const paste = (event: ClipboardEvent) => {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
      const text = event.clipboardData?.getData("text") ?? "";
      if (!typing && text) void takeText(text, "what was pasted");
    };
    document.addEventListener("paste", paste);
    return () => document.removeEventListener("paste", paste);
  }, []);
  return (
    <>
      <ConfigSource menus={menus} />
      <div class="sliders">
        {!found?.fixed && (
          <Slider name="length" label="Tokens" value={state.length} example={4096} min={1} max={found?.longest ?? MOST} log onChange={(value) => change({ length: value ?? 4096 })} />
        )}
        <Slider name="batch" label="Batch" value={state.batch} example={1} min={1} max={1024} log onChange={(value) => change({ batch: value ?? 1 })} />
        <label class="price-check">
          <input type="checkbox" checked={state.training} onChange={(event) => change({ training: event.currentTarget.checked })} />
          Training: forward and backward
        </label>
      </div>
      <Panel
        title={found?.title ?? "A model from its config.json"}
        about="The model that transformers builds from this config, counted without building it. Multiply-adds of matrix products: needed for attended pairs, executed in whole tiles of 64 × 64, dense as a counter reports them that ignores the attention mask."
        panel="model"
        question={question}
        reading={reading}
        stale={!!refusal.value || undefined}
        wide
      >
        {found && <Model found={found} />}
        <ConfigEditor config={state.config} />
      </Panel>
    </>
  );
}

function Model({ found }: { found: ModelAnswer }) {
  return (
    <>
      <dl class="price-cards">
        <Card name="parameters" value={found.parameters} />
        {found.active && <Card name="used by one token" value={found.active} />}
        <Card name="weights, 2 bytes a number" value={found.weights} />
        {found.cache && <Card name="KV cache, 2 bytes a number" value={found.cache} />}
        {["needed", "executed", "dense"].map((column, place) => (
          <Card name={`multiply-adds ${column}`} value={found.multiply_adds[place]!} />
        ))}
      </dl>
      <Shares found={found} />
      <section class="price-formulas">
        <h3>Formulas, {found.fixed ? "b images" : "n tokens of b sequences"}</h3>
        <Report report={found.formulas} />
      </section>
      <Times found={found} />
      {found.curves.length > 0 && <Growth found={found} />}
      <div class="price-about">
        <Report report={found.about} />
      </div>
    </>
  );
}

function Card({ name, value }: { name: string; value: string }) {
  const [number, rest] = value.split(" bytes ");
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {rest ? rest.replace(/[()]/g, "") : number}
        {rest && <small>{number} bytes</small>}
      </dd>
    </div>
  );
}

/** How the multiply-adds are shared out among the parts. */
function Shares({ found }: { found: ModelAnswer }) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Multiply-adds by part">
      <table class="report-table price-shares">
        <caption>{found.work_title}: multiply-adds by part</caption>
        <thead>
          <tr>
            <td />
            <th scope="col">share of what is needed</th>
            <th scope="col" class="number">needed</th>
            <th scope="col" class="number">executed</th>
            <th scope="col" class="number">dense</th>
          </tr>
        </thead>
        <tbody>
          {found.parts.map((part) => (
            <tr>
              <th scope="row">{part.name}</th>
              <td>
                <span class="price-bar" style={{ width: `${100 * part.share}%` }} />
                <span>{part.percent}</span>
              </td>
              <td class="number">{part.needed}</td>
              <td class="number">{part.executed === part.needed ? "=" : part.executed}</td>
              <td class="number">{part.dense === part.needed ? "=" : part.dense}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The least time on each machine: of the run, and of one more token. */
function Times({ found }: { found: ModelAnswer }) {
  const decodes = found.times.some((time) => time.token);
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Least time">
      <table class="report-table price-shares">
        <caption>Least time, in 2-byte numbers</caption>
        <thead>
          <tr>
            <td />
            <th scope="col">all of it</th>
            {decodes && <th scope="col">the last token, the others being cached</th>}
            <th scope="col">the machine's rates</th>
          </tr>
        </thead>
        <tbody>
          {found.times.map((time) => (
            <tr>
              <th scope="row">{time.machine}</th>
              <td>{time.run}, bound by {time.run_binds}</td>
              {decodes && <td>{time.token}, bound by {time.token_binds}</td>}
              <td class="price-note">{time.about}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** 2 MiB: what the axis says. */
function bytes(many: number): string {
  const power = Math.max(0, Math.min(5, Math.floor(Math.log2(many) / 10)));
  return `${many / 1024 ** power} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][power]!}`;
}

function Growth({ found }: { found: ModelAnswer }) {
  const x = found.lengths;
  const marks = found.passes ? [{ x: found.passes.length, y: found.passes.value, label: `${found.passes.length.toLocaleString("en")} tokens` }] : [];
  return (
    <div class="price-sections">
      <section>
        <h3>As the sequence grows</h3>
        <Chart about={`Multiply-adds needed by each part over the length of the sequence. ${found.passes_text}`} x={x} curves={found.curves.map((curve) => ({ name: curve.name, y: curve.values, texts: curve.texts }))} xName="tokens" yName="multiply-adds" xLog={2} yLog={10} marks={marks} />
        <p class="price-note">{found.passes_text}</p>
      </section>
      {found.cached && (
        <section>
          <h3>KV cache</h3>
          <Chart about="Bytes of the KV cache over the length of the sequence." x={x} curves={[{ name: found.cached.name, y: found.cached.values, texts: found.cached.texts }]} xName="tokens" xLog={2} yLog={2} yText={bytes} />
        </section>
      )}
    </div>
  );
}
