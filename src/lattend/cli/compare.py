"""lattend compare: layers side by side as a size grows, and where they cross."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lattend.cli.arguments import at_option, read_names, read_numbers
from lattend.cli.command import Answer, Command, argument, flag, option, setting
from lattend.cli.output import say, say_json, width
from lattend.errors import LattendError, NamingError

if TYPE_CHECKING:
    from lattend.cost.comparison import Architectures
    from lattend.cost.comparison.tables import TrainTest

COLUMNS = ("needed", "dense")


@dataclass(frozen=True)
class CompareCommand(Command):
    r"""Several layers as one size grows, and where they cross.

    Formulas, a table and the crossovers in closed form. A layer that is named without its sizes has as many
    positions as --over says, width d and one head; beside rnn2d it is on the same image. Nothing is scaled
    unless --equal asks for it.

        lattend compare rnn "attention(full)" "attention(causal)" --over t --at d=512
        lattend compare "rnn(steps=t,inputs=n,hidden=n)" \
            "attention(full,n=t,heads=1,D_i=n,D_hid=n,projections=none)" \
            --over t --at n=512 --out crossing.svg
        lattend compare lstm attention --over t --quantity multiply_adds
        lattend compare lstm attention --over t --at d=512 --equal parameters
        lattend compare rnn2d conv lstm
        lattend compare --architectures --at n=1024,d=64,k=5
        lattend compare --tables
    """

    layers: list[str] | None = argument(
        "LAYER...", 'Two or more: rnn, "attention(causal)", "wide: rnn(steps=t, hidden=1024)".', None
    )
    over: str | None = option("t", "The size that grows; n if not given.")
    at: list[str] | None = at_option()
    sizes: str | None = option("64,128", "The sizes to show, powers of two if not given.")
    quantity: str = option(
        "QUANTITY",
        "What to compare: multiplies, operations, depth, …",
        default="multiplies",
        show_default=True,
    )
    column: str = setting("needed|dense", "Attended pairs only, or all.", "needed")
    equal: str | None = option("parameters", "Make all as wide as the first one's parameters allow.")
    architectures: bool = flag("The table of CNNs, RNNs and Transformers instead.")
    tables: bool = flag("RNN against Transformer, in training and at test.")
    out: str | None = option("FILE", "Draw: .svg, .png, .pdf; a table: .md.", "--out", "-o")

    def answer(self) -> Answer:
        if self.architectures or self.tables:
            what = "--tables" if self.tables else "--architectures"
            if self.tables:
                self.refuse(["architectures"], f"does not go with {what}")
            self.refuse(("over", "sizes", "equal", "quantity", "column"), f"does not go with {what}")
            if self.layers:
                raise LattendError(f"{what} compares layers of its own; leave {self.layers[0]} out")
            table = (_tables if self.tables else _architectures)(read_numbers(self.at))
            _print_table(table, self.out, self.json)
            return None
        from lattend.cost.comparison import compare as compared
        from lattend.cost.comparison.defaults import read_layers

        if not self.layers or len(self.layers) < 2:
            raise LattendError('compare needs two layers or more, such as rnn "attention(causal)" --over t')
        if self.column not in COLUMNS:
            raise NamingError(
                f"--column is needed or dense, not {self.column}; what is executed has no formula"
            )
        grows = self.over or "n"
        costs, meanings, note = read_layers(self.layers, grows)
        numbers: dict[str, Any] = dict(read_numbers(self.at))
        if self.sizes is not None:
            numbers[grows] = _sizes(self.sizes)
        chosen = {label: getattr(cost, self.column) for label, cost in costs.items()}
        comparison = compared(chosen, over=grows, quantity=self.quantity, at=numbers, equal=self.equal)
        file = None if self.out is None else str(comparison.save(self.out))
        if self.json:
            more = {"meanings": meanings, **({"note": note} if note else {})}
            say_json({**comparison.json(), **more, **({} if file is None else {"file": file})})
        elif file is not None:
            lines = (note, comparison.warning, f"{file}: {comparison.draw().title}")
            say("\n".join(line for line in lines if line))
        else:
            report = comparison.report()
            legend = [f"{label} is {meaning}" for label, meaning in meanings.items()]
            parts = [*([report.title] if note else []), *report.parts, *([""] if legend else []), *legend]
            say(replace(report, title=note or report.title, parts=parts).text(width()))


def _architectures(numbers: dict[str, int]) -> Architectures:
    from lattend.cost.comparison.tables import architectures

    unknown = [name for name in numbers if name not in ("n", "d", "k")]
    if unknown:
        raise NamingError(f"--architectures has no {unknown[0]}; it has n, d, k")
    options: dict[str, Any] = dict(numbers)
    return architectures(**options)


def _tables(numbers: dict[str, int]) -> TrainTest:
    from lattend.cost.comparison.tables import train_test

    return train_test(**numbers)


def _print_table(result: Architectures | TrainTest, out: str | None, json: bool) -> None:
    """Print a table, or write it as Markdown or as a chart."""
    file = None
    if out is not None and Path(out).suffix.lower() == ".md":
        Path(out).write_text(result.markdown(), encoding="utf-8")
        file = out
    elif out is not None:
        file = str(result.comparison.save(out))
    if json:
        say_json({**result.json(), **({} if file is None else {"file": file})})
    else:
        say(result.text(width()) if file is None else f"{file}: {result.title}")


def _sizes(text: str) -> list[int]:
    """`64,128` as a list."""
    names = read_names(text)
    wrong = [size for size in names if not size.isdigit()]
    if wrong or not names:
        raise NamingError(
            f"--sizes takes whole numbers, as in 64,128, not {wrong[0] if wrong else 'nothing'}"
        )
    return [int(size) for size in names]
