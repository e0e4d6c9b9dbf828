// Formulas as MathML, from LaTeX.
import { useEffect, useRef } from "preact/hooks";
import temml from "temml";
import type { Formula as Pieces } from "../schema";

/** One formula; on a line of its own where `block` says so. */
export function Formula({ latex, block }: { latex: string; block?: boolean }) {
  const place = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    try {
      temml.render(latex, place.current!, { displayMode: block ?? false, trust: false, strict: false, throwOnError: true });
    } catch {
      place.current!.textContent = latex;
    }
  }, [latex, block]);
  return <span class={block ? "formula block" : "formula"} ref={place} data-latex={latex} />;
}

/** Formulas below each other, on lines of their own; what is too wide scrolls, by keys too. */
export function Formulas({ lines }: { lines: string[] }) {
  return (
    <div class="pieces" tabIndex={0} role="group" aria-label={lines.length > 1 ? "Formulas" : "Formula"}>
      {lines.map((line) => <Formula latex={line} block />)}
    </div>
  );
}

/** A formula in pieces, each with the places where it holds. */
export function PiecewiseFormula({ formula }: { formula: Pieces }) {
  const several = formula.pieces.length > 1 || formula.pieces[0]?.when;
  const stacked = formula.pieces.some((piece) => signsIn(piece.latex) > WIDE);
  return (
    <div class="pieces" tabIndex={0} role="group" aria-label={formula.text}>
      {formula.head && <p class="where"><Formula latex={formula.head} block /></p>}
      <table class={stacked ? "stacked" : ""}>
        <tbody>
          {formula.pieces.map((piece) => (
            <tr>
              <td>
                <Formula latex={piece.latex} block />
              </td>
              {several && <td class="when"><Condition latex={piece.when} /></td>}
            </tr>
          ))}
        </tbody>
      </table>
      {formula.more && <p class="where">{formula.more}</p>}
      {formula.where && <p class="where">where <Formula latex={formula.where} /></p>}
    </div>
  );
}

/** Where a piece holds; it may go on in the next line after an "and". */
function Condition({ latex }: { latex: string }) {
  if (!latex || latex === "otherwise") return <>{latex}</>;
  return (
    <>
      when{" "}
      {latex.split(AND).map((part, place) => (
        <>
          {place > 0 && " and "}
          <Formula latex={part} />
        </>
      ))}
    </>
  );
}

const AND = "\\text{ and }";
const WIDE = 20; // signs of a formula, beside which its condition has no room

/** About how many signs a formula has when it is set. */
function signsIn(latex: string): number {
  const set = latex.replace(/\\(?:left|right|[dt]?frac)\b/g, "").replace(/\\(?:mathrm|text)\b/g, "").replace(/\\[A-Za-z]+/g, "x");
  return set.replace(/[{}^_\s\\]/g, "").length;
}
const LONG = 120; // characters

/** The same, folded away where it is long. */
export function FoldedFormula({ formula }: { formula: Pieces }) {
  if (formula.text.length <= LONG) return <PiecewiseFormula formula={formula} />;
  return (
    <details>
      <summary>a formula in {formula.pieces.length === 1 ? "one piece" : `${formula.pieces.length} pieces`}</summary>
      <PiecewiseFormula formula={formula} />
    </details>
  );
}
