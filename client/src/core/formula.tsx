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

/** A formula in pieces, each with the places where it holds. */
export function PiecewiseFormula({ formula }: { formula: Pieces }) {
  const several = formula.pieces.length > 1 || formula.pieces[0]?.when;
  return (
    <div class="pieces" tabIndex={0} role="group" aria-label={formula.text}>
      {formula.head && <p class="where"><Formula latex={formula.head} block /></p>}
      <table>
        <tbody>
          {formula.pieces.map((piece) => (
            <tr>
              <td>
                <Formula latex={piece.latex} block />
              </td>
              {several && <td class="when">{piece.when === "otherwise" ? "otherwise" : piece.when && <>when <Formula latex={piece.when} /></>}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      {formula.more && <p class="where">{formula.more}</p>}
      {formula.where && <p class="where">where <Formula latex={formula.where} /></p>}
    </div>
  );
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
