// What a person sets on the page.
import { BEGIN } from "../../schema";

export const START = {
  ...BEGIN.grid,
  ...BEGIN.grid_price,
  size: "8x12",
  step: 6, // of the wavefront that is shown; -1 before the first
  speed: 4, // steps a second
};

export type GridState = typeof START;
