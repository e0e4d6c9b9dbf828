// What is set: the step, the number of steps, and where both begin.
import { Slider } from "../../core/slider";
import { change } from "../../core/state";
import { TextSlider, valueOf } from "../../core/text-slider";
import type { OrbitAnswer } from "../../schema";
import type { GameState } from "./state";

const LARGEST_STEP = 3;

export function Controls({ state, answer }: { state: GameState; answer: OrbitAnswer | null }) {
  const start = answer?.start ?? state.start;
  const typed = valueOf(state.step);
  const shown = Number.isFinite(typed) ? typed : (answer?.step_value ?? 1); // a root is known to the server alone
  return (
    <div class="game-controls">
      <TextSlider name="step h" label={<>step <var>h</var></>} text={state.step} value={shown} min={0.05} max={LARGEST_STEP} step={0.05} onChange={(step) => change({ step })} />
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

/** A letter, or with `plain` some words, and a box for what it is. */
export function Typed({ name, text, onChange, hint, plain }: { name: string; text: string; onChange: (text: string) => void; hint?: string; plain?: boolean }) {
  return (
    <label class="game-typed">
      {plain ? name : <var>{name}</var>}
      <input type="text" value={text} placeholder={hint} spellcheck={false} autocomplete="off" onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  );
}
