// Where the labels of a plane stand: beside what they name, where they cover no other label, no point and no edge.

export interface Rect {
  left: number;
  top: number;
  width: number;
  height: number;
}
export interface Spot {
  x: number; // from what is named, px
  y: number; // of the line on which the letters stand
  anchor: "start" | "middle" | "end";
}
interface Named {
  x: number; // px
  y: number;
  size: number; // px from the middle to the edge; 0 for a region
  label: string;
}

const LETTER = 7.6; // px, of 13 px letters in bold
const HIGH = 14;

export const overlap = (one: Rect, other: Rect): boolean =>
  one.left < other.left + other.width && other.left < one.left + one.width && one.top < other.top + other.height && other.top < one.top + one.height;

/** The places of a label, the first one best: beside a point, or about the middle of a region. */
function spots({ size }: Named): Spot[] {
  if (size === 0) return [4, -14, 22, -32, 40].map((y) => ({ x: 0, y, anchor: "middle" }));
  const beside = [-size - 1, size + 11].flatMap((y): Spot[] => [{ x: size + 5, y, anchor: "start" }, { x: -size - 5, y, anchor: "end" }]);
  return [...beside, { x: 0, y: -size - 9, anchor: "middle" }, { x: 0, y: size + 20, anchor: "middle" }];
}

function rectOf({ x, y, label }: Named, spot: Spot): Rect {
  const width = LETTER * [...label].length;
  const left = x + spot.x - (spot.anchor === "start" ? 0 : spot.anchor === "end" ? width : width / 2);
  return { left, top: y + spot.y - HIGH + 3, width, height: HIGH };
}

export const around = ({ x, y, size }: Named): Rect => ({ left: x - size, top: y - size, width: 2 * size, height: 2 * size });

/** For each that has a label its spot, in their order, and the room that all labels take. */
export function placeLabels(named: Named[], width: number, height: number): { spots: (Spot | null)[]; taken: Rect[] } {
  const points = named.filter((one) => one.size > 0).map(around);
  const taken: Rect[] = [];
  const outside = (rect: Rect) => rect.left < 1 || rect.top < 1 || rect.left + rect.width > width - 1 || rect.top + rect.height > height - 1;
  const found = named.map((one) => {
    if (!one.label) return null;
    const cost = (spot: Spot, order: number) => {
      const rect = rectOf(one, spot);
      return order + 30 * Number(outside(rect)) + 20 * taken.filter((other) => overlap(rect, other)).length + 8 * points.filter((other) => overlap(rect, other)).length;
    };
    const [best] = spots(one).map((spot, order) => ({ spot, cost: cost(spot, order) })).sort((a, b) => a.cost - b.cost);
    taken.push(rectOf(one, best!.spot));
    return best!.spot;
  });
  return { spots: found, taken };
}
