"""lattend compare: layers side by side as a size grows, and where they cross."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lattend.cli.arguments import At, Json, argument, option, read_names, read_numbers, refuse
from lattend.cli.output import say, say_json, width
from lattend.errors import LattendError, NamingError

if TYPE_CHECKING:
    from lattend.cost.comparison import Architectures
    from lattend.cost.comparison.tables import TrainTest

EXAMPLES = (
    'lattend compare rnn "attention(full)" "attention(causal)" --over t --at d=512',
    'lattend compare "rnn(steps=t,inputs=n,hidden=n)" \\\n'
    '    "attention(full,n=t,heads=1,D_i=n,D_hid=n,projections=none)" --over t --at n=512 --out crossing.svg',
    "lattend compare lstm attention --over t --quantity multiply_adds",
    "lattend compare lstm attention --over t --at d=512 --equal parameters",
    "lattend compare rnn2d conv lstm",
    "lattend compare --architectures --at n=1024,d=64,k=5",
    "lattend compare --tables",
)
COLUMNS = ("needed", "dense")


def compare(
    layers: Annotated[
        list[str] | None,
        argument("LAYER...", 'Two or more: rnn, "attention(causal)", "wide: rnn(steps=t, hidden=1024)".'),
    ] = None,
    over: Annotated[str | None, option("t", "The size that grows; n if not given.", "--over")] = None,
    at: At = None,
    sizes: Annotated[str | None, option("64,128", "The sizes to show, powers of two if not given.")] = None,
    quantity: Annotated[
        str, typer.Option(metavar="QUANTITY", help="What to compare: multiplies, operations, depth, …")
    ] = "multiplies",
    column: Annotated[
        str, typer.Option(metavar="needed|dense", help="Attended pairs only, or all.")
    ] = "needed",
    equal: Annotated[
        str | None, option("parameters", "Make all as wide as the first one's parameters allow.")
    ] = None,
    architectures: Annotated[
        bool, typer.Option("--architectures", help="The table of CNNs, RNNs and Transformers instead.")
    ] = False,
    tables: Annotated[
        bool, typer.Option("--tables", help="RNN against Transformer, in training and at test.")
    ] = False,
    out: Annotated[str | None, option("FILE", "Draw: .svg, .png, .pdf; a table: .md.", "--out", "-o")] = None,
    json: Json = False,
) -> None:
    """Several layers as one size grows, and where they cross.

    Formulas, a table and the crossovers in closed form. A layer that is named without its sizes has as many
    positions as --over says, width d and one head; beside rnn2d it is on the same image. Nothing is scaled
    unless --equal asks for it.
    """
    if architectures or tables:
        options = {"--architectures": architectures and tables, "--over": over, "--sizes": sizes}
        options |= {"--equal": equal, "--quantity": quantity != "multiplies", "--column": column != "needed"}
        what = "--tables" if tables else "--architectures"
        refuse(options, options, f"does not go with {what}")
        if layers:
            raise LattendError(f"{what} compares layers of its own; leave {layers[0]} out")
        _table(_tables(read_numbers(at)) if tables else _architectures(read_numbers(at)), out, json)
        return
    from lattend.cost.comparison import compare as compared
    from lattend.cost.comparison.defaults import read_layers

    if not layers or len(layers) < 2:
        raise LattendError('compare needs two layers or more, such as rnn "attention(causal)" --over t')
    if column not in COLUMNS:
        raise NamingError(f"--column is needed or dense, not {column}; what is executed has no formula")
    grows = over or "n"
    costs, meanings, note = read_layers(layers, grows)
    numbers: dict[str, Any] = dict(read_numbers(at))
    if sizes is not None:
        numbers[grows] = _sizes(sizes)
    chosen = {label: getattr(cost, column) for label, cost in costs.items()}
    comparison = compared(chosen, over=grows, quantity=quantity, at=numbers, equal=equal)
    file = None if out is None else str(comparison.save(out))
    if json:
        more = {"meanings": meanings, **({"note": note} if note else {})}
        say_json({**comparison.json(), **more, **({} if file is None else {"file": file})})
    elif file is not None:
        lines = (note, comparison.warning, f"{file}: {comparison.draw().title}")
        say("\n".join(line for line in lines if line))
    else:
        report, legend = comparison.report(), [f"{label} is {meaning}" for label, meaning in meanings.items()]
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


def _table(result: Architectures | TrainTest, out: str | None, json: bool) -> None:
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
