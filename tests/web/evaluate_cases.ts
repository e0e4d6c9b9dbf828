// Reads rules with numbers, a line of JSON each, and writes their masks as the page works them out: 0s and 1s, or "unable".
import { createInterface } from "node:readline";
import { sweep, Unable, type Arrays, type Tree, type Values } from "../../client/src/grid/evaluate.ts";

interface Case {
  tree: Tree;
  data: Arrays;
  values: Values;
  lengths: { [position: string]: number }; // the last is the one along a row
}

function maskOf({ tree, data, values, lengths }: Case): string {
  const names = Object.keys(lengths), last = names.pop()!;
  const along = { [last]: Float64Array.from({ length: lengths[last]! }, (_, i) => i) };
  const across = Object.fromEntries(names.map((name): [string, [number, number]] => [name, [0, lengths[name]! - 1]]));
  const row = sweep(tree, data, values, along, across);
  let found = "";
  const visit = (places: number[]): void => {
    if (places.length < names.length) {
      for (let at = 0; at < lengths[names[places.length]!]!; at++) visit([...places, at]);
    } else {
      const truths = row(...places);
      found += truths.length === 1 ? String(truths[0]).repeat(lengths[last]!) : truths.join("");
    }
  };
  visit([]);
  return found;
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(maskOf(JSON.parse(line) as Case));
  } catch (error) {
    if (!(error instanceof Unable)) throw error;
    console.log("unable");
  }
}
