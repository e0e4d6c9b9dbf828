// α, how sharp heads are, on a logarithmic slider.
import { useId } from "preact/hooks";

const LOW = 0.05;
const HIGH = 50;
const PLACES = 300;

export function AlphaSlider({ alpha, onChange }: { alpha: number; onChange: (alpha: number) => void }) {
  const id = useId();
  const place = (PLACES * Math.log(Math.min(HIGH, Math.max(LOW, alpha)) / LOW)) / Math.log(HIGH / LOW);
  const read = (text: string) => Number((LOW * (HIGH / LOW) ** (Number(text) / PLACES)).toPrecision(3));
  return (
    <div class="slider">
      <label for={id}>
        Sharpness <var>α</var>
      </label>
      <input type="range" id={id} min={0} max={PLACES} step={1} value={Math.round(place)} aria-valuetext={String(alpha)} onInput={(event) => onChange(read(event.currentTarget.value))} />
      <input
        type="text"
        inputMode="decimal"
        aria-label="Sharpness α, number"
        value={String(alpha)}
        onChange={(event) => {
          const typed = Number(event.currentTarget.value);
          if (event.currentTarget.value.trim() && Number.isFinite(typed)) onChange(typed);
          else event.currentTarget.value = String(alpha);
        }}
      />
    </div>
  );
}
