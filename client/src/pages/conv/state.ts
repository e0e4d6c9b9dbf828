// What a person sets on the page.

export type ConvState = {
  kernel: string;
  stride: string;
  dilation: string;
  padding: string;
  padding_mode: string;
  size: string;
  alpha: number;
  pixel: string;
  head: number; // the one that is shown large; -1 for all
  filter: string;
  channels: number | string;
  out_channels: number | string;
};

export const START: ConvState = {
  kernel: "3",
  stride: "1",
  dilation: "1",
  padding: "",
  padding_mode: "zeros",
  size: "10",
  alpha: 10,
  pixel: "",
  head: -1,
  filter: "edges",
  channels: 16,
  out_channels: 32,
};
