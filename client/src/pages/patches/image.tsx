// The image with its patches: lines where they begin and end, the chosen one outlined, what is left out hatched.
import type { PatchesAnswer } from "../../schema";

type Axis = PatchesAnswer["rows"];

const MOST_LINES = 300; // along a side; finer ones could not be told apart
const MOST_HOLES = 4096;

interface Props {
  found: PatchesAnswer;
  token: number;
  onToken: (token: number) => void;
}

/** The whole extent along an axis: the image, and zeros that are added. */
export const extent = (axis: Axis) => axis.size + axis.added;

/** Where the patch of a token begins. */
export function startOf(found: PatchesAnswer, token: number): [row: number, col: number] {
  const across = found.cols.tokens;
  return [Math.floor(token / across) * found.rows.stride, (token % across) * found.cols.stride];
}

/** In words: token 17, row 1, column 3, and its pixels. */
export function wordsOf(found: PatchesAnswer, token: number): string {
  const [y, x] = startOf(found, token);
  const across = found.cols.tokens;
  return `token ${token}: position (${Math.floor(token / across)}, ${token % across}), pixel rows ${y} to ${y + found.rows.patch - 1}, columns ${x} to ${x + found.cols.patch - 1}`;
}

export function PatchImage({ found, token, onToken }: Props) {
  const { rows, cols } = found;
  const [height, width] = [extent(rows), extent(cols)];
  const [y, x] = startOf(found, token);
  const choose = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const along = (place: number, length: number, whole: number, axis: Axis) => Math.min(axis.tokens - 1, Math.max(0, Math.floor(((place / length) * whole) / axis.stride)));
    onToken(along(event.clientY - box.top, box.height, height, rows) * cols.tokens + along(event.clientX - box.left, box.width, width, cols));
  };
  const step = (event: KeyboardEvent) => {
    const by = { ArrowUp: -cols.tokens, ArrowDown: cols.tokens, ArrowLeft: -1, ArrowRight: 1, Home: -token, End: found.tokens - 1 - token }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    if (token + by >= 0 && token + by < found.tokens) onToken(token + by);
  };
  const next = (rows.overlap > 0 || cols.overlap > 0) && token + 1 < found.tokens ? startOf(found, token + 1) : null;
  return (
    <div class="patches-image" data-picture>
      <Scene />
      <svg
        viewBox={`0 0 ${width} ${height}`}
        role="slider"
        tabindex={0}
        aria-label="Image in patches: the chosen token"
        aria-valuemin={0}
        aria-valuemax={found.tokens - 1}
        aria-valuenow={token}
        aria-valuetext={wordsOf(found, token)}
        onKeyDown={step}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          choose(event);
        }}
        onPointerMove={(event) => event.buttons & 1 && choose(event)}
      >
        <pattern id="patches-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform={`scale(${Math.max(height, width) / 240}) rotate(45)`}>
          <rect width="6" height="6" fill="#f4f4f4" fill-opacity="0.72" />
          <line x1="0" x2="0" y1="0" y2="6" stroke="#333333" stroke-width="1.6" />
        </pattern>
        <Picture found={found} />
        <path fill="url(#patches-hatch)" fill-rule="evenodd" d={left(found)} />
        <path class="patches-lines" d={lines(found)} vector-effect="non-scaling-stroke" />
        {next && <rect class="patches-next" x={next[1]} y={next[0]} width={cols.patch} height={rows.patch} vector-effect="non-scaling-stroke" />}
        <rect class="patches-token" x={x} y={y} width={cols.patch} height={rows.patch} vector-effect="non-scaling-stroke" />
      </svg>
      <p class="patches-told">{wordsOf(found, token)}{next && "; dashed: the next one"}</p>
    </div>
  );
}

/** The picture in the image's own pixels; what lies beyond it are zeros. */
export function Picture({ found }: { found: PatchesAnswer }) {
  return (
    <>
      <rect class="patches-zeros" width={extent(found.cols)} height={extent(found.rows)} />
      <svg width={found.cols.size} height={found.rows.size} viewBox="0 0 100 100" preserveAspectRatio="none">
        <use href="#patches-scene" />
      </svg>
    </>
  );
}

/** What no patch covers, and the zeros that are added: the whole without the patches, or the rest beyond the image. */
function left({ rows, cols, tokens }: PatchesAnswer): string {
  const box = (y: number, x: number, height: number, width: number) => `M${x} ${y}h${width}v${height}h${-width}Z`;
  const whole = box(0, 0, extent(rows), extent(cols));
  const inside = (axis: Axis) => Math.min(axis.size, (axis.tokens - 1) * axis.stride + axis.patch);
  if ((rows.skipped === 0 && cols.skipped === 0) || tokens > MOST_HOLES) return whole + box(0, 0, inside(rows), inside(cols));
  const starts = (axis: Axis) => Array.from({ length: axis.tokens }, (_, place) => place * axis.stride);
  return whole + starts(rows).flatMap((y) => starts(cols).map((x) => box(y, x, Math.min(rows.patch, rows.size - y), Math.min(cols.patch, cols.size - x)))).join("");
}

/** Where patches begin and end. */
function lines({ rows, cols }: PatchesAnswer): string {
  const places = (axis: Axis) => {
    if (axis.tokens > MOST_LINES) return [];
    return [...new Set(Array.from({ length: axis.tokens }, (_, place) => [place * axis.stride, place * axis.stride + axis.patch]).flat())];
  };
  return [...places(rows).map((y) => `M0 ${y}h${extent(cols)}`), ...places(cols).map((x) => `M${x} 0v${extent(rows)}`)].join("") || "M0 0";
}

/** A landscape, drawn once and shown wherever pixels are. */
function Scene() {
  return (
    <svg class="patches-defs" aria-hidden="true" focusable="false">
      <defs>
        <linearGradient id="patches-sky" x1="0" x2="0" y1="0" y2="1">
          <stop offset="0" stop-color="#5b9bd5" />
          <stop offset="0.7" stop-color="#fbe3c0" />
        </linearGradient>
        <g id="patches-scene">
          <rect width="100" height="100" fill="url(#patches-sky)" />
          <circle cx="72" cy="26" r="11" fill="#f6b73c" />
          <path d="M0 62 L18 34 L30 50 L44 24 L66 58 L80 44 L100 66 V100 H0Z" fill="#7688a3" />
          <path d="M38.5 33 L44 24 L50 33 L46 31 L43 35Z M14 40 L18 34 L22.5 40 L18 38Z" fill="#ffffff" />
          <path d="M0 72 Q25 56 52 70 T100 66 V100 H0Z" fill="#4f8a4c" />
          <path d="M0 84 Q30 74 60 84 T100 80 V100 H0Z" fill="#356b3a" />
          <path d="M46 100 Q50 88 58 82 T62 73 L64 73 Q66 80 62 86 T60 100Z" fill="#9fd3ee" />
          <path d="M18 80 l-5 0 l5 -14 l5 14Z M30 84 l-4 0 l4 -12 l4 12Z" fill="#1f4726" />
          <rect x="77" y="66" width="11" height="8" fill="#c65d46" />
          <path d="M75.500 66 L82.500 60 L89.500 66Z" fill="#6e2f25" />
        </g>
      </defs>
    </svg>
  );
}
