// The letters of the rules: sizes and parameters, each a letter until it is given a number.
import { Slider } from "../../core/slider";
import { change } from "../../core/state";
import type { Letter } from "../../schema";
import type { RuleProps } from "./state";

const LARGEST = 1e6; // of a slider; a box takes any number
const LEAST_RANGE = 32; // of the slider of a parameter
const LINEAR = 256; // up to which places of a slider are numbers, not powers

export function Letters({ state, read, other, hasFormulas }: RuleProps & { hasFormulas: boolean }) {
  const letters = new Map<string, Letter>();
  for (const letter of [...(read.answer?.letters ?? []), ...(other.answer?.letters ?? [])])
    if (letter.value === null && !letters.has(letter.name)) letters.set(letter.name, letter);
  const set = (name: string) => (value: number | string | null) => {
    const { [name]: _, ...others } = state.numbers;
    change({ numbers: value === null ? others : { ...others, [name]: value } });
  };
  const sizes = [...letters.values()].filter((letter) => letter.size);
  const most = Math.max(...sizes.map((letter) => Number(state.numbers[letter.name] ?? letter.example)));
  const open = [...letters.values()].filter((letter) => state.numbers[letter.name] === undefined);
  return (
    <>
      <div class="sliders" role="group" aria-label="Letters of the rule">
        {[...letters.values()].map((letter) => {
          const value = state.numbers[letter.name] ?? null;
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
      {open.length > 0 && (
        <p class="rule-open">
          {listed(open.map((letter) => letter.name))} {open.length === 1 ? "is" : "are"} open{hasFormulas && ": formulas hold for every number"}; what needs a number takes{" "}
          {open.map((letter) => `${letter.name} = ${letter.example}`).join(", ")}
          {open.some((letter) => letter.name === "n") && "; Plan and Cost may take a longer n and name it"}.
        </p>
      )}
    </>
  );
}

/** n, t and w. */
function listed(names: string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
