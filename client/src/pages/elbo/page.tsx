// ELBO: the evidence lower bound where everything is known, term by term.
import { DiscretePanel } from "./discrete";
import { LinePanels } from "./line";
import { LinearPanel } from "./linear";
import type { ElboState } from "./state";
import "./style.css";

export default function ElboPage({ state }: { state: ElboState }) {
  return (
    <>
      <LinePanels state={state}>
        <DiscretePanel state={state} />
      </LinePanels>
      <div class="panels elbo-more">
        <LinearPanel state={state} />
      </div>
    </>
  );
}
