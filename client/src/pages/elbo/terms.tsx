// The terms of a bound as bars that begin where the last one ends, and as formulas.
import { useRef } from "preact/hooks";
import { Formula } from "../../core/formula";
import { letterScale, useWidth } from "../../core/width";
import type { BoundView, BoundTerm } from "../../schema";

const WORDS: { [name: string]: string } = {
  reconstruction: "reconstruction",
  kl: "− KL to the prior",
  elbo: "ELBO",
  gap: "+ gap, KL to the posterior",
  log_prob: "log p(x)",
};
const SIGNS: { [name: string]: string } = {
  reconstruction: "\\mathbb{E}_q[\\log p(x \\mid z)]",
  kl: "\\mathrm{KL}(q \\,\\|\\, p(z))",
  elbo: "\\mathrm{ELBO}",
  gap: "\\mathrm{KL}(q \\,\\|\\, p(z \\mid x))",
  log_prob: "\\log p(x)",
};
const TONES: { [name: string]: string } = { reconstruction: "mark", kl: "other", elbo: "soft", gap: "both", log_prob: "good" };
const ROW = 30;
const LETTER = 6.9; // px, of 13 px letters

/** Where each bar begins and ends, in nats. */
function spans(bound: BoundView): { term: BoundTerm; from: number; to: number }[] {
  const value = Object.fromEntries(bound.terms.map((term) => [term.name, term.value])) as { [name: string]: number };
  const ends: { [name: string]: [number, number] } = {
    reconstruction: [0, value.reconstruction!],
    kl: [value.reconstruction!, value.elbo!],
    elbo: [0, value.elbo!],
    gap: [value.elbo!, value.log_prob!],
    log_prob: [0, value.log_prob!],
  };
  return bound.terms.map((term) => ({ term, from: ends[term.name]![0], to: ends[term.name]![1] }));
}

export function Bars({ bound }: { bound: BoundView }) {
  const box = useRef<HTMLDivElement>(null);
  const scale = letterScale();
  const width = useWidth(box) / scale;
  const rows = spans(bound);
  const all = rows.flatMap((row) => [row.from, row.to]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const place = (nats: number) => 2 + ((nats - low) / (high - low || 1)) * Math.max(0, width - 4);
  const evidence = place(rows.at(-1)!.to);
  const terms = rows.map(({ term }) => `${WORDS[term.name]} ${term.text}`).join("; ");
  return (
    <div ref={box} class="elbo-bars">
      <svg data-picture width={width * scale} height={ROW * rows.length * scale} viewBox={`0 0 ${width} ${ROW * rows.length}`} role="img" aria-label={`In nats: ${terms}`}>
        <line class="evidence" x1={evidence} x2={evidence} y1={0} y2={ROW * rows.length} />
        {rows.map(({ term, from, to }, index) => {
          const [a, b] = [place(from), place(to)].sort((one, two) => one - two) as [number, number];
          const words = `${WORDS[term.name]} ${term.text}`;
          const { x, anchor, inside } = labelSpot(a, b, LETTER * words.length, width);
          return (
            <>
              <rect x={a} y={ROW * index + 4} width={Math.max(2, b - a)} height={ROW - 8} rx={3} style={{ fill: `var(--${TONES[term.name]})` }} />
              <text x={x} y={ROW * index + ROW / 2 + 5} text-anchor={anchor} class={inside ? "inside" : ""}>
                {words}
              </text>
            </>
          );
        })}
      </svg>
    </div>
  );
}

/** Where the words of a bar from a to b stand: in it, else right of it, else left of it, else at the edge, over it. */
function labelSpot(a: number, b: number, long: number, width: number): { x: number; anchor: "start" | "middle" | "end"; inside: boolean } {
  if (long + 12 <= b - a) return { x: (a + b) / 2, anchor: "middle", inside: true };
  if (b + 6 + long <= width) return { x: b + 6, anchor: "start", inside: false };
  if (a - 6 - long >= 0) return { x: a - 6, anchor: "end", inside: false };
  return { x: width - 2, anchor: "end", inside: false };
}

export function Terms({ bound }: { bound: BoundView }) {
  return (
    <>
      <Bars bound={bound} />
      <div class="scroll" tabIndex={0} role="group" aria-label="The terms as formulas">
        <table class="elbo-terms">
          <tbody>
            {bound.terms.map((term) => (
              <tr data-term={term.name}>
                <th scope="row">
                  <span class="elbo-swatch" style={{ background: `var(--${TONES[term.name]})` }} /> <Formula latex={SIGNS[term.name]!} />
                </th>
                <td class="number">{term.text}</td>
                <td><Formula latex={`= \\displaystyle ${term.latex}`} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class={bound.proved ? "elbo-proved" : ""}>
        {bound.proved ? "✓ ELBO + gap = log p(x): proved for these numbers by algebra, each of the three worked out on its own." : "ELBO + gap = log p(x) was not proved."}
      </p>
    </>
  );
}
