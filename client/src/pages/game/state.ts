// What a person sets on the game page, and what its parts are given.
import type { Reading } from "../../core/ask";
import type { Tone } from "../../core/plane";
import type { OrbitAnswer } from "../../schema";

export type GameState = {
  game: string;
  minimise: string;
  loss: string;
  method: string;
  also: string[];
  first: string;
  mass: string;
  weight: string;
  step: string;
  start: string[];
  steps: number;
  at: string;
  view: [number, number, number]; // the middle of the plane, and half of its side
};

export const START: GameState = {
  game: "p*q",
  minimise: "",
  loss: "logistic",
  method: "alternating",
  also: [],
  first: "",
  mass: "",
  weight: "",
  step: "1",
  start: ["1", "1"],
  steps: 12,
  at: "",
  view: [0, 0, 3],
};

/** Of fields whose start does not tell: what a link may hold. */
export const LIKE = { also: [""] };

export interface GameProps {
  state: GameState;
  orbit: Reading<OrbitAnswer>;
}


export const TONES: readonly Tone[] = ["mark", "other", "good", "both", "warn", "bad", "text"]; // as charts colour their curves
