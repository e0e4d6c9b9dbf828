// What a person sets on the page.
import { BEGIN } from "../../schema";

export const START = { ...BEGIN.scores, alpha: 0.5 };

export type ScoresState = typeof START;
