// The heads of one layer around the query: circles that hold half of each head, and the ways of their centres.
import type { Moment } from "../../schema";

const TONES = ["mark", "other", "good", "both", "warn", "bad", "accent", "soft", "text"];
const WIDEST = 4; // frames; a head that is nearly flat has no end

interface Props {
  layer: number;
  moments: Moment[];
  at: number;
  reach: number;
  kernel: number;
}

export function Layer({ layer, moments, at, reach, kernel }: Props) {
  const moment = moments[at]!;
  const side = reach + 0.5;
  const lines = Array.from({ length: 2 * reach + 2 }, (_, index) => index - side);
  const taps = Array.from({ length: kernel * kernel }, (_, index) => [Math.floor(index / kernel) - (kernel - 1) / 2, (index % kernel) - (kernel - 1) / 2] as const);
  const centres = moment.centres[layer]!;
  const places = centres.map(([row, column], head) => `head ${head} at row ${row.toFixed(1)}, column ${column.toFixed(1)}`);
  return (
    <figure class="heads-layer" data-picture>
      <svg viewBox={`${-side} ${-side} ${2 * side} ${2 * side}`} role="img" aria-label={`Layer ${layer + 1}, shifts from the query: ${places.join("; ")}`}>
        <g class="grid">
          {lines.map((place) => (
            <>
              <line x1={place} x2={place} y1={-side} y2={side} />
              <line y1={place} y2={place} x1={-side} x2={side} />
            </>
          ))}
        </g>
        <rect class="query" x={-0.5} y={-0.5} width={1} height={1} />
        {taps.map(([row, column]) => (
          <path class="tap" d={`M${column - 0.12} ${row}h0.24M${column} ${row - 0.12}v0.24`} />
        ))}
        {centres.map(([row, column], head) => {
          const colour = `var(--${TONES[head % TONES.length]})`;
          const radius = moment.radii[layer]![head]!;
          const way = moments.slice(0, at + 1).map((one) => one.centres[layer]![head]!);
          return (
            <>
              <polyline class="way" points={way.map(([y, x]) => `${x},${y}`).join(" ")} style={{ stroke: colour }} />
              <circle class="half" cx={column} cy={row} r={Math.min(WIDEST * side, radius)} fill-opacity={Math.min(0.2, 0.2 / radius ** 2)} style={{ stroke: colour, fill: colour }} />
            </>
          );
        })}
        {centres.map(([row, column], head) => (
          <text x={column} y={row} style={{ fill: `var(--${TONES[head % TONES.length]})`, fontSize: side / 9 }}>{head}</text>
        ))}
      </svg>
      <figcaption>layer {layer + 1}</figcaption>
    </figure>
  );
}
