// A matrix of texts: every cell can be typed in, arrow keys go from cell to cell, a whole matrix can be pasted.
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import "./matrix.css";

export interface Cell {
  row: number;
  column: number;
}

interface Props {
  label: string; // "Keys": what it is
  name?: ComponentChildren; // "K", before the bracket
  cells: string[][];
  onChange: (cells: string[][]) => void;
  rowNames?: string[]; // "key 1"; they are said of each cell
  columnNames?: string[];
  fixedRows?: boolean;
  fixedColumns?: boolean;
  most?: number; // rows, and columns
  placeholder?: string;
  look?: (cell: Cell) => string; // classes of a cell
  note?: (cell: Cell) => string; // what is said of a cell: why it is wrong
  onPoint?: (cell: Cell | null) => void; // the cell under the pointer, or with the focus
}

/** "1 0; 0 1" as rows of texts: commas, spaces or tabs between numbers, semicolons or lines between rows. */
export function readMatrix(text: string): string[][] {
  const plain = text.replace(/\]\s*,\s*\[/g, ";").replace(/[[\]]/g, "").trim();
  const rows = plain.split(/[;\n]/).map((row) => row.trim().split(row.includes(",") ? /\s*,\s*/ : /\s+/));
  const wide = Math.max(...rows.map((row) => row.length));
  return rows.map((row) => [...row, ...Array<string>(wide - row.length).fill("")]);
}

/** Rows of texts, whatever a link holds. */
export function rowsOf(value: unknown): string[][] {
  return Array.isArray(value) ? value.map(textsOf) : [];
}

/** Texts, whatever a link holds. */
export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map((text) => (typeof text === "string" ? text : JSON.stringify(text))) : [];
}

/** The cell of this matrix that a problem speaks of: "keys[0][1]: …" or "tokens, row 1, column 2: …". */
export function cellOf(problem: { message: string } | null, name: string): Cell | null {
  const found = problem?.message.match(/^(\w+)(?:\[(\d+)\](?:\[(\d+)\])?|, row (\d+), column (\d+))/);
  if (!found || found[1] !== name) return null;
  const [, , row, column, rowFrom1, columnFrom1] = found;
  return row ? (column ? { row: Number(row), column: Number(column) } : { row: 0, column: Number(row) }) : { row: Number(rowFrom1) - 1, column: Number(columnFrom1) - 1 };
}

export function Matrix({ label, name, cells, onChange, rowNames, columnNames, fixedRows, fixedColumns, most = 12, placeholder, look, note, onPoint }: Props) {
  const table = useRef<HTMLDivElement>(null);
  const id = useId();
  const [rows, columns] = [cells.length, cells[0]?.length ?? 0];
  const longest = Math.max(2, ...cells.flat().map((cell) => cell.length));
  const set = ({ row, column }: Cell, text: string) =>
    onChange(cells.map((line, at) => (at === row ? line.map((old, across) => (across === column ? text : old)) : line)));
  const go = ({ row, column }: Cell, end: "all" | "start" | "end") => {
    const input = table.current!.querySelector<HTMLInputElement>(`[data-cell="${row},${column}"]`);
    if (!input) return false;
    input.focus();
    if (end === "all") input.select();
    else input.setSelectionRange(...(end === "start" ? ([0, 0] as const) : ([input.value.length, input.value.length] as const)));
    return true;
  };
  const press = (event: KeyboardEvent, { row, column }: Cell) => {
    const input = event.currentTarget as HTMLInputElement;
    const whole = input.selectionStart === 0 && input.selectionEnd === input.value.length;
    const [atStart, atEnd] = [input.selectionEnd === 0 || whole, input.selectionStart === input.value.length || whole];
    const moved =
      (event.key === "ArrowUp" && go({ row: row - 1, column }, "all")) ||
      ((event.key === "ArrowDown" || event.key === "Enter") && go({ row: row + 1, column }, "all")) ||
      (event.key === "ArrowLeft" && atStart && !event.shiftKey && (go({ row, column: column - 1 }, "all") || go({ row: row - 1, column: columns - 1 }, "all"))) ||
      (event.key === "ArrowRight" && atEnd && !event.shiftKey && (go({ row, column: column + 1 }, "all") || go({ row: row + 1, column: 0 }, "all")));
    if (moved) event.preventDefault();
  };
  const paste = (event: ClipboardEvent) => {
    const found = readMatrix(event.clipboardData?.getData("text") ?? "");
    if (found.length === 1 && found[0]!.length === 1) return; // one number goes where the caret is
    event.preventDefault();
    const high = fixedRows ? rows : Math.min(most, found.length);
    const wide = fixedColumns ? columns : Math.min(most, found[0]!.length);
    onChange(Array.from({ length: high }, (_, row) => Array.from({ length: wide }, (_, column) => found[row]?.[column] ?? "0")));
  };
  return (
    <div class="matrix" role="group" aria-labelledby={id} onPointerLeave={onPoint && (() => onPoint(null))}>
      <span class="matrix-name" id={id}>
        {name ? <><var aria-hidden="true">{name}</var><span class="hidden">{label}</span></> : label}
      </span>
      <div class="matrix-cells" ref={table} style={{ gridTemplateColumns: `repeat(${columns}, minmax(0, ${Math.min(longest, 14) + 2}ch))` }} onPaste={paste}>
        {cells.map((line, row) =>
          line.map((text, column) => {
            const cell = { row, column };
            const said = note?.(cell);
            return (
              <input
                type="text"
                data-cell={`${row},${column}`}
                class={look?.(cell) ?? ""}
                aria-label={`${label}, ${rowNames?.[row] ?? `row ${row + 1}`}, ${columnNames?.[column] ?? `column ${column + 1}`}`}
                aria-invalid={said ? true : undefined}
                title={said || undefined}
                placeholder={placeholder}
                value={text}
                spellcheck={false}
                autocomplete="off"
                onInput={(event) => set(cell, event.currentTarget.value)}
                onKeyDown={(event) => press(event, cell)}
                onFocus={onPoint && (() => onPoint(cell))}
                onPointerEnter={onPoint && (() => onPoint(cell))}
              />
            );
          }),
        )}
      </div>
      {!fixedColumns && (
        <div class="matrix-more beside">
          <More sign="+" title={`Add a column to ${label}`} off={columns >= most} onClick={() => onChange(cells.map((row) => [...row, "0"]))} />
          <More sign="−" title={`Remove the last column of ${label}`} off={columns <= 1} onClick={() => onChange(cells.map((row) => row.slice(0, -1)))} />
        </div>
      )}
      {!fixedRows && (
        <div class="matrix-more below">
          <More sign="+" title={`Add a row to ${label}`} off={rows >= most} onClick={() => onChange([...cells, Array<string>(columns).fill("0")])} />
          <More sign="−" title={`Remove the last row of ${label}`} off={rows <= 1} onClick={() => onChange(cells.slice(0, -1))} />
        </div>
      )}
    </div>
  );
}

function More({ sign, title, off, onClick }: { sign: string; title: string; off: boolean; onClick: () => void }) {
  return <button class="quiet" title={title} aria-label={title} disabled={off} onClick={onClick}>{sign}</button>;
}
