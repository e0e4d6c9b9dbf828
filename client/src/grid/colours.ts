// The colours of grids, from the style sheet, as pixels; what differs in colour differs in its hatch as well.
import { CLASSES, HERE, LEVELS, OWN } from "./cells";

type Hatch = "" | "/" | "\\" | "x" | "+";

/** The look of a cell, as pixels. */
export interface Look {
  fill: number;
  ink: number;
  hatch: Hatch;
}

export interface Colours {
  one: Look[]; // by fullness
  two: Look[]; // by class
  line: string;
  frame: string;
  text: string;
  soft: string;
  accent: string;
  mark: string;
  ground: string;
}

const SLIVER = 0.3; // of the full colour, in a tile with a single attended pair

/** The colours as they are now around this element, light or dark. */
export function readColours(place: Element | null): Colours {
  const style = getComputedStyle(place ?? document.documentElement);
  const named = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const rgb = (name: string) => [1, 3, 5].map((at) => parseInt(named(name).slice(at, at + 2), 16));
  const look = (fill: number[], hatch: Hatch = "", ink = fill): Look => ({ fill: pixel(fill), ink: pixel(ink), hatch });
  const empty = rgb("grid-empty"), full = rgb("mark");
  const one = Array.from({ length: LEVELS + 1 }, (_, level) => {
    const share = level === 0 ? 0 : SLIVER + (1 - SLIVER) * ((level - 1) / (LEVELS - 1));
    return look(empty.map((from, i) => from + (full[i]! - from) * share));
  });
  one[OWN] = look(rgb("grid-own"));
  one[HERE] = look(empty, "x", rgb("grid-own"));
  const two: Look[] = [look(empty)];
  two[CLASSES.a] = look(rgb("grid-a"), "/", rgb("grid-a-ink"));
  two[CLASSES.b] = look(rgb("grid-b"), "\\", rgb("grid-b-ink"));
  two[CLASSES.both] = look(rgb("grid-both"), "x", rgb("grid-both-ink"));
  two[CLASSES.several] = look(rgb("grid-several"), "+", rgb("grid-several-ink"));
  return {
    one,
    two,
    line: named("grid-line"),
    frame: named("soft"),
    text: named("text"),
    soft: named("soft"),
    accent: named("accent"),
    mark: named("bad"),
    ground: named("card"),
  };
}

/** A colour as ImageData holds it, on the little-endian machines that there are. */
function pixel(rgb: number[]): number {
  const [red = 0, green = 0, blue = 0] = rgb.map(Math.round);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Whether the pixel (x, y) is on a line of the hatch. */
export function inked(hatch: Hatch, x: number, y: number, period: number, thick: number): boolean {
  const rising = (x + y) % period < thick, falling = (((x - y) % period) + period) % period < thick;
  if (hatch === "+") return x % period < thick || y % period < thick;
  return (hatch !== "\\" && rising) || (hatch !== "/" && falling);
}
