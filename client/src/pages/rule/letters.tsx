// The letters of the rules: sizes and parameters, each a letter until it is given a number.
import { LetterSliders } from "../../grid/letter-sliders";
import { change } from "../../core/state";
import type { Letter } from "../../schema";
import type { RuleProps } from "./state";

export function Letters({ state, read, other, hasFormulas }: RuleProps & { hasFormulas: boolean }) {
  const letters = new Map<string, Letter>();
  for (const letter of [...(read.answer?.letters ?? []), ...(other.answer?.letters ?? [])])
    if (letter.value === null && !letters.has(letter.name)) letters.set(letter.name, letter);
  const open = [...letters.values()].filter((letter) => state.numbers[letter.name] === undefined);
  return (
    <>
      <LetterSliders letters={[...letters.values()]} numbers={state.numbers} onChange={(numbers) => change({ numbers })} />
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
