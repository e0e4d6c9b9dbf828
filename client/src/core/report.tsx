// A report of the library: sentences, facts and tables.
import { Scripts } from "./scripts";
import { textOf, type Words, WordsView } from "./words";

interface ReportPart {
  kind: "text" | "facts" | "table";
  text: Words;
  head: string[];
  rows: Words[][];
  right: boolean[]; // columns of numbers
  gap: boolean; // something new begins with it
}
export interface ReportView {
  title: string;
  parts: ReportPart[];
}

const SHORT = 16; // characters that stand on one line

/** The report; `formulas`: names of rows have subscripts, as in W_in. */
export function Report({ report, title, formulas }: { report: ReportView; title?: boolean; formulas?: boolean }) {
  return (
    <div class="report">
      {title && <h3>{report.title}</h3>}
      {report.parts.map((part) => (
        <PartView part={part} formulas={formulas} />
      ))}
    </div>
  );
}

export function PartView({ part, formulas }: { part: ReportPart; formulas?: boolean | undefined }) {
  if (part.kind === "text") return <p class={part.gap ? "gap" : ""}><WordsView words={part.text} /></p>;
  if (part.kind === "facts")
    return (
      <dl class="facts">
        {part.rows.map(([name, words]) => (
          <div>
            <dt><WordsView words={name!} /></dt>
            <dd><WordsView words={words!} /></dd>
          </div>
        ))}
      </dl>
    );
  const side = (column: number) => (part.right[column] ? "number" : "");
  const look = (cell: Words, column: number) => `${side(column)}${textOf(cell).length <= SHORT ? " short" : ""}`;
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
      <table class="report-table">
        {part.head.some(Boolean) && (
          <thead>
            <tr>
              {part.head.map((name, column) => (
                <th scope="col" class={side(column)}>{name}</th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {part.rows.map((row) => (
            <tr>
              {row.map((cell, column) => {
                const words = formulas && typeof cell === "string" && column === 0 ? <Scripts text={cell} /> : <WordsView words={cell} />;
                return column === 0 ? <th scope="row" class={look(cell, 0)}>{words}</th> : <td class={look(cell, column)}>{words}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
