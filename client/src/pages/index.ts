// The pages, in the order of the menu; the first is shown on a first visit. What they show is fetched when it is needed.
import { definePage, type Page } from "../core/page";
import * as api from "./api/state";
import * as conv from "./conv/state";
import * as derive from "./derive/state";
import * as elbo from "./elbo/state";
import * as game from "./game/state";
import * as grid from "./grid/state";
import * as heads from "./heads/state";
import * as patches from "./patches/state";
import * as price from "./price/state";
import * as rule from "./rule/state";
import * as scores from "./scores/state";
import * as steer from "./steer/state";
import * as work from "./work/state";

export const PAGES: readonly Page[] = [
  definePage("rule", "Rule", rule, () => import("./rule/page")),
  definePage("price", "Price", price, () => import("./price/page")),
  definePage("conv", "Convolution", conv, () => import("./conv/page")),
  definePage("grid", "2-D RNN", grid, () => import("./grid/page")),
  definePage("patches", "Patches", patches, () => import("./patches/page")),
  definePage("scores", "Encodings", scores, () => import("./scores/page")),
  definePage("work", "Worked attention", work, () => import("./work/page")),
  definePage("steer", "Steering", steer, () => import("./steer/page")),
  definePage("elbo", "ELBO", elbo, () => import("./elbo/page")),
  definePage("game", "Games", game, () => import("./game/page")),
  definePage("heads", "Heads in training", heads, () => import("./heads/page")),
  definePage("derive", "Derivations", derive, () => import("./derive/page")),
  definePage("api", "API", api, () => import("./api/page")),
];
