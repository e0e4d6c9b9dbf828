// What a person sets on the page of heads in training. A record that was dropped on it stays out of the link.
import { BEGIN } from "../../schema";

export const START = { ...BEGIN.heads_moment };

export type HeadsState = typeof START;
