// What a person sets on the page.

export type ApiState = { panel: string; body: string };

export const START: ApiState = { panel: "count", body: '{"rule": "k <= q and q - k <= t"}' };
