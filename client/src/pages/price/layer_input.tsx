// A layer as a person types it, and the catalogue as buttons.
import { useId } from "preact/hooks";
import type { CatalogueLayer, LayersAnswer, Problem } from "../../schema";

/** The layer of the catalogue that a text begins with. */
export function layerOf(text: string, menus: LayersAnswer | null): CatalogueLayer | null {
  const names = text.match(/[A-Za-z]\w*/g) ?? [];
  const first = names.find((name) => menus?.layers.some((layer) => layer.name === name));
  return menus?.layers.find((layer) => layer.name === first) ?? null;
}

interface Props {
  label: string;
  text: string;
  problem?: Problem | null;
  field: string;
  menus: LayersAnswer | null;
  onInput: (text: string) => void;
}

export function LayerInput({ label, text, problem, field, menus, onInput }: Props) {
  const id = useId();
  const wrong = problem?.field === field && problem.text === text && problem.end > problem.start ? problem : null;
  return (
    <div class="field price-layer">
      <label for={id}>{label}</label>
      <span class="price-typed">
        {wrong && (
          <span class="price-mark" aria-hidden="true">
            {text.slice(0, wrong.start)}
            <mark>{text.slice(wrong.start, wrong.end)}</mark>
          </span>
        )}
        <input id={id} value={text} spellcheck={false} autocomplete="off" list={`${id}-names`} aria-invalid={wrong ? true : undefined} onInput={(event) => onInput(event.currentTarget.value)} />
      </span>
      <datalist id={`${id}-names`}>
        {menus?.layers.flatMap((layer) => [<option value={layer.name} />, <option value={layer.example} />])}
      </datalist>
    </div>
  );
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
