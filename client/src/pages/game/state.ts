// What a person sets on the game page, and what its parts are given.
import type { Reading } from "../../core/ask";
import type { Tone } from "../../core/plane";
import { BEGIN, type OrbitAnswer } from "../../schema";

export const START = { game: "p*q", ...BEGIN.game, ...BEGIN.game_outcome, start: ["1", "1"] };

export type GameState = typeof START;

/** Of fields whose start does not tell: what a link may hold. */
export const LIKE = { also: [""] };

export interface GameProps {
  state: GameState;
  orbit: Reading<OrbitAnswer>;
}


export const TONES: readonly Tone[] = ["mark", "other", "good", "both", "warn", "bad", "text"]; // as charts colour their curves
