// A number with a slider; a letter until it is touched.
import { useId, useState } from "preact/hooks";
import { wholeNumber } from "./whole-number";

interface Props {
  name: string;
  value: number | string | null; // null: still a letter
  example: number; // where the slider stands while it is
  min?: number;
  max: number;
  step?: number;
  log?: boolean; // the slider's places are powers, for sizes up to a million
  label?: string;
  symbolic?: boolean; // whether it can become a letter again
  least?: number; // what the box takes; a slider may begin above it
  onChange: (value: number | string | null) => void;
}

const PLACES = 1000;

export function Slider({ name, value, example, min = 0, max, step = 1, log, label, symbolic, least, onChange }: Props) {
  const id = useId();
  const [wrong, setWrong] = useState("");
  const number = Number(value ?? example);
  const low = Math.max(1, min);
  const place = log ? (PLACES * Math.log(Math.max(number, low) / low)) / Math.log(max / low) : number;
  const read = (text: string) => {
    if (!log) return Number(text);
    const near = Math.round(low * (max / low) ** (Number(text) / PLACES));
    return near > 64 ? Number(near.toPrecision(2)) : near;
  };
  return (
    <div class={`slider${value === null ? " letter" : ""}${symbolic ? " symbolic" : ""}`}>
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
        onKeyDown={(event) => {
          const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
          if (!log || !way) return;
          event.preventDefault();
          let to = Math.round(place) + way; // several places may stand for one number
          while (to > 0 && to < PLACES && read(String(to)) === number) to += way;
          onChange(read(String(Math.min(Math.max(to, 0), PLACES))));
        }}
      />
      <NumberBox name={name} value={value} example={example} whole={step >= 1} least={least ?? -Infinity} describedBy={wrong && `${id}-wrong`} onWrong={setWrong} onChange={onChange} />
      {symbolic && (
        <button class="quiet" disabled={value === null} onClick={() => onChange(null)} title={`${name} becomes a letter again`} aria-label={`${name}: a letter again`}>
          ×
        </button>
      )}
      {wrong && (
        <p class="slider-wrong" id={`${id}-wrong`} role="status">
          {wrong}; the page still shows {name} = {typeof value === "string" ? value : number.toLocaleString("en")}
        </p>
      )}
    </div>
  );
}

interface BoxProps {
  name: string;
  value: number | string | null;
  example: number; // what the picture has while it is a letter
  whole: boolean;
  least: number;
  describedBy: string;
  onWrong: (why: string) => void; // "" once it is right again
  onChange: (value: number | string | null) => void;
}

/** The number as text, followed as it is typed; what is no number stays until the box is left. */
function NumberBox({ name, value, example, whole, least, describedBy, onWrong, onChange }: BoxProps) {
  const [draft, setDraft] = useState<string | null>(null);
  const read = (text: string) => {
    const found = whole ? wholeNumber(text) : text.trim() === "" ? null : Number.isNaN(Number(text)) ? undefined : Number(text);
    return typeof found === "number" && found < least ? undefined : found;
  };
  const why = (text: string) => (wholeNumber(text) !== undefined ? `${name} is at least ${least}` : whole ? `${name} is a whole number, such as 4096, 65,536, 1e6 or 2^16` : `${name} is a number, such as 0.5`);
  const meant = draft === null ? null : read(draft);
  const wrong = meant === undefined;
  const shown = draft !== null && (wrong || meant === value) ? draft : value === null ? "" : String(value); // undo may have changed it
  return (
    <input
      type="text"
      inputMode="numeric"
      aria-label={`${name}, number`}
      aria-invalid={wrong}
      aria-describedby={describedBy || undefined}
      placeholder={String(example)}
      value={shown}
      onInput={(event) => {
        const text = event.currentTarget.value;
        const found = read(text);
        setDraft(text);
        onWrong(found === undefined ? why(text) : "");
        if (found !== undefined) onChange(found);
      }}
      onBlur={() => {
        setDraft(null);
        onWrong("");
      }}
    />
  );
}
