// What a person sets on the ELBO page.
import { BEGIN } from "../../schema";

export const START = { ...BEGIN.elbo, ...BEGIN.elbo_discrete, ...BEGIN.elbo_linear };

export type ElboState = typeof START;

