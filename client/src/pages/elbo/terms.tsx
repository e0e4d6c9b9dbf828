// The terms of a bound as bars that begin where the last one ends, and as formulas.
import { Formula } from "../../core/formula";
import type { BoundView, Term } from "../../schema";

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
const WIDE = 600;

/** Where each bar begins and ends, in nats. */
function spans(bound: BoundView): { term: Term; from: number; to: number }[] {
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
  const rows = spans(bound);
  const all = rows.flatMap((row) => [row.from, row.to]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const place = (nats: number) => 4 + ((nats - low) / (high - low || 1)) * (WIDE - 8);
  const evidence = place(rows.at(-1)!.to);
  const told = rows.map(({ term }) => `${WORDS[term.name]} ${term.text}`).join("; ");
  return (
    <svg data-picture class="elbo-bars" viewBox={`0 0 ${WIDE} ${ROW * rows.length}`} role="img" aria-label={`In nats: ${told}`}>
      <line class="evidence" x1={evidence} x2={evidence} y1={0} y2={ROW * rows.length} />
      {rows.map(({ term, from, to }, index) => {
        const [a, b] = [place(from), place(to)].sort((one, two) => one - two) as [number, number];
        const outside = b - a < 190;
        const right = outside && b > WIDE / 2;
        return (
          <>
            <rect x={a} y={ROW * index + 4} width={Math.max(2, b - a)} height={ROW - 8} rx={3} style={{ fill: `var(--${TONES[term.name]})` }} />
            <text
              x={outside ? (right ? a - 6 : b + 6) : (a + b) / 2}
              y={ROW * index + ROW / 2 + 5}
              text-anchor={outside ? (right ? "end" : "start") : "middle"}
              class={outside ? "" : "inside"}
            >
              {WORDS[term.name]} {term.text}
            </text>
          </>
        );
      })}
    </svg>
  );
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
                <td><Formula latex={`= \\displaystyle ${term.latex}`} /></td>
                <td class="number">{term.text}</td>
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
