// What a person sets on the page of derivations.

export type DeriveState = {
  derivation: string;
  f: string;
  method: string;
  step: string;
  changes: { [line: string]: string }; // right sides that were typed, by the number of their line
};

export const START: DeriveState = { derivation: "causal", f: "p*q", method: "alternating", step: "1", changes: {} };

/** Of fields whose start does not tell: what a link may hold. */
export const LIKE = { changes: { 1: "" } };
