// What a person sets on the page.
import { BEGIN } from "../../schema";

export const START = {
  ...BEGIN.conv,
  ...BEGIN.conv_error,
  ...BEGIN.conv_price,
  padding: "",
  size: "10",
  alpha: 10,
  head: -1, // the one that is shown large; -1 for all
};

export type ConvState = typeof START;
