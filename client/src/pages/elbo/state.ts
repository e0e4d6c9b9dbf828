// What a person sets on the ELBO page.

export type ElboState = {
  weight: string;
  bias: string;
  noise: string;
  x: string;
  mean: string;
  variance: string;
  prior: string;
  likelihood: string;
  guess: string;
  size: number;
  latent: number;
  noise_variance: number;
  examples: number;
  seed: number;
};

export const START: ElboState = {
  weight: "1",
  bias: "0",
  noise: "1",
  x: "3/2",
  mean: "0",
  variance: "1",
  prior: "1/2, 1/4, 1/4",
  likelihood: "1/10, 3/5, 9/10",
  guess: "1/5, 2/5, 2/5",
  size: 6,
  latent: 2,
  noise_variance: 1,
  examples: 5,
  seed: 0,
};

