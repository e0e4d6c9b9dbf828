// What a person sets on the page of derivations.
import { BEGIN } from "../../schema";

export const START = { ...BEGIN.derive };

export type DeriveState = typeof START;

/** Of fields whose start does not tell: what a link may hold. */
export const LIKE = { changes: { 1: "" } };
