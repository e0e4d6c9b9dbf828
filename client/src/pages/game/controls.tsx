// What is set: the step, the number of steps, and where both begin.
import { useId } from "preact/hooks";
import { Slider } from "../../core/slider";
import { change } from "../../core/state";
import type { OrbitAnswer } from "../../schema";
import type { GameState } from "./state";

const LARGEST_STEP = 3;

export function Controls({ state, answer }: { state: GameState; answer: OrbitAnswer | null }) {
  const start = answer?.start ?? state.start;
  return (
    <div class="game-controls">
      <StepSlider step={state.step} value={answer?.step_value ?? Number(state.step)} />
      <Slider name="steps" label="steps" value={state.steps} example={12} max={200} onChange={(steps) => change({ steps: Math.max(0, Math.round(Number(steps) || 0)) })} />
      <fieldset class="game-start">
        <legend>both begin at</legend>
        {start.map((text, index) => (
          <Typed
            name={answer?.names[index] ?? "pq"[index] ?? "?"}
            text={state.start[index] ?? text}
            onChange={(typed) => change({ start: start.map((one, place) => (place === index ? typed : (state.start[place] ?? one))) })}
          />
        ))}
      </fieldset>
    </div>
  );
}

/** The step as a number on a slider, or as it is typed: 1/2, sqrt(3). */
function StepSlider({ step, value }: { step: string; value: number }) {
  const id = useId();
  return (
    <div class="slider">
      <label for={id}>step <var>h</var></label>
      <input
        type="range"
        id={id}
        min={0.05}
        max={LARGEST_STEP}
        step={0.05}
        value={Number.isFinite(value) ? Math.min(LARGEST_STEP, value) : 1}
        aria-valuetext={step}
        onInput={(event) => change({ step: event.currentTarget.value })}
      />
      <input type="text" aria-label="step h, number" value={step} spellcheck={false} onInput={(event) => change({ step: event.currentTarget.value })} />
    </div>
  );
}

export function Typed({ name, text, onChange, hint }: { name: string; text: string; onChange: (text: string) => void; hint?: string }) {
  return (
    <label class="game-typed">
      <var>{name}</var>
      <input type="text" value={text} placeholder={hint} spellcheck={false} autocomplete="off" onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}
