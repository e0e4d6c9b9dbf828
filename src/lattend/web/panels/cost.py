"""layers, cost: which layers can be priced, and the exact cost of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lattend.cli.cost import CostCommand
from lattend.recent import Recent
from lattend.web.panel import Answer, AnswerPart, Numbers, Panel, Question, Snippets
from lattend.web.snippets import call, command, python
from lattend.web.views import Formula, ReportView, formula, report_view

if TYPE_CHECKING:
    from lattend.cost.cost import Cost
    from lattend.cost.per_point import PerPoint
    from lattend.draw import Picture


LayerText = Annotated[str, Field(max_length=2000)]


class SizeLetter(AnswerPart):
    """An open size of a layer, and the number at which its slider starts."""

    name: str
    example: int


def size_letters(names: Iterable[str]) -> list[SizeLetter]:
    """The letters in the order in which they are written."""
    from lattend.rules.example_numbers import priced_number

    return [SizeLetter(name=name, example=priced_number(name)) for name in names]


@dataclass(frozen=True)
class PricedLayer:
    """The layer with all its letters, and with the numbers of those that have one."""

    open: Cost
    cost: Cost
    numbers: dict[str, int]

    @property
    def is_number(self) -> bool:
        """Whether every letter has a number."""
        return not self.cost.names


def read_layer(text: str, rule: str, numbers: Mapping[str, int]) -> PricedLayer:
    """Read a layer. Numbers of letters that it does not have are ignored."""
    from lattend.cost.reader import from_text

    mask: dict[str, Any] = {"rule": rule} if rule else {}
    layer = from_text(text, mask)
    sizes = {name: numbers[name] for name in layer.names if name in numbers}
    return PricedLayer(layer, from_text(text, {**sizes, **mask}) if sizes else layer, sizes)


def python_of_layer(text: str, rule: str, sizes: Mapping[str, int], *lines: str) -> str:
    """Python code that reads the layer and then runs these lines."""
    mask: dict[str, Any] = {"rule": rule} if rule else {}
    named = {**sizes, **mask}
    layer = call("layer = from_text", text, *([named] if named else []))
    return python(layer, *lines, imports="from lattend.cost.reader import from_text")


class CatalogueLayer(AnswerPart):
    """A layer by name, with what it takes and an example; `rule`: whether it takes an attention mask."""

    name: str
    about: str
    signature: str
    example: str
    rule: bool


class NamedQuantity(AnswerPart):
    """A quantity of a layer: its name as it is typed, and its label."""

    name: str
    label: str


class NamedModel(AnswerPart):
    """A well-known model: the fields of its config.json that determine its cost."""

    name: str
    config: dict[str, Any]


class LayersAnswer(AnswerPart):
    """The menus of the price page."""

    layers: list[CatalogueLayer]
    quantities: list[NamedQuantity]
    machines: list[str]
    models: list[NamedModel]


@lru_cache(maxsize=1)
def models() -> list[NamedModel]:
    """The models of models.toml."""
    import tomllib

    text = files("lattend.web").joinpath("models.toml").read_text(encoding="utf-8")
    configs = tomllib.loads(text)["model"]
    return [NamedModel(name=one.pop("name"), config=one) for one in configs]


def answer_layers(question: Question) -> LayersAnswer:
    """The catalogue of layers, quantities, machines and models."""
    from lattend.cost.reader import catalogue
    from lattend.cost.result import AT_NUMBERS, QUANTITIES, label
    from lattend.machines import MACHINES

    layers = [
        CatalogueLayer.view_of(entry, rule="rule" in entry.arguments)
        for entry in catalogue().entries.values()
    ]
    grow = [NamedQuantity(name=name, label=label(name)) for name in QUANTITIES if name not in AT_NUMBERS]
    return LayersAnswer(layers=layers, quantities=grow, machines=[*MACHINES], models=models())


LAYERS = Panel("layers", "What can be priced", answer_layers)


FORMULAS_DEADLINE = 2.0  # seconds for all formulas of a layer
OPEN = "executed and peak are known when every size has a number"
LONG = "other formulas take longer to write out: give some sizes numbers"

Per = Literal["", "score", "cell", "step"]


class CostQuestion(Question):
    """A layer, its attention mask where the text has none, and the numbers given so far.

    `per` asks for the price of one score, one cell or one decoding step instead of all of it.
    """

    layer: LayerText
    rule: LayerText = ""
    numbers: Numbers = Field(default_factory=dict)
    backward: bool = False
    per: Per = ""


class QuantityRow(AnswerPart):
    """A quantity: its formulas, one a column, and its numbers once every letter has one.

    A column that is None is the same as the first; `words` stand where there is no formula.
    """

    name: str
    label: str
    formulas: list[Formula | None]
    numbers: list[str]
    words: str = ""


class MachineTime(AnswerPart):
    """The lower bound on the time on a machine, and what binds it."""

    machine: str
    time: str
    binds: str
    about: str


class CostAnswer(Answer):
    """Work in columns (needed and dense, or one for each kind of point), memory, dependences, tables."""

    title: str
    letters: list[SizeLetter]
    columns: list[str]
    numbers: list[str]  # what the numbers of a row are called; [] while a letter is open
    work: list[QuantityRow]
    memory: list[QuantityRow]
    facts: list[tuple[str, str]]
    tables: list[ReportView]
    times: list[MachineTime]
    notes: list[str]


def answer_cost(question: CostQuestion) -> CostAnswer:
    """The cost of a layer, of its backward pass, or of one point."""
    layer = read_layer(question.layer, question.rule, question.numbers)
    return _of_point(question, layer) if question.per else _of_all(question, layer)


def _of_all(question: CostQuestion, layer: PricedLayer) -> CostAnswer:
    from lattend.cost.summary import by_layer, found_or_why, memory_of, within_budget, work_of
    from lattend.report.report import Report

    cost = within_budget(layer.cost.backward if question.backward else layer.cost)
    forward = not question.backward
    written = _written(question, layer, cost)
    numbers: dict[str, Any] = {}
    if layer.is_number:
        numbers = {"parameters": (cost.parameters,), **dict(work_of(cost))}
        held = {**dict(memory_of(cost)), "path": found_or_why(lambda: cost.path)} if forward else {}
        numbers |= {name: (value,) for name, value in held.items()}
    tables = [report_view(cost.parameters_by_matrix().report())] if forward else []
    tables += [report_view(Report("Layer by layer", [by_layer(cost)]))] if len(cost.parts) > 1 else []
    return CostAnswer(
        title=cost.heading,
        letters=size_letters(layer.open.names),
        columns=["needed", "dense"],
        numbers=["needed", "executed", "dense"] if layer.is_number else [],
        work=[_with_numbers(row, numbers.get(row.name, ())) for row in written.work],
        memory=[_with_numbers(row, numbers.get(row.name, ())) for row in written.memory],
        facts=_facts(cost),
        tables=tables,
        times=_times(cost) if layer.is_number else [],
        notes=[*([] if layer.is_number else [OPEN]), *([] if written.complete else [LONG])],
        late=not written.complete,
        copies=_copies(question, layer, _latex([*written.work, *written.memory])),
    )


def _of_point(question: CostQuestion, layer: PricedLayer) -> CostAnswer:
    per_point = layer.open.per(question.per)
    known = {
        name
        for cost in (*per_point.costs.values(), per_point.cache)
        if cost is not None
        for name in cost.names
    }
    sizes = {name: value for name, value in layer.numbers.items() if name in known}
    at = per_point.at(**sizes) if sizes else per_point
    complete = bool(sizes) and not any(cost.names for cost in at.costs.values())
    rows = _point_rows(per_point if complete else at)
    numbers = {row.name: [cell.text if cell else "" for cell in row.formulas] for row in _point_rows(at)}
    return CostAnswer(
        title=at.title,
        letters=size_letters(layer.open.names),
        columns=[*at.costs],
        numbers=[*at.costs] if complete else [],
        work=[row.model_copy(update={"numbers": numbers[row.name] if complete else []}) for row in rows],
        memory=[],
        facts=[],
        tables=[],
        times=[],
        notes=[*at.notes],
        copies=_copies(question, layer, _latex(rows)),
    )


def _point_rows(per_point: PerPoint) -> list[QuantityRow]:
    from lattend.cost.result import WORK, label

    shown = [name for name in WORK if not all(cost.is_nothing(name) for cost in per_point.costs.values())]
    rows = [
        _row(name, label(name), [cost.value(name) for cost in per_point.costs.values()], same=False)
        for name in shown
    ]
    if per_point.cache is not None and per_point.cache.cache != 0:
        rows.append(_row("cache", label("cache"), [per_point.cache.cache]))
    return rows


@dataclass(frozen=True)
class Written:
    """The formulas of a layer; complete, unless they took too long."""

    work: list[QuantityRow]
    memory: list[QuantityRow]
    complete: bool


KNOWN: Recent[tuple[str, str, bool], Written] = Recent(64)


def _written(question: CostQuestion, layer: PricedLayer, cost: Cost) -> Written:
    """The formulas in all letters; where only some letters have numbers, the formulas in the others."""
    from lattend.cost.summary import within_budget

    if layer.numbers and not layer.is_number:
        return _formulas(cost)
    key = (question.layer, question.rule, question.backward)
    if key in KNOWN:
        return KNOWN[key]
    parts = _formulas(within_budget(layer.open.backward if question.backward else layer.open))
    return KNOWN.find(key, lambda: parts) if parts.complete else parts


def _formulas(cost: Cost) -> Written:
    """The formulas of one quantity after another, until the time is up."""
    from lattend.sets.guard import deadlines_missed

    begun, missed = monotonic(), deadlines_missed()
    work, memory = list[QuantityRow](), list[QuantityRow]()
    for rows, row in _rows(cost, work, memory):
        rows.append(row)
        if monotonic() - begun > FORMULAS_DEADLINE:
            return Written(work, memory, complete=False)
    return Written(work, memory, complete=deadlines_missed() == missed)


def _rows(
    cost: Cost, work: list[QuantityRow], memory: list[QuantityRow]
) -> Iterator[tuple[list[QuantityRow], QuantityRow]]:
    """Each row with the list that it belongs to."""
    from lattend.cost.result import label
    from lattend.cost.summary import cache_label, found_or_why, memory_of, work_of

    yield work, _row("parameters", "parameters", [cost.parameters])
    for name, (needed, _, dense) in work_of(cost):
        yield work, _row(name, label(name), [needed, dense])
    if cost.way == "forward":
        for name, value in memory_of(cost):
            yield memory, _row(name, cache_label(cost) if name == "cache" else label(name), [value])
        path = found_or_why(lambda: cost.path)
        if path is not None:
            yield memory, _row("path", label("path"), [path])


def _row(name: str, label: str, values: list[Any], *, same: bool = True) -> QuantityRow:
    """Values are numbers, formulas, None where a letter is open, or a text that says why there is none."""
    from lattend.cost.summary import found_or_why

    words = next((value for value in values if isinstance(value, str)), "")
    if not words and values[0] is None:
        words = "known when every size has a number"
    written = words or found_or_why(lambda: [formula(value) for value in values])
    if isinstance(written, str):
        return QuantityRow(name=name, label=label, formulas=[], numbers=[], words=written)
    first, *rest = written
    others = [None if same and cell.text == first.text else cell for cell in rest]
    return QuantityRow(name=name, label=label, formulas=[first, *others], numbers=[])


def _with_numbers(row: QuantityRow, values: tuple[Any, ...]) -> QuantityRow:
    from lattend.report.numbers import format_value

    return row.model_copy(update={"numbers": [format_value(value) for value in values]})


def _facts(cost: Cost) -> list[tuple[str, str]]:
    """The dependences of a layer."""
    if cost.way == "backward" or len(cost.parts) != 1:
        return []
    layer = cost.parts[0][1]
    return [("schedule", layer.depth.schedule), ("mixes tokens", "yes" if layer.mixes_tokens else "no")]


def _times(cost: Cost) -> list[MachineTime]:
    from lattend.cost.roofline import time_of
    from lattend.machines import compared_machines
    from lattend.report.numbers import seconds

    floors = [time_of(cost, machine) for machine in compared_machines()]
    return [
        MachineTime(
            machine=floor.machine.name,
            time=seconds(floor.seconds),
            binds=floor.binds,
            about=floor.machine.about,
        )
        for floor in floors
    ]


def _copies(question: CostQuestion, layer: PricedLayer, latex: str) -> Snippets:
    expression = (
        f'layer.per("{question.per}")' if question.per else "layer.backward" if question.backward else "layer"
    )
    return Snippets(
        python=python_of_layer(question.layer, question.rule, layer.numbers, f"print({expression})"),
        command=command(
            CostCommand, question, at=layer.numbers, backward=question.backward and not question.per
        ),
        latex=latex,
    )


def _latex(rows: list[QuantityRow]) -> str:
    """The formulas of the first column."""
    from lattend.report.latex import named

    first = [(row.label, row.formulas[0]) for row in rows if row.formulas]
    return named((label, shown.latex) for label, shown in first if shown)


def cost_picture(question: CostQuestion) -> Picture:
    """Bars of the multiplies, layer by layer."""
    cost = read_layer(question.layer, question.rule, question.numbers).cost
    return (cost.backward if question.backward else cost).draw()


COST = Panel("cost", "What a layer costs", answer_cost, cost_picture)
