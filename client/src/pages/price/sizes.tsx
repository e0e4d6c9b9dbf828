// The letters of layers, each with a slider; letters until they are touched.
import type { SizeLetter } from "../../schema";
import { Slider } from "../../core/slider";
import { change } from "../../core/state";
import type { Numbers } from "./state";

const MOST = 2 ** 20;
const MOST_BY_LETTER = { heads: 256, l: 256, layers: 256, k: 31 } as { [name: string]: number };

export function Sizes({ letters, numbers }: { letters: SizeLetter[]; numbers: Numbers }) {
  const set = (name: string) => (value: number | string | null) => {
    const { [name]: _, ...others } = numbers;
    change({ numbers: value === null ? others : { ...others, [name]: value } });
  };
  const open = letters.filter((letter) => !(letter.name in numbers));
  const filled = Object.fromEntries(open.map((letter) => [letter.name, letter.example]));
  if (!letters.length) return null;
  return (
    <>
      <div class="sliders">
        {letters.map((letter) => (
          <Slider name={letter.name} value={numbers[letter.name] ?? null} example={letter.example} min={1} max={MOST_BY_LETTER[letter.name] ?? MOST} log onChange={set(letter.name)} />
        ))}
      </div>
      <div class="price-row">
        <button disabled={!open.length} onClick={() => change({ numbers: { ...numbers, ...filled } })}>Numbers for all</button>
        <button disabled={open.length === letters.length} onClick={() => change({ numbers: {} })}>Letters only</button>
      </div>
    </>
  );
}
