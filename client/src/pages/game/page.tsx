// Game: one player makes f small, the other makes it large, and both follow their gradients.
import { useAnswer } from "../../core/ask";
import { change, questionOf } from "../../core/state";
import { TextField } from "../../core/text-field";
import { Controls, Typed } from "./controls";
import { Curves, Places } from "./curves";
import { Outcomes } from "./outcomes";
import { Portrait } from "./portrait";
import type { GameState } from "./state";
import { StepsPanel } from "./steps";
import "./style.css";

const SUGGESTED = ["p*q", "p*q - p^2/4", "p^2/2 + p*q - q^2/2", "p*q + p^4/4 - q^4/4", "dirac"];

export default function GamePage({ state }: { state: GameState }) {
  const orbit = useAnswer("game", questionOf("game", state));
  const props = { state, orbit };
  return (
    <>
      <TextField name="game" label="One player makes this small, the other large" value={state.game} problem={orbit.problem} onInput={(game) => change({ game, at: "" })}>
        <span class="game-suggested">
          {SUGGESTED.map((game) => (
            <button class="quiet" onClick={() => change({ game, at: "" })}>{game}</button>
          ))}
        </span>
      </TextField>
      <div class="game-players">
        <span>{orbit.answer?.title}</span>
        {state.game.trim() === "dirac" ? (
          <label>
            loss{" "}
            <select value={state.loss} onChange={(event) => change({ loss: event.currentTarget.value })}>
              <option>logistic</option>
              <option>linear</option>
            </select>
          </label>
        ) : (
          <Typed name="variables of the minimiser" plain text={state.minimise} hint="p" onChange={(minimise) => change({ minimise })} />
        )}
      </div>
      <Controls state={state} answer={orbit.answer} />
      <div class="columns">
        <div>
          <Portrait {...props} />
          <StepsPanel state={state} />
        </div>
        <div>
          <Outcomes state={state} />
          <Curves {...props} />
          <Places {...props} />
        </div>
      </div>
    </>
  );
}
