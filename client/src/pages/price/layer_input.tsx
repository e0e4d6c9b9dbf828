// A layer as a person types it, with the names that may stand at the caret, and the catalogue as buttons.
import type { ComponentChildren } from "preact";
import type { CatalogueLayer, LayersAnswer, Problem } from "../../schema";
import { fitting, ruleNames, wordAt } from "../../core/completion";
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
    <TextField name={name} label={label} value={text} problem={problem} onInput={onInput} placeholder="attention(causal)" complete={complete} known={menus}>
      {children}
    </TextField>
  );
}

/** Names of layers; inside the brackets of one, rules for its mask and what else it takes. */
function completions(text: string, caret: number, asked: boolean, menus: LayersAnswer | null): Completion[] {
  const { word, rest, place } = wordAt(text, caret);
  if (!menus || ((!word || rest) && !asked)) return [];
  const offer = (known: [name: string, detail: string, ...unknown[]][], after = ""): Completion[] =>
    fitting(known, word).filter(([name]) => name + after !== word).map(([name, detail]) => ({ ...place, insert: name + after, detail }));
  const open = /([A-Za-z]\w*)\s*\(([^()]*)$/.exec(text.slice(0, place.start));
  const layer = menus.layers.find((one) => one.name === open?.[1]);
  if (!open) return offer(menus.layers.map((one) => [one.name, one.about]));
  if (!layer || /=\s*$/.test(open[2]!)) return [];
  const taken = layer.signature.split(", ").map((argument) => argument.split("=") as [string, string?]);
  const rules = layer.rule && !open[2]!.trim() ? (start.value?.catalogue ?? []) : [];
  const free = taken.filter(([name]) => !open[2]!.includes(`${name}=`));
  return [
    ...offer(rules.flatMap(ruleNames)),
    ...offer(free.map(([name, otherwise]) => [name, otherwise ? `${otherwise} if not given` : ""]), "="),
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
