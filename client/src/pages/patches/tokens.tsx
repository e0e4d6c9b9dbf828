// The chosen patch enlarged, and the tokens in their order.
import type { PatchesAnswer } from "../../schema";
import { Picture, startOf } from "./image";

const SHOWN = 256;

function view(found: PatchesAnswer, token: number): string {
  const [y, x] = startOf(found, token);
  return `${x} ${y} ${found.cols.patch} ${found.rows.patch}`;
}

export function OnePatch({ found, token }: { found: PatchesAnswer; token: number }) {
  const across = found.cols.tokens;
  const [row, col] = [Math.floor(token / across), token % across];
  return (
    <div class="patches-one">
      <svg data-picture viewBox={view(found, token)} role="img" aria-label={`The patch of token ${token}, enlarged`}>
        <Picture found={found} />
      </svg>
      <dl class="facts">
        <div>
          <dt>position</dt>
          <dd>
            {token} = {row} · {across} + {col}
          </dd>
        </div>
        <div>
          <dt>numbers</dt>
          <dd>{found.numbers}</dd>
        </div>
      </dl>
    </div>
  );
}

/** The sequence that a transformer reads. */
export function Strip({ found, token, onToken }: { found: PatchesAnswer; token: number; onToken: (token: number) => void }) {
  const many = Math.min(SHOWN, found.tokens);
  return (
    <figure class="patches-strip" data-picture>
      <figcaption>
        The sequence, row by row{many < found.tokens && `: the first ${many} of ${found.tokens.toLocaleString("en")}`}
      </figcaption>
      <div role="img" tabIndex={0} aria-label={`${many} patches in the order of reading`}>
        {Array.from({ length: many }, (_, place) => (
          <svg class={place === token ? "chosen" : ""} viewBox={view(found, place)} preserveAspectRatio="none" onClick={() => onToken(place)}>
            <Picture found={found} />
          </svg>
        ))}
      </div>
    </figure>
  );
}
