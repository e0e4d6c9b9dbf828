// lt.nn.GridRNN against plain loops of its equation.
import { useAnswer } from "../../core/ask";
import { Formulas } from "../../core/formula";
import { Panel } from "../../core/panel";
import { Report } from "../../core/report";
import { questionOf } from "../../core/state";
import type { GridState } from "./state";

export function CheckPanel({ state }: { state: GridState }) {
  const question = questionOf("grid_check", state);
  const reading = useAnswer("grid_check", question);
  return (
    <Panel
      title="Checked against plain loops"
      about="The torch module lt.nn.GridRNN with random weights, run by each of its CPU kernels, and the same equation in loops of plain Python numbers: the states, and the gradients of every weight and of the image. Differences are those of rounding in float64."
      panel="grid_check"
      question={question}
      reading={reading}
      wide
    >
      {reading.answer && (
        <>
          <Formulas lines={reading.answer.equation} />
          <p class={reading.answer.equal ? "grid-equal" : "grid-differs"}>{reading.answer.equal ? "✓ equal up to rounding" : "✗ they differ"}</p>
          <Report report={reading.answer.report} formulas />
        </>
      )}
    </Panel>
  );
}
