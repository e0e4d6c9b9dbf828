// What the price page holds: a layer, several layers as curves, or a model.
import type { LayersAnswer } from "../../schema";

export type Numbers = { [name: string]: number | string };
export type PriceState = {
  view: string; // layer, compare, model or tables
  layer: string;
  rule: string; // the attention mask of a layer whose text has none
  numbers: Numbers;
  backward: boolean;
  per: string;
  claim: string; // a quantity, a colon and a formula
  rename: { [letter: string]: string };
  run: boolean; // whether plain code counts too
  layers: string[];
  over: string;
  quantity: string;
  column: string;
  equal: boolean;
  span: (number | string)[];
  hidden: string[]; // curves that are not drawn
  config: { [field: string]: never };
  length: number | string; // text where it is no number
  batch: number | string;
  training: boolean;
};

export interface ViewProps {
  state: PriceState;
  menus: LayersAnswer | null;
}

const LLAMA = {
  model_type: "llama",
  vocab_size: 128256,
  hidden_size: 4096,
  intermediate_size: 14336,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  attention_bias: false,
  tie_word_embeddings: false,
};

export const START: PriceState = {
  view: "compare",
  layer: "attention(strided)",
  rule: "",
  numbers: { d: 512, t: 255 },
  backward: false,
  per: "",
  claim: "",
  rename: {},
  run: false,
  layers: ["rnn", "attention(causal, projections=none)", "attention(strided, projections=none)"],
  over: "n",
  quantity: "multiplies",
  column: "needed",
  equal: false,
  span: [],
  hidden: [],
  config: LLAMA as unknown as PriceState["config"],
  length: 8192,
  batch: 1,
  training: false,
};

/** Of fields whose start does not tell: what a link may hold. */
export const LIKE = { rename: { n: "" }, span: [0, ""], hidden: [""], numbers: {}, config: {} };
