// A config.json: dropped, chosen, pasted, or edited. Whatever it holds is data.
import { signal } from "@preact/signals";
import { useId, useState } from "preact/hooks";
import type { LayersAnswer } from "../../schema";
import { ask, Refused } from "../../core/ask";
import { say } from "../../core/live";
import { change, here, type Json } from "../../core/state";
import type { PriceState } from "./state";

const MOST = 200_000; // bytes; a config.json has some thousands
export const refusal = signal(""); // why the last file was not taken

/** Reads a file that was dropped or chosen. */
export async function takeFile(file: File): Promise<void> {
  if (file.size > MOST) refuse(`${file.name} has ${file.size.toLocaleString("en")} bytes; a config.json has some thousands, and more than ${MOST.toLocaleString("en")} are not read`);
  else await takeText(await file.text(), file.name);
}

/** Takes the fields that a price is made from into the state, if the text is the config of a model that is known. */
export async function takeText(text: string, name: string): Promise<void> {
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch (error) {
    return refuse(`${name} is not JSON: ${error instanceof Error ? error.message : ""}`);
  }
  if (fields === null || typeof fields !== "object" || Array.isArray(fields)) return refuse(`${name} holds no fields; a config.json begins with {`);
  await takeConfig(fields as { [field: string]: Json }, name);
}

export async function takeConfig(config: { [field: string]: Json }, name: string): Promise<void> {
  try {
    const found = await ask("model", { config, length: 1 });
    const length = Number((here.value.state as PriceState).length) || 1;
    refusal.value = "";
    change({ view: "model", config: found.config as { [field: string]: Json }, length: Math.min(length, found.longest ?? length) });
    say(`${name}: ${found.title}`);
  } catch (error) {
    refuse(error instanceof Refused ? `${name}: ${error.problem.message}` : "the server does not answer");
  }
}

function refuse(message: string): void {
  refusal.value = message;
  if (here.value.state.view !== "model") change({ view: "model" });
}

/** Where a config.json comes from. */
export function ConfigSource({ menus }: { menus: LayersAnswer | null }) {
  const id = useId();
  return (
    <div class="price-drop">
      <p>
        Drop a <code>config.json</code> of Hugging Face here, paste it, or{" "}
        <label class="price-file" for={id}>choose a file</label>
        <input
          id={id}
          class="hidden"
          type="file"
          accept=".json,application/json"
          onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            if (file) void takeFile(file);
            event.currentTarget.value = "";
          }}
        />
      </p>
      <div class="price-chips" role="group" aria-label="Models by name">
        {menus?.models.map((model) => (
          <button onClick={() => void takeConfig(model.config as { [field: string]: Json }, model.name)}>{model.name}</button>
        ))}
      </div>
      {refusal.value && (
        <div class="problem" role="alert">
          <p>{refusal.value}</p>
        </div>
      )}
    </div>
  );
}

/** The fields as JSON, to be edited: every change is priced. */
export function ConfigEditor({ config }: { config: PriceState["config"] }) {
  const written = JSON.stringify(config, null, 1);
  const [typed, setTyped] = useState<{ text: string; of: string } | null>(null); // text that is not JSON yet
  const id = useId();
  const shown = typed && typed.of === written ? typed.text : written;
  const [wrong, setWrong] = useState("");
  const edit = (text: string) => {
    setTyped({ text, of: written });
    try {
      const fields = JSON.parse(text) as Json;
      if (fields === null || typeof fields !== "object" || Array.isArray(fields)) throw new Error("fields stand between { and }");
      setWrong("");
      refusal.value = "";
      setTyped({ text, of: JSON.stringify(fields, null, 1) });
      change({ config: fields });
    } catch (error) {
      setWrong(error instanceof Error ? error.message : "not JSON");
    }
  };
  return (
    <details class="price-editor">
      <summary>Fields, to be changed</summary>
      <label class="hidden" for={id}>Fields of the config as JSON</label>
      <textarea id={id} rows={Math.min(24, shown.split("\n").length)} spellcheck={false} value={shown} onInput={(event) => edit(event.currentTarget.value)} />
      {wrong && typed?.of === written && <p class="problem">Not JSON yet: {wrong}</p>}
    </details>
  );
}
