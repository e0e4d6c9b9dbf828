// What the price page holds: a layer, several layers as curves, or a model.
import { BEGIN, type LayersAnswer } from "../../schema";

export type Numbers = { [name: string]: number | string };
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

export const START = {
  ...BEGIN.cost_claim,
  ...BEGIN.compare,
  ...BEGIN.model,
  view: "compare", // or layer, model or tables
  layer: "attention(strided)",
  numbers: { d: 512, t: 255 } as Numbers,
  claim: "", // a quantity, a colon and a formula
  run: false, // whether plain code counts too
  layers: ["rnn", "attention(causal, projections=none)", "attention(strided, projections=none)"],
  hidden: [] as string[], // curves that are not drawn
  config: LLAMA as unknown as { [field: string]: never },
  length: 8192 as number | string,
};

export type PriceState = typeof START;

/** Of fields whose start does not tell: what a link may hold. */
export const LIKE = { rename: { n: "" }, span: [0, ""], hidden: [""], numbers: {}, config: {} };
