// What a person sets on the page.

export type PatchesState = {
  image: string;
  patch: string;
  stride: string; // "" is the patch
  padding: string;
  channels: number | string;
  width: number | string;
  heads: number | string;
  token: number; // the one that is shown
};

export const START: PatchesState = { image: "224", patch: "16", stride: "", padding: "crop", channels: 3, width: 768, heads: 12, token: 137 };
