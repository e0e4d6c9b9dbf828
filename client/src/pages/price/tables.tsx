// CNNs, RNNs and Transformers side by side; RNN against Transformer in training and at test.
import { useAnswer } from "../../core/ask";
import { Panel } from "../../core/panel";
import { Report } from "../../core/report";

export function TablesView() {
  const question = {};
  const reading = useAnswer("tables", question);
  const found = reading.answer;
  return (
    <div class="panels">
      <Panel title="CNNs, RNNs and Transformers" about="One layer of each on the same positions. Every number in the table is derived from the cost of the layer; the words are what follows from it." panel="tables" question={question} reading={reading} wide>
        {found && <Report report={found.architectures} title />}
      </Panel>
      <Panel title="RNN against Transformer" about="Time and space, in training and at test: exactly, as an order, and what is usually claimed, each claim decided." panel="tables" question={question} reading={reading} wide>
        {found && <Report report={found.train_test} title />}
      </Panel>
    </div>
  );
}
