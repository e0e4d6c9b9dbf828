// The same rule as code: Lattend, FlexAttention, NumPy, PyTorch.
import { useState } from "preact/hooks";
import { current, useAnswer } from "../../core/ask";
import { Copy, Panel } from "../../core/panel";
import { questionOf } from "../../core/state";
import type { RuleProps } from "./state";

export function CodePanel({ state, read }: RuleProps) {
  const question = read.problem ? undefined : questionOf("code", state);
  const code = useAnswer("code", question);
  const [chosen, setChosen] = useState("Lattend");
  const snippets = code.answer?.snippets ?? [];
  const shown = snippets.find((one) => one.title === chosen) ?? snippets[0];
  return (
    <Panel
      title="The same in code"
      about="Lines that run as they stand: attention under this rule in Lattend, as a FlexAttention mask, as a NumPy mask, and for PyTorch's own attention. Letters without a number have an example in them. A mask_mod can also be pasted into the field above: it is read as a rule."
      panel="code"
      question={question}
      reading={code}
    >
      <div class="code-choice" role="group" aria-label="Library">
        {snippets.map((one) => (
          <button aria-pressed={one === shown} onClick={() => setChosen(one.title)}>
            {one.title}
          </button>
        ))}
        <span class="grow" />
        {shown && <Copy name="Copy" text={shown.code} off={current(code, question) === null} />}
      </div>
      {shown && (
        <pre class="code" tabIndex={0} aria-label={`${shown.title} code`}>
          {shown.code}
        </pre>
      )}
    </Panel>
  );
}
