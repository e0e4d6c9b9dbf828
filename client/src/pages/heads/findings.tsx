// What a record says: sentences, curves by layer, and how well the networks do.
import { useState } from "preact/hooks";
import type { Reading } from "../../core/ask";
import { Chart } from "../../core/chart";
import { Panel } from "../../core/panel";
import { Report } from "../../core/report";
import type { FindingsAnswer, HeadsAnswer } from "../../schema";

export function Results({ answer }: { answer: HeadsAnswer }) {
  const runs = answer.runs.filter((run) => run.epochs.length > 0);
  if (runs.length === 0) return <p>No results were recorded.</p>;
  const x = runs.reduce((longest, run) => (run.epochs.length > longest.length ? run.epochs : longest), [] as number[]);
  const over = (values: (index: number) => number | null) => x.map((_, index) => values(index));
  return (
    <>
      <Chart about="Share of test images that are right after every epoch, of each run" x={x} curves={runs.map((run) => ({ name: run.name, y: over((index) => percent(run.accuracy[index])) }))} xName="epoch" yName="percent right" height={200} />
      <Chart about="Mean loss of every epoch, of each run" x={x} curves={runs.map((run) => ({ name: run.name, y: over((index) => run.loss[index] ?? null) }))} xName="epoch" yName="loss" yLog={10} height={200} />
    </>
  );
}

function percent(share: number | undefined): number | null {
  return share === undefined ? null : Math.round(share * 1e4) / 100;
}

interface FindingsProps {
  question: { record: string };
  reading: Reading<FindingsAnswer>;
}

export function Findings({ question, reading }: FindingsProps) {
  const [shown, setShown] = useState(0);
  const answer = reading.answer;
  const spread = answer?.spreads[Math.min(shown, answer.spreads.length - 1)];
  return (
    <Panel
      title="What the heads did"
      about="Whether low layers stay near the query while high layers move away, and whether heads come near the grid of a convolution, compared with heads as far away in random directions."
      panel="heads_findings"
      question={question}
      reading={reading}
      picture
    >
      {!answer && <p>Comparing with random draws …</p>}
      {answer?.findings.map((sentence) => <p>{sentence}</p>)}
      {answer && spread && (
        <>
          <label>
            over the epochs{" "}
            <select value={String(shown)} onChange={(event) => setShown(Number(event.currentTarget.value))}>
              {answer.spreads.map((one, index) => <option value={String(index)}>{one.title}</option>)}
            </select>
          </label>
          <Chart
            about={`${spread.title}, over the epochs`}
            x={spread.lines[0]!.points.map(([epoch]) => epoch)}
            curves={spread.lines.map((line) => ({ name: line.name, y: line.points.map(([, value]) => value) }))}
            xName="epoch"
            yName={spread.unit}
            height={240}
          />
        </>
      )}
    </Panel>
  );
}

export function Numbers({ question, reading }: FindingsProps) {
  return (
    <Panel title="In numbers" about="From the first moment to the last, by layer; what each column is stands below." panel="heads_findings" question={question} reading={reading} wide>
      {reading.answer && <Report report={reading.answer.report} />}
    </Panel>
  );
}
