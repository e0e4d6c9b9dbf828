// A number with a slider; a letter until it is touched.
import { useId } from "preact/hooks";

interface Props {
  name: string;
  value: number | string | null; // null: still a letter
  example: number; // where the slider stands while it is
  min?: number;
  max: number;
  step?: number;
  log?: boolean; // the slider's places are powers, for sizes up to a million
  label?: string;
  onChange: (value: number | string | null) => void;
}

const PLACES = 1000;

export function Slider({ name, value, example, min = 0, max, step = 1, log, label, onChange }: Props) {
  const id = useId();
  const number = Number(value ?? example);
  const low = Math.max(1, min);
  const place = log ? (PLACES * Math.log(Math.max(number, low) / low)) / Math.log(max / low) : number;
  const read = (text: string) => {
    if (!log) return Number(text);
    const near = Math.round(low * (max / low) ** (Number(text) / PLACES));
    return near > 64 ? Number(near.toPrecision(2)) : near;
  };
  return (
    <div class={value === null ? "slider letter" : "slider"}>
      <label for={id}>{label ?? <var>{name}</var>}</label>
      <input
        type="range"
        id={id}
        min={log ? 0 : min}
        max={log ? PLACES : max}
        step={log ? 1 : step}
        value={Math.min(place, log ? PLACES : max)}
        aria-valuetext={value === null ? `${name}, a letter; the picture has ${example}` : String(value)}
        onInput={(event) => onChange(read(event.currentTarget.value))}
      />
      <input
        type="text"
        inputMode="numeric"
        aria-label={`${name}, number`}
        placeholder={name}
        value={value === null ? "" : String(value)}
        onChange={(event) => {
          const text = event.currentTarget.value.trim();
          onChange(text === "" ? null : Number.isSafeInteger(Number(text)) || step < 1 ? Number(text) : text);
        }}
      />
    </div>
  );
}
