// For which steps: ranges, eigenvalues and the best step, proved for all steps at once; the factor as a curve.
import { useAnswer } from "../../core/ask";
import { Chart } from "../../core/chart";
import { Panel } from "../../core/panel";
import { Report } from "../../core/report";
import { change, questionOf } from "../../core/state";
import type { StepsAnswer } from "../../schema";
import type { GameState } from "./state";

const ABOUT =
  "The same rule for every step h at once. The factor is the largest absolute value of an eigenvalue: below 1 distances shrink at every step, above 1 they grow. " +
  "The ends of the ranges are exact numbers. Steps with a period bring every start back; a click takes them.";

export function StepsPanel({ state }: { state: GameState }) {
  const question = questionOf("game_steps", state);
  const reading = useAnswer("game_steps", question);
  const answer = reading.answer;
  return (
    <Panel title={`For which steps: ${state.method.replace("_", " ")}`} about={ABOUT} panel="game_steps" question={question} reading={reading} picture>
      {answer && answer.points.length > 0 && (
        <Choices name="near" label="Equilibrium that is looked at">
          {answer.points.map((point) => (
            <button aria-pressed={state.at === point} onClick={() => change({ at: state.at === point ? "" : point })}>({point})</button>
          ))}
        </Choices>
      )}
      {answer && (answer.best || answer.periods.length > 0) && (
        <Choices name="take" label="Steps worth taking">
          {answer.best && <StepButton step={answer.best} label={`best step ${answer.best}`} now={state.step} />}
          {answer.periods.map((one) => (
            <StepButton step={one.step} label={`period ${one.period}`} now={state.step} />
          ))}
        </Choices>
      )}
      {answer && answer.factors.length > 0 && <Factors answer={answer} />}
      {answer && <Report report={answer.report} title={answer.factors.length === 0} />}
    </Panel>
  );
}

function Choices({ name, label, children }: { name: string; label: string; children: unknown }) {
  return (
    <div class="game-choices" role="group" aria-label={label}>
      <span>{name}</span> {children as never}
    </div>
  );
}

function StepButton({ step, label, now }: { step: string; label: string; now: string }) {
  return (
    <button aria-pressed={now === step} title={`h = ${step}`} onClick={() => change({ step })}>
      {label}
    </button>
  );
}

function Factors({ answer }: { answer: StepsAnswer }) {
  const [factor, one] = answer.factors;
  if (!factor || !one) return null;
  return (
    <Chart
      about="The factor by which distances shrink or grow at each step, over the step h; where it is below 1 the rule converges."
      x={factor.points.map(([h]) => h)}
      curves={[
        { name: "factor", y: factor.points.map(([, value]) => value) },
        { name: one.name, y: one.points.map(([, value]) => value) },
      ]}
      xName="step h"
      height={220}
    />
  );
}
