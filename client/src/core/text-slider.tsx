// A number with a slider that is kept as it is typed: 1/2 and sqrt(3) stay what they are.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Props {
  name: string;
  label?: ComponentChildren;
  text: string;
  value?: number; // of the text, where a page cannot read it itself
  min: number;
  max: number;
  step: number;
  onChange: (text: string) => void;
}

export function TextSlider({ name, label, text, value, min, max, step, onChange }: Props) {
  const id = useId();
  const found = value ?? valueOf(text);
  return (
    <div class="slider">
      <label for={id}>{label ?? <var>{name}</var>}</label>
      <input
        type="range"
        id={id}
        min={min}
        max={max}
        step={step}
        value={Number.isFinite(found) ? Math.max(min, Math.min(max, found)) : min}
        aria-valuetext={text}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <input type="text" aria-label={`${name}, number`} value={text} spellcheck={false} autocomplete="off" onInput={(event) => onChange(event.currentTarget.value)} />
    </div>
  );
}

/** A decimal or a fraction as a number, NaN for anything else. */
export function valueOf(text: string): number {
  const [above = "", below = "1", ...more] = text.split("/");
  return above.trim() === "" || below.trim() === "" || more.length ? NaN : Number(above) / Number(below);
}
