// What a person sets on the page of heads in training. A record that was dropped on it stays out of the link.

export type HeadsState = {
  record: string; // "" for the record of the package
  run: string;
  moment: number; // −1 for the last
};

export const START: HeadsState = { record: "", run: "trained", moment: -1 };
