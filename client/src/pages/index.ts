// The pages, in the order of the menu; the first is shown on a first visit.
import { apiPage } from "./api/page";
import { convPage } from "./conv/page";
import { derivePage } from "./derive/page";
import { elboPage } from "./elbo/page";
import { gamePage } from "./game/page";
import { gridPage } from "./grid/page";
import { headsPage } from "./heads/page";
import { patchesPage } from "./patches/page";
import { pricePage } from "./price/page";
import { rulePage } from "./rule/page";
import { scoresPage } from "./scores/page";
import { steerPage } from "./steer/page";
import { workPage } from "./work/page";

export const PAGES = [rulePage, pricePage, convPage, gridPage, patchesPage, scoresPage, workPage, steerPage, elboPage, gamePage, headsPage, derivePage, apiPage];
