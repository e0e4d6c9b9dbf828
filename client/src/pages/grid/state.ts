// What a person sets on the page.

export type GridState = {
  size: string;
  directions: number;
  cell: string;
  pixel: string;
  kernel: number;
  layers: number;
  c: number | string;
  h: number | string;
  step: number; // of the wavefront that is shown; -1 before the first
  speed: number; // steps a second
};

export const START: GridState = { size: "8x12", directions: 1, cell: "rnn", pixel: "", kernel: 3, layers: 3, c: 3, h: 64, step: 6, speed: 4 };
