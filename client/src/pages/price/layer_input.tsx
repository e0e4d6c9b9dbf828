// A layer as a person types it, with the names that may stand at the caret, and the catalogue as buttons.
import type { ComponentChildren } from "preact";
import type { CatalogueLayer, LayersAnswer, Problem } from "../../schema";
import { start } from "../../core/start";
import { TextField, type Completion } from "../../core/text-field";

/** The layer of the catalogue that a text begins with. */
export function layerOf(text: string, menus: LayersAnswer | null): CatalogueLayer | null {
  const names = text.match(/[A-Za-z]\w*/g) ?? [];
  const first = names.find((name) => menus?.layers.some((layer) => layer.name === name));
  return menus?.layers.find((layer) => layer.name === first) ?? null;
}

interface Props {
  label: string;
  name: string; // of the field in a problem
  text: string;
  problem: Problem | null;
  menus: LayersAnswer | null;
  onInput: (text: string) => void;
  children?: ComponentChildren;
}

export function LayerInput({ label, name, text, problem, menus, onInput, children }: Props) {
  const complete = (typed: string, caret: number, asked: boolean) => completions(typed, caret, asked, menus);
  return (
    <TextField name={name} label={label} value={text} problem={problem} onInput={onInput} placeholder="attention(causal)" complete={complete}>
      {children}
    </TextField>
  );
}

/** Names of layers; inside the brackets of one, rules for its mask and what else it takes. */
function completions(text: string, caret: number, asked: boolean, menus: LayersAnswer | null): Completion[] {
  const before = text.slice(0, caret);
  const word = /[A-Za-z]\w*$/.exec(before)?.[0] ?? "";
  if (!menus || (!word && !asked)) return [];
  const place = { start: caret - word.length, end: caret };
  const open = /([A-Za-z]\w*)\s*\(([^()]*)$/.exec(before.slice(0, place.start));
  const layer = menus.layers.find((one) => one.name === open?.[1]);
  if (!open) return menus.layers.filter((one) => one.name.startsWith(word) && one.name !== word).map((one) => ({ ...place, insert: one.name, detail: one.about }));
  if (!layer || /=\s*$/.test(open[2]!)) return [];
  const taken = layer.signature.split(", ").map((argument) => argument.split("=") as [string, string?]);
  const rules = layer.rule && !open[2]!.trim() ? (start.value?.catalogue ?? []) : [];
  return [
    ...rules.filter((rule) => rule.name.startsWith(word) && rule.name !== word).map((rule) => ({ ...place, insert: rule.name, detail: rule.meaning })),
    ...taken.filter(([name]) => name.startsWith(word) && !open[2]!.includes(`${name}=`)).map(([name, usual]) => ({ ...place, insert: `${name}=`, detail: usual && `${usual} if not given` })),
  ];
}

export function Chips({ menus, label, onPick }: { menus: LayersAnswer | null; label: string; onPick: (layer: CatalogueLayer) => void }) {
  return (
    <div class="price-chips" role="group" aria-label={label}>
      {menus?.layers.map((layer) => (
        <button title={layer.about} onClick={() => onPick(layer)}>{layer.name}</button>
      ))}
    </div>
  );
}
