"""compare, tables: several layers as one size grows, and tables of architectures."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lattend.cli.compare import CompareCommand
from lattend.web.panel import Answer, AnswerPart, Integer, Numbers, Panel, Question, Snippets
from lattend.web.panels.cost import LayerText, SizeLetter
from lattend.web.snippets import call, command, snippets
from lattend.web.views import Formula, ReportView, Words, formula, report_view, words

if TYPE_CHECKING:
    from lattend.cost.comparison.comparison import Comparison
    from lattend.cost.comparison.defaults import NamedLayers
    from lattend.cost.cost import Cost
    from lattend.draw import Picture


POINTS = 96  # of a curve
MOST_LAYERS = 8


class CompareQuestion(Question):
    """Two or more layers, the size that grows over `span`, and the quantity that is compared."""

    layers: list[LayerText] = Field(max_length=MOST_LAYERS)
    over: Annotated[str, Field(max_length=60)] = "n"
    numbers: Numbers = Field(default_factory=dict)
    quantity: Annotated[str, Field(max_length=60)] = "multiplies"
    column: Literal["needed", "dense"] = "needed"
    equal: bool = False
    span: list[Integer] = Field(default_factory=list, max_length=2)


class ComparedLayer(AnswerPart):
    """The curve of one layer: its formula and its values; `texts` are exact."""

    label: str
    meaning: str
    formula: Formula
    order: Words
    values: list[float | None]
    texts: list[str]


class Crossing(AnswerPart):
    """Where two curves cross, in numbers."""

    first: str
    second: str
    x: float
    y: float
    text: str


class CompareAnswer(Answer):
    """Curves, where they cross, and a table of numbers."""

    title: str
    note: str
    warning: str
    label: str  # of the quantity
    over: list[str]  # the sizes that could grow instead
    letters: list[SizeLetter]  # at which numbers the curves are drawn
    sizes: list[float]
    layers: list[ComparedLayer]
    crossings: list[Crossing]
    sentences: list[Words]
    widths: list[str]


def answer_compare(question: CompareQuestion) -> CompareAnswer:
    """The curves of one quantity, and in closed form where they cross."""
    from lattend.cost.comparison.chart import chart_crossings, chart_height, chart_sizes
    from lattend.cost.result import label
    from lattend.counts.latex import order_maths
    from lattend.report.numbers import format_value

    named, comparison = _compared(question)
    sizes = chart_sizes(comparison, POINTS)
    layers: list[ComparedLayer] = []
    for name, count in comparison.formulas.items():
        values = comparison.values(name, sizes)
        layers.append(
            ComparedLayer(
                label=name,
                meaning=named.meanings.get(name, ""),
                formula=formula(count),
                order=words(order_maths(comparison.orders[name])),
                values=[chart_height(value) for value in values],
                texts=[format_value(value) for value in values],
            )
        )
    return CompareAnswer(
        title=comparison.title,
        note=named.note,
        warning=comparison.warning,
        label=label(comparison.quantity),
        over=[*dict.fromkeys(name for cost in named.costs.values() for name in cost.names)],
        letters=[SizeLetter(name=name, example=value) for name, value in comparison.numbers.items()],
        sizes=[float(size) for size in sizes],
        layers=layers,
        crossings=[
            Crossing(first=one.first, second=one.second, x=one.size, y=one.height, text=one.label)
            for one in chart_crossings(comparison)
            if sizes[0] <= one.size <= sizes[-1]
        ],
        sentences=[words(line) for line in comparison.crossing_lines],
        widths=[str(width) for width in comparison.widths],
        copies=_copies(question, named, comparison),
    )


def _compared(question: CompareQuestion) -> tuple[NamedLayers, Comparison]:
    from lattend.cost.comparison import compare
    from lattend.cost.comparison.comparison import powers_between
    from lattend.errors import LattendError

    texts = tuple(text for text in question.layers if text.strip())
    if len(texts) < 2:
        raise LattendError("a comparison needs two layers or more; add another")
    sizes = powers_between(*question.span) if len(question.span) == 2 else []
    if not question.equal:
        named, comparison = _solved(texts, question.over, question.quantity, question.column)
        return named, comparison.at(question.numbers, sizes)
    named, costs = _costs(texts, question.over, question.column)
    at: dict[str, Any] = _numbers(question, named)
    at |= {question.over: sizes} if sizes else {}
    return named, compare(costs, question.over, question.quantity, at=at, equal="parameters")


def _numbers(question: CompareQuestion, named: NamedLayers) -> dict[str, int]:
    """The numbers of letters that these layers have."""
    known = {name for cost in named.costs.values() for name in cost.names} - {question.over}
    return {name: value for name, value in question.numbers.items() if name in known}


@lru_cache(maxsize=64)
def _solved(texts: tuple[str, ...], over: str, quantity: str, column: str) -> tuple[NamedLayers, Comparison]:
    """The comparison without numbers of the question: its formulas and crossovers hold for all."""
    from lattend.cost.comparison import compare

    named, costs = _costs(texts, over, column)
    return named, compare(costs, over=over, quantity=quantity)


def _costs(texts: tuple[str, ...], over: str, column: str) -> tuple[NamedLayers, dict[str, Cost]]:
    from lattend.cost.comparison.defaults import read_layers

    named = read_layers(texts, over)
    return named, {label: getattr(cost, column) for label, cost in named.costs.items()}


def _copies(question: CompareQuestion, layers: NamedLayers, comparison: Comparison) -> Snippets:
    from lattend.report.latex import named

    texts = [text for text in question.layers if text.strip()]
    at = _numbers(question, layers)
    equal = "parameters" if question.equal else ""
    costs = "layers.costs" if question.column == "needed" else "{k: c.dense for k, c in layers.costs.items()}"
    rows = {question.over: [*comparison.given_sizes]} if comparison.given_sizes else {}
    options = call("", over=question.over, quantity=question.quantity, at={**at, **rows} or None, equal=equal)
    return snippets(
        call("layers = read_layers", texts, question.over),
        f"print(lt.cost.compare({costs}, {options[1:]})",
        imports="from lattend.cost.comparison.defaults import read_layers",
        command=command(
            CompareCommand, question, layers=texts, at=at, equal=equal, sizes=comparison.given_sizes
        ),
        latex=named((label, formula(count).latex) for label, count in comparison.formulas.items()),
    )


def compare_picture(question: CompareQuestion) -> Picture:
    """The curves with their crossings."""
    return _compared(question)[1].draw()


COMPARE = Panel("compare", "Layers as one size grows", answer_compare, compare_picture)


class TablesAnswer(Answer):
    """The two tables, each derived from the costs of its layers."""

    architectures: ReportView
    train_test: ReportView


@lru_cache(maxsize=1)
def _tables() -> tuple[ReportView, ReportView, str]:
    from lattend.cost.comparison.tables import architectures, train_test

    reports = architectures().report(), train_test().report()
    return report_view(reports[0]), report_view(reports[1]), "\n".join(report.latex() for report in reports)


def answer_tables(question: Question) -> TablesAnswer:
    """Parallelism, path length, time and space, in closed form."""
    compared, trained, latex = _tables()
    return TablesAnswer(
        architectures=compared,
        train_test=trained,
        copies=snippets(
            "print(architectures())",
            "print(lt.cost.train_test())",
            imports="from lattend.cost.comparison.tables import architectures",
            command="\n".join(
                command(CompareCommand, **{name: True}) for name in ("architectures", "tables")
            ),
            latex=latex,
        ),
    )


TABLES = Panel("tables", "CNNs, RNNs and Transformers side by side", answer_tables)
