// ELBO: the evidence lower bound where everything is known, term by term.
import { definePage } from "../../core/page";
import { DiscretePanel } from "./discrete";
import { LinePanels } from "./line";
import { LinearPanel } from "./linear";
import { START, type ElboState } from "./state";
import "./style.css";

function ElboPage({ state }: { state: ElboState }) {
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

export const elboPage = definePage<ElboState>({ name: "elbo", title: "ELBO", state: START, view: ElboPage });
