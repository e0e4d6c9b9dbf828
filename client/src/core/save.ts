// What is seen of a panel's pictures, as one SVG or PNG: shapes, canvases and texts where they stand on the screen.
// A picture is what is marked data-picture. Colours and fonts are written into it, so that it needs no style sheet.

const SVG = "http://www.w3.org/2000/svg";
const EDGE = 16; // px around the pictures, and between those below each other
const TITLE = 18; // px, its letters
const SHARP = 2; // pixels of a PNG for each of the page
const ASIDE = ".u-over, .chart-cursor, button:not(:has(svg, canvas))"; // a chart's cursor, and what is only pressed
const WRITTEN = [
  ...["fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin"],
  ...["stop-color", "stop-opacity", "opacity", "visibility", "display", "overflow", "paint-order", "vector-effect"],
  ...["font-family", "font-size", "font-style", "font-weight", "text-anchor", "dominant-baseline", "text-decoration-line"],
];
type Attributes = { [name: string]: string | number };

export async function picturesOf(panel: Element, title: string, form: "svg" | "png"): Promise<Blob> {
  const svg = drawn(panel, title);
  const text = new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" });
  return form === "svg" ? text : inPixels(text, Number(svg.getAttribute("width")), Number(svg.getAttribute("height")));
}

function drawn(panel: Element, title: string): SVGSVGElement {
  const style = getComputedStyle(panel);
  const text = { x: EDGE, y: EDGE + TITLE, fill: style.color, "font-family": style.fontFamily, "font-size": TITLE, "font-weight": 600 };
  const pictures = [...panel.querySelectorAll("[data-picture]")].filter((one) => !one.parentElement!.closest("[data-picture]") && one.getClientRects().length > 0);
  const left = Math.min(...pictures.map((one) => one.getBoundingClientRect().left)) - EDGE;
  let right = left + EDGE + title.length * TITLE * 0.6;
  let bottom = 2 * EDGE + TITLE;
  const parts: SVGElement[] = [];
  for (const row of inRows(pictures)) {
    const boxes = row.map((one) => one.getBoundingClientRect());
    const top = Math.min(...boxes.map((box) => box.top));
    for (const one of row) parts.push(...shapesOf(one, left, top - bottom));
    right = Math.max(right, ...boxes.map((box) => box.right));
    bottom += Math.max(...boxes.map((box) => box.bottom)) - top + EDGE;
  }
  const [width, height] = [Math.ceil(right - left + EDGE), Math.ceil(bottom)];
  const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}` }) as SVGSVGElement;
  const ground = make("rect", { width, height, fill: plain(getComputedStyle(document.documentElement).getPropertyValue("--card")) });
  svg.append(make("title", {}, title), ground, make("text", text, title), ...parts);
  fetchReferences(svg);
  return svg;
}

/** Pictures beside each other are a row; what stands between two rows on the page is left out. */
function inRows(pictures: Element[]): Element[][] {
  const placed = pictures.map((one) => ({ one, box: one.getBoundingClientRect() })).sort((a, b) => a.box.top - b.box.top);
  const rows: Element[][] = [];
  let end = -Infinity;
  for (const { one, box } of placed) {
    if (box.top < end) rows.at(-1)!.push(one);
    else rows.push([one]);
    end = Math.max(end, box.bottom);
  }
  return rows;
}

/** An element of the page and what is in it as SVG, moved by (-left, -top). */
function shapesOf(element: Element, left: number, top: number): SVGElement[] {
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  const place = { x: box.left - left, y: box.top - top, width: box.width, height: box.height };
  if (box.width < 2 || box.height < 2 || style.visibility === "hidden" || element.matches(ASIDE)) return [];
  if (element instanceof SVGSVGElement) {
    const copy = written(element);
    set(copy, place);
    return [copy];
  }
  if (element instanceof HTMLCanvasElement) {
    const pixels = { href: element.toDataURL(), preserveAspectRatio: "none", "image-rendering": style.imageRendering };
    return [...boxOf(style, place), make("image", { ...place, ...pixels })];
  }
  const inside = [...element.childNodes].flatMap((node) => {
    if (node instanceof Element) return shapesOf(node, left, top);
    return node instanceof Text ? linesOf(node, style, left, top) : [];
  });
  return [...boxOf(style, place), ...inside];
}

/** Ground and border of an element; of a hatched or shaded ground its colours, from left to right. */
function boxOf(style: CSSStyleDeclaration, place: Attributes): SVGElement[] {
  const stops = style.backgroundImage.match(/(rgba?|color)\([^)]*\)/g);
  const ramp = style.backgroundImage.startsWith("linear-gradient") && stops ? stops.map(plain) : null;
  const border = parseFloat(style.borderTopWidth);
  if (!ramp && isClear(style.backgroundColor) && !border) return [];
  const shape = { ...place, rx: parseFloat(style.borderTopLeftRadius) || 0, stroke: border ? plain(style.borderTopColor) : "none", "stroke-width": border };
  if (!ramp) return [make("rect", { ...shape, fill: isClear(style.backgroundColor) ? "none" : plain(style.backgroundColor) })];
  const id = `ramp-${place.x}-${place.y}`.replaceAll(".", "_");
  const gradient = make("linearGradient", { id });
  gradient.append(...ramp.map((colour, index) => make("stop", { offset: index / (ramp.length - 1), "stop-color": colour })));
  return [gradient, make("rect", { ...shape, fill: `url(#${id})` })];
}

