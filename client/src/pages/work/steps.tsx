// The steps as tables of numbers; the one that is pointed at tells where it comes from.
import type { NumberView, StepView } from "../../schema";
import { Formula } from "../../core/formula";
import { isSame, isSource, numberAt, type NumberPlace } from "./state";

interface Props {
  steps: StepView[];
  show: string;
  pointed: NumberPlace | null;
  onPoint: (place: NumberPlace | null) => void;
}

export function Steps({ steps, show, pointed, onPoint }: Props) {
  const source = numberAt(steps, pointed);
  return (
    <div class="work-steps">
      {steps.map((step) => (
        <section class="work-step" data-step={step.name}>
          <StepTitle step={step} />
          {step.tables.map((rows, head) => (
            <StepTable step={step} head={head} rows={rows} show={show} pointed={pointed} source={source} onPoint={onPoint} />
          ))}
        </section>
      ))}
    </div>
  );
}

export function StepTitle({ step }: { step: StepView }) {
  return (
    <h3>
      {step.title} <Formula latex={step.formula} />
    </h3>
  );
}

const ARROWS: { [key: string]: [number, number] } = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

interface TableProps extends Omit<Props, "steps"> {
  step: StepView;
  head: number;
  rows: NumberView[][];
  source: NumberView | null;
}

function StepTable({ step, head, rows, show, pointed, source, onPoint }: TableProps) {
  const inside = pointed?.name === step.name && pointed.head === head;
  const press = (event: KeyboardEvent, row: number, column: number) => {
    const way = ARROWS[event.key];
    if (!way) return;
    const table = (event.currentTarget as Element).closest("table")!;
    const next = table.querySelector<HTMLElement>(`[data-at="${row + way[0]},${column + way[1]}"]`);
    if (next) {
      event.preventDefault();
      next.focus();
    }
  };
  return (
    <div class="scroll">
      <table class="work-table">
        <caption>{step.tables.length > 1 ? `head ${head + 1}` : <span class="hidden">{step.title}</span>}</caption>
        {step.across && (
          <thead>
            <tr>
              <td />
              {rows[0]!.map((_, column) => <th scope="col">{step.across === "key" ? "key " : ""}{column + 1}</th>)}
            </tr>
          </thead>
        )}
        <tbody>
          {rows.map((row, at) => (
            <tr>
              <th scope="row">{step.down} {at + 1}</th>
              {row.map((number, column) => {
                const place = { name: step.name, head, row: at, column };
                const here = isSame(pointed, place);
                return (
                  <td
                    data-at={`${at},${column}`}
                    tabIndex={(inside ? here : at === 0 && column === 0) ? 0 : -1}
                    class={here ? "work-pointed" : isSource(source, place) ? "work-source" : ""}
                    style={number.share == null ? undefined : { "--share": `${Math.round(45 * number.share)}%` }}
                    onPointerEnter={() => onPoint(place)}
                    onFocus={() => onPoint(place)}
                    onKeyDown={(event) => press(event, at, column)}
                  >
                    <Shown number={number} show={show} />
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Exact above, decimal below; one of them where they are alike, or the exact form is too long. */
function Shown({ number, show }: { number: NumberView; show: string }) {
  const decimal = number.decimal.replace("-inf", "−∞").replace("-", "−");
  const same = number.exact === number.decimal || number.decimal === "-inf";
  const exact = number.exact !== "" && show !== "decimal" && !same;
  return (
    <>
      {exact && <Formula latex={`\\displaystyle ${number.exact}`} />}
      {(!exact || show === "both") && <span class={exact ? "work-decimal" : ""}>{decimal}</span>}
    </>
  );
}

/** The line that says where the pointed number comes from. */
export function OriginLine({ steps, pointed }: { steps: StepView[]; pointed: NumberPlace | null }) {
  const step = steps.find((one) => one.name === pointed?.name);
  const number = numberAt(steps, pointed);
  if (!step || !pointed || !number) return <p class="work-fact">Point at a number, or go to it with Tab and the arrow keys, to see where it comes from.</p>;
  return (
    <div class="work-origin" role="status">
      <b>
        {step.title}, {step.down} {pointed.row + 1}
        {step.across && `, ${step.across} ${pointed.column + 1}`}
      </b>
      <Formula latex={`\\displaystyle ${number.origin || number.decimal}`} />
    </div>
  );
}
