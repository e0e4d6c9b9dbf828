// Heads in training: where every head of every layer attends, from the first step to the last.
import { useEffect, useState } from "preact/hooks";
import { useAnswer } from "../../core/ask";
import { Panel } from "../../core/panel";
import { PartView } from "../../core/report";
import { change, questionOf } from "../../core/state";
import type { HeadsAnswer, RunView } from "../../schema";
import { Findings, Numbers, Results } from "./findings";
import { Layer } from "./layer";
import { RecordField, type RecordFile } from "./record_file";
import type { HeadsState } from "./state";
import "./style.css";

const FRAME = 300; // ms
const ABOUT =
  "Each circle is a head: half of what it attends to lies inside, seen from the query in the middle square; its line is the way its centre came. " +
  "Small crosses are the taps of a convolution with as many heads. In the control the centres are held fixed.";

export default function HeadsPage({ state }: { state: HeadsState }) {
  const [file, setFile] = useState<RecordFile | null>(null);
  const asked = { ...state, record: file?.text ?? state.record };
  const question = questionOf("heads", asked);
  const reading = useAnswer("heads", question);
  const findings = useAnswer("heads_findings", reading.problem ? null : question);
  const answer = reading.answer;
  const run = answer?.runs.find((one) => one.name === state.run) ?? answer?.runs[0];
  const open = (given: RecordFile | null) => {
    setFile(given);
    change({ moment: -1, run: "trained" });
  };
  return (
    <>
      <RecordField file={file} onFile={open} />
      <div class="panels">
        <Panel title="Heads in training" about={ABOUT} panel="heads" question={question} reading={reading} picture wide>
          {answer && run && <Movement answer={answer} run={run} state={state} />}
        </Panel>
      </div>
      <div class="columns heads-more">
        <div>
          {answer && run && <MomentPanel state={{ ...asked, run: run.name, moment: Math.min(state.moment, run.moments.length - 1) }} />}
          <Panel title="How well it does" about="The share of test images that are right after every epoch, and the mean loss of the steps." panel="heads" question={question} reading={reading}>
            {answer && <Results answer={answer} />}
          </Panel>
        </div>
        <div>
          <Findings question={question} reading={findings} />
        </div>
      </div>
      <div class="panels heads-more">
        <Numbers question={question} reading={findings} />
      </div>
    </>
  );
}

function Movement({ answer, run, state }: { answer: HeadsAnswer; run: RunView; state: HeadsState }) {
  const last = run.moments.length - 1;
  const at = state.moment < 0 ? last : Math.min(last, state.moment);
  const [playing, setPlaying] = useState(false);
  useEffect(() => {
    if (!playing) return;
    if (at >= last) return setPlaying(false);
    const timer = setTimeout(() => change({ moment: at + 1 }), FRAME);
    return () => clearTimeout(timer);
  }, [playing, at, last]);
  const play = () => {
    if (!playing && at >= last) change({ moment: 0 });
    setPlaying(!playing);
  };
  return (
    <>
      <p class="heads-title">{answer.title}</p>
      <div class="heads-time">
        <button onClick={play}>{playing ? "Pause" : "Play"}</button>
        <input
          type="range"
          min={0}
          max={last}
          step={1}
          value={at}
          aria-label="Moment of the training"
          aria-valuetext={`epoch ${run.moments[at]!.epoch_text}`}
          onInput={(event) => {
            setPlaying(false);
            change({ moment: Number(event.currentTarget.value) });
          }}
        />
        <output>epoch {run.moments[at]!.epoch_text}</output>
        {answer.runs.length > 1 && (
          <label>
            run{" "}
            <select value={run.name} onChange={(event) => change({ run: event.currentTarget.value })}>
              {answer.runs.map((one) => <option>{one.name}</option>)}
            </select>
          </label>
        )}
      </div>
      <div class="heads-layers">
        {run.moments[at]!.centres.map((_, layer) => (
          <Layer layer={layer} moments={run.moments} at={at} reach={answer.reach} kernel={answer.kernel} />
        ))}
      </div>
    </>
  );
}

function MomentPanel({ state }: { state: HeadsState }) {
  const question = questionOf("heads_moment", state);
  const reading = useAnswer("heads_moment", question);
  return (
    <Panel
      title="At this moment"
      about="The heads of every layer at the moment that the slider above shows, by their means."
      panel="heads_moment"
      question={question}
      reading={reading}
      picture
    >
      {reading.answer && (
        <div class="report">
          <p>{reading.answer.title}</p>
          <PartView part={reading.answer.table} />
          <p class="heads-columns">
            In positions. centres: their distance from the query; width: the median of the heads; attends at: the distance of keys, by their weights; grid: from the taps of a convolution; off pixel: from the nearest position.
          </p>
        </div>
      )}
    </Panel>
  );
}
