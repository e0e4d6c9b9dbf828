// What a person sets on the page.

export type ScoresState = {
  encoding: string;
  size: string;
  pixel: string;
  dy: number; // the centre of a quadratic head, from the query
  dx: number;
  alpha: number;
  channels: number;
  seed: number;
};

export const START: ScoresState = { encoding: "quadratic", size: "9", pixel: "", dy: 1, dx: 2, alpha: 0.5, channels: 16, seed: 0 };
