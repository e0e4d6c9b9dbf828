// Quantities with their formulas, and their numbers beside them.
import type { QuantityRow } from "../../schema";
import { PiecewiseFormula } from "../../core/formula";

interface Props {
  rows: QuantityRow[];
  columns: string[]; // of formulas
  numbers: string[]; // of numbers; none while a letter is open
  label: string;
}

export function QuantityTable({ rows, columns, numbers, label }: Props) {
  const constant = numbers.length > 0 && rows.every((row) => row.formulas.every((cell) => !cell || cell.text === row.numbers[0]));
  const formulas = constant ? [] : numbers.length ? columns.slice(0, 1) : columns; // beside numbers, the formula of what is needed
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={label}>
      <table class="report-table price-table">
        <thead>
          <tr>
            <td />
            {formulas.map((name) => (
              <th scope="col">{numbers.length ? "formula" : name}</th>
            ))}
            {numbers.map((name) => (
              <th scope="col" class="number">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr data-quantity={row.name}>
              <th scope="row">{row.label}</th>
              {row.words && !row.numbers.length ? (
                <td class="price-words" colSpan={formulas.length + numbers.length}>{row.words}</td>
              ) : (
                <>
                  {formulas.map((_, column) => (
                    <td>{row.formulas[column] ? <PiecewiseFormula formula={row.formulas[column]} /> : row.formulas[0] && column < 2 && row.formulas.length > 1 ? "=" : ""}</td>
                  ))}
                  {numbers.map((_, column) => (
                    <td class="number">{column > 0 && row.numbers[column] === row.numbers[0] ? "=" : row.numbers[column]}</td>
                  ))}
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
