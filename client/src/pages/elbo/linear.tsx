// A linear-Gaussian model of many numbers: three q, and the bound of k samples.
import { useAnswer } from "../../core/ask";
import { Chart } from "../../core/chart";
import { Panel } from "../../core/panel";
import { PartView } from "../../core/report";
import { Slider } from "../../core/slider";
import { change, questionOf } from "../../core/state";
import type { ElboState } from "./state";

const SLIDERS = [
  ["size", "numbers in x", 1, 24],
  ["latent", "latents", 1, 6],
  ["examples", "examples", 1, 8],
  ["seed", "seed", 0, 99],
] as const;

export function LinearPanel({ state }: { state: ElboState }) {
  const question = questionOf("elbo_linear", state);
  const reading = useAnswer("elbo_linear", question);
  const answer = reading.answer;
  const set = (name: string, least: number, most: number) => (value: number | string | null) =>
    change({ [name]: Math.min(most, Math.max(least, Math.round(Number(value) || 0))) });
  return (
    <Panel
      title="Many numbers, several latents"
      about="A model x = W z + b + noise drawn at random, in float64. Of three q the terms add up to log p(x) to the last digits; averaging k weighted samples makes the bound of a worse q tighter."
      panel="elbo_linear"
      question={question}
      reading={reading}
      picture
      wide
    >
      <div class="sliders">
        {SLIDERS.map(([name, label, least, most]) => (
          <Slider name={label} label={label} value={state[name]} example={least} min={least} max={most} onChange={set(name, least, most)} />
        ))}
        <Slider name="noise variance" label="noise variance" value={state.noise_variance} example={1} min={0.05} max={4} step={0.05} onChange={(value) => change({ noise_variance: Math.min(100, Math.max(0.001, Number(value) || 1)) })} />
      </div>
      {answer && (
        <div class="elbo-linear">
          <div class="report">{answer.parts.map((part) => <PartView part={part} />)}</div>
          <Chart
            about="How far the bound of k samples is below log p(x), over k"
            x={answer.bounds[0]!.points.map(([k]) => k)}
            curves={answer.bounds.map((line) => ({ name: line.name, y: line.points.map(([, nats]) => nats) }))}
            xName="k"
            yName="log p(x) − bound, nats"
            xLog={2}
            {...(answer.log ? { yLog: 10 as const } : {})}
            height={260}
          />
        </div>
      )}
    </Panel>
  );
}
