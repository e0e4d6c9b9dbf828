// A size: one number by a slider, or rows by columns as typed, 3x5.
import { useId } from "preact/hooks";

interface Props {
  label: string;
  value: string;
  min?: number;
  max: number;
  onChange: (value: string) => void;
}

export function SizeSlider({ label, value, min = 1, max, onChange }: Props) {
  const id = useId();
  const number = Number(/\d+/.exec(value)?.[0] ?? min);
  return (
    <div class="slider">
      <label for={id}>{label}</label>
      <input type="range" id={id} min={min} max={max} step={1} value={Math.min(max, number)} aria-valuetext={value} onInput={(event) => onChange(event.currentTarget.value)} />
      <input type="text" aria-label={`${label}, number, or rows by columns`} title="A number, or rows by columns: 3x5" value={value} onInput={(event) => onChange(event.currentTarget.value)} />
    </div>
  );
}
