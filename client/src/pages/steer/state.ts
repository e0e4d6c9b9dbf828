// What a person sets on the steering page.
import { BEGIN } from "../../schema";

export const START = {
  ...BEGIN.steer,
  keys: [["2", "0"], ["1", "2"], ["-2", "1"], ["-1", "-2"], ["0.5", "0.5"]],
  values: [["1", "0"], ["1", "1"], ["0", "1"], ["0", "0"], ["0.5", "2"]],
  query: ["1", "0.6"],
  wanted: ["1", "1", "0", "0", "0"], // parts: weights are their shares of the sum
};

export type SteerState = typeof START;

/** Of fields whose start does not tell: what a link may hold. */
export const LIKE = { keys: [["", 0]], values: [["", 0]], query: ["", 0], wanted: ["", 0] };
