// One number explained by one latent: the bound, the densities, and the plane of all q.
import type { ComponentChildren } from "preact";
import { useAnswer } from "../../core/ask";
import { Chart } from "../../core/chart";
import { Panel } from "../../core/panel";
import { Plane, type Coordinates } from "../../core/plane";
import { change, questionOf } from "../../core/state";
import { TextSlider } from "../../core/text-slider";
import type { ElboAnswer } from "../../schema";
import type { ElboState } from "./state";
import { Terms } from "./terms";

const SLIDERS: { name: keyof ElboState & string; label: string; min: number; max: number }[] = [
  { name: "weight", label: "weight w", min: -3, max: 3 },
  { name: "noise", label: "noise variance", min: 0.05, max: 4 },
  { name: "bias", label: "bias b", min: -3, max: 3 },
  { name: "x", label: "observed x", min: -4, max: 4 },
  { name: "mean", label: "mean of q", min: -3, max: 3 },
  { name: "variance", label: "variance of q", min: 0.05, max: 3 },
];
const LEAST = 0.01; // of a variance that is dragged

export function LinePanels({ state, children }: { state: ElboState; children: ComponentChildren }) {
  const question = questionOf("elbo", state);
  const reading = useAnswer("elbo", question);
  const answer = reading.answer;
  const about = {
    terms: "The model x = w z + b + noise with z ~ N(0, 1) explains one number x. The ELBO is the reconstruction minus the KL of q to the prior; what it leaves below log p(x), the green line, is the KL of q to the posterior. All are exact.",
    curves: "What is known of z before x is seen (the prior), after (the posterior), and what q says. The bound is tight where q is the posterior.",
    plane: "Every Gaussian q is a point: its mean across, its variance upwards. Lines join the q of equal gap. Drag q onto the posterior, and the bound is tight.",
  };
  return (
    <>
      <div class="sliders">
        {SLIDERS.map((one) => (
          <TextSlider name={one.label} label={one.label} text={String(state[one.name])} min={one.min} max={one.max} step={0.05} onChange={(text) => change({ [one.name]: text })} />
        ))}
      </div>
      <div class="elbo-presets" role="group" aria-label="Set q">
        <button disabled={!answer} onClick={() => answer && change({ mean: answer.posterior[0], variance: answer.posterior[1] })}>q = posterior</button>
        <button onClick={() => change({ mean: "0", variance: "1" })}>q = prior</button>
        {answer && <span>posterior N({answer.posterior[0]}, {answer.posterior[1]})</span>}
      </div>
      <div class="columns">
        <div>
          <Panel title="The bound" about={about.terms} panel="elbo" question={question} reading={reading} picture>
            {answer && <Terms bound={answer.bound} />}
          </Panel>
          <Panel title="q and the posterior" about={about.curves} panel="elbo" question={question} reading={reading}>
            {answer && <Densities answer={answer} />}
          </Panel>
        </div>
        <div>
          <Panel title="All q" about={about.plane} panel="elbo" question={question} reading={reading}>
            {answer && <Guesses answer={answer} />}
          </Panel>
          {children}
        </div>
      </div>
    </>
  );
}

function Densities({ answer }: { answer: ElboAnswer }) {
  const [first] = answer.densities;
  return (
    <Chart
      about="The densities of the prior, the posterior and q over z"
      x={first!.points.map(([z]) => z)}
      curves={answer.densities.map((line) => ({ name: line.name, y: line.points.map(([, density]) => density) }))}
      xName="z"
      yName="density"
      height={260}
    />
  );
}

function Guesses({ answer }: { answer: ElboAnswer }) {
  const move = ([mean, variance]: Coordinates) => change({ mean: String(mean), variance: String(Math.max(LEAST, variance)) });
  const gap = answer.bound.terms.find((term) => term.name === "gap")!;
  const [mean, variance] = answer.place;
  const { best } = answer;
  return (
    <Plane
      label={`All Gaussian q by mean and variance. q is at ${mean}, ${variance}, with gap ${gap.text}; the posterior at ${best[0]}, ${best[1]}, where the gap is 0.`}
      box={box(answer)}
      equal={false}
      height={360}
      paths={answer.gaps.map((line) => ({ points: line.points, closed: true, tone: "soft" as const, width: 0.9, fill: 0.05 }))}
      points={[
        { id: "posterior", at: best, name: "posterior", label: "posterior", tone: "good", hollow: true },
        { id: "prior", at: [0, 1], name: "prior", label: "prior", tone: "mark", shape: "square", size: 5 },
        { id: "q", at: answer.place, name: "q: mean and variance", label: `q, gap ${gap.text}`, tone: "text", shape: "diamond", onMove: move },
      ]}
      across="mean"
      up="variance"
      onPlace={move}
    />
  );
}

/** The prior, the posterior and q with room around them; variances begin at 0. */
function box({ best, place }: ElboAnswer) {
  const means = [best[0], place[0], 0];
  const room = 0.8 + Math.sqrt(best[1]);
  const top = Math.max(1.2, 1.3 * place[1], 2.5 * best[1]);
  return { left: Math.min(...means) - room, right: Math.max(...means) + room, bottom: 0, top };
}
