// How far back and ahead of a query its keys are, along each axis.
import { FoldedFormula, Formula } from "../../core/formula";
import type { SpanView } from "../../schema";

/** The terms of a list of facts, two for each axis. */
export function Spans({ spans }: { spans: SpanView[] }) {
  return (
    <>
      {spans.map((span) => (
        <>
          <dt>
            {span.direction}, <Formula latex={span.distance} />
          </dt>
          <dd>
            <FoldedFormula formula={span.most} />
          </dd>
        </>
      ))}
    </>
  );
}