/** A text of the page, a piece for each of its lines. */
function linesOf(node: Text, style: CSSStyleDeclaration, left: number, top: number): SVGElement[] {
  const lines: { text: string; box: DOMRect }[] = [];
  for (const word of node.data.matchAll(/\S+\s*/g)) {
    const range = document.createRange();
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].trimEnd().length);
    const box = range.getBoundingClientRect();
    const line = lines.at(-1);
    if (line && Math.abs(line.box.top - box.top) < 2) line.text += word[0];
    else if (box.width > 0) lines.push({ text: word[0], box });
  }
  const pen = document.createElement("canvas").getContext("2d")!;
  pen.font = style.font;
  const { fontBoundingBoxAscent: above, fontBoundingBoxDescent: below } = pen.measureText("x");
  const font = { "font-family": style.fontFamily, "font-size": style.fontSize, "font-style": style.fontStyle, "font-weight": style.fontWeight, "text-decoration": style.textDecorationLine };
  return lines.map(({ text, box }) => {
    const y = box.top - top + (box.height - above - below) / 2 + above;
    return make("text", { x: box.left - left, y, fill: plain(style.color), ...font }, text.trim().replace(/\s+/g, " "));
  });
}

/** A copy of an SVG element with its styles as attributes. */
function written(element: SVGElement): SVGElement {
  const copy = element.cloneNode(true) as SVGElement;
  const from = [element, ...element.querySelectorAll<SVGElement>("*")];
  [copy, ...copy.querySelectorAll<SVGElement>("*")].forEach((one, index) => {
    const style = getComputedStyle(from[index]!);
    for (const name of [...one.getAttributeNames()]) if (/^(class|style|tabindex|role|aria-.*|data-.*)$/.test(name)) one.removeAttribute(name);
    if (style.transform !== "none") set(one, { transform: style.transform });
    for (const name of WRITTEN) set(one, { [name]: plain(style.getPropertyValue(name)) });
  });
  return copy;
}

/** What the shapes refer to and is elsewhere on the page comes with them. */
function fetchReferences(svg: SVGSVGElement): void {
  const defs = make("defs", {});
  svg.prepend(defs);
  for (let missing = true; missing; ) {
    const ids = [...new XMLSerializer().serializeToString(svg).matchAll(/(?:url\((?:&quot;|["'])?|href=")#([^"')&]+)/g)].map((found) => found[1]!);
    const wanted = ids.find((id) => !svg.querySelector(`[id="${id}"]`) && document.getElementById(id));
    if (wanted) defs.append(written(document.getElementById(wanted) as unknown as SVGElement));
    missing = wanted !== undefined;
  }
}

async function inPixels(svg: Blob, width: number, height: number): Promise<Blob> {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  try {
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [SHARP * width, SHARP * height];
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => canvas.toBlob((made) => (made ? resolve(made) : reject(new Error("the picture is too large for a PNG")))));
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

const isClear = (colour: string) => colour === "transparent" || /, 0\)$/.test(colour);

/** A colour that every reader of SVG knows: browsers also write color(srgb 0.5 0.5 0.5). */
function plain(value: string): string {
  if (!value.startsWith("color(")) return value.trim();
  const pen = document.createElement("canvas").getContext("2d")!;
  pen.fillStyle = value;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue, full] = pen.getImageData(0, 0, 1, 1).data;
  return `rgba(${red}, ${green}, ${blue}, ${full! / 255})`;
}

function make(name: string, attributes: Attributes, text = ""): SVGElement {
  const made = document.createElementNS(SVG, name);
  set(made, attributes);
  if (text) made.textContent = text;
  return made;
}

function set(element: SVGElement, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
}
