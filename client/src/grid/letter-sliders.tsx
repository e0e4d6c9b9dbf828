// A slider for each letter of a rule: a size or a parameter, a letter until it is given a number.
import type { Letter } from "../schema";
import { Slider } from "../core/slider";

type Numbers = { [name: string]: number | string };

const LARGEST = 1e6; // of a slider; a box takes any number
const LEAST_RANGE = 32; // of the slider of a parameter
const LINEAR = 256; // up to which places of a slider are numbers, not powers

export function LetterSliders({ letters, numbers, onChange }: { letters: Letter[]; numbers: Numbers; onChange: (numbers: Numbers) => void }) {
  const set = (name: string) => (value: number | string | null) => {
    const { [name]: _, ...others } = numbers;
    onChange(value === null ? others : { ...others, [name]: value });
  };
  const sizes = letters.filter((letter) => letter.size);
  const most = Math.max(...sizes.map((letter) => Number(numbers[letter.name] ?? letter.example)));
  return (
    <div class="sliders" role="group" aria-label="Letters of the rule">
      {letters.map((letter) => {
        const value = numbers[letter.name] ?? null;
        const max = letter.size ? (letter.name === "n" || letter.name === "m" ? LARGEST : 4096) : Math.min(LARGEST, Math.max(LEAST_RANGE, most, Number(value ?? 0)));
        return (
          <Slider
            key={letter.name}
            name={letter.name}
            value={value}
            example={letter.example}
            min={letter.least}
            least={letter.least || undefined}
            max={max}
            log={max > LINEAR}
            symbolic
            onChange={set(letter.name)}
          />
        );
      })}
    </div>
  );
}
