// What changes from step to step: f, the distance from the equilibrium, and the numbers themselves.
import { Chart } from "../../core/chart";
import { Formula } from "../../core/formula";
import { Panel } from "../../core/panel";
import { Report } from "../../core/report";
import { questionOf } from "../../core/state";
import type { OrbitAnswer } from "../../schema";
import type { GameProps } from "./state";

export function Curves({ state, orbit }: GameProps) {
  const question = questionOf("game", state);
  const answer = orbit.answer;
  return (
    <Panel
      title="Over the steps"
      about="The value of f after every step, and how far the players are from the equilibrium, on a logarithmic scale: a straight line downwards is convergence by one factor a step."
      panel="game"
      question={question}
      reading={orbit}
    >
      {answer && answer.tracks.length > 0 && <Values answer={answer} />}
      {answer && answer.distances.length > 0 && <Distances answer={answer} />}
      {answer && answer.tracks.length === 0 && <p>The places are formulas; begin at numbers to see curves.</p>}
    </Panel>
  );
}

function Values({ answer }: { answer: OrbitAnswer }) {
  const many = Math.max(...answer.tracks.map((track) => track.values.length));
  const upTo = (values: (number | null)[]) => Array.from({ length: many }, (_, step) => values[step] ?? null);
  return (
    <Chart
      about="f after every step"
      x={Array.from({ length: many }, (_, step) => step)}
      curves={answer.tracks.map((track) => ({ name: track.label, y: upTo(track.values) }))}
      xName="step"
      yName="f"
      height={200}
    />
  );
}

function Distances({ answer }: { answer: OrbitAnswer }) {
  const lines = answer.distances;
  return (
    <Chart
      about="The distance from the equilibrium after every step"
      x={lines[0]!.points.map(([step]) => step)}
      curves={lines.map((line) => ({ name: line.name === "orbit" ? "distance" : line.name, y: line.points.map(([, far]) => far) }))}
      xName="step"
      yName="distance"
      yLog={10}
      height={200}
    />
  );
}

export function Places({ state, orbit }: GameProps) {
  const question = questionOf("game", state);
  return (
    <Panel
      title="Step by step"
      about="The players' numbers, exact as long as they are short: fractions and roots, never rounded. A period is proved when a state returns exactly. Letters as a start, p0 and q0, give formulas for every start at once."
      panel="game"
      question={question}
      reading={orbit}
    >
      {orbit.answer?.copies.latex && (
        <div class="scroll" tabIndex={0} role="group" aria-label="One step as formulas">
          <Formula latex={orbit.answer.copies.latex} block />
        </div>
      )}
      {orbit.answer && <Report report={orbit.answer.report} />}
    </Panel>
  );
}
