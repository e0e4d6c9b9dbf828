// What a person sets on the page.
import { BEGIN } from "../../schema";

export const START = {
  ...BEGIN.patches_price,
  padding: "crop",
  token: 137, // the one that is shown
};

export type PatchesState = typeof START;
