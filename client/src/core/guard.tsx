// Where a part of the page cannot be shown, it says so in its place, and the rest goes on.
import { Component, type ComponentChildren } from "preact";
import { here, visit } from "./state";

interface Props {
  of: unknown; // once it changes, the part is tried again
  children?: ComponentChildren;
}

export class Guard extends Component<Props, { error: unknown }> {
  override state = { error: null as unknown };

  override componentDidCatch(error: unknown): void {
    console.error(error);
    this.setState({ error: error ?? "unknown" });
  }

  override componentDidUpdate(before: Props): void {
    if (this.state.error !== null && before.of !== this.props.of) this.setState({ error: null });
  }

  render() {
    if (this.state.error === null) return this.props.children;
    return (
      <div class="problem mistake" role="alert">
        <p>This cannot be shown: what the page holds is not what this part expects. Undo the last change, or begin anew.</p>
        <button onClick={() => visit(here.value.page, {})}>Begin anew</button>
      </div>
    );
  }
}
