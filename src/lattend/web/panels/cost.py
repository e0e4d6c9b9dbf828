"""cost: the exact price of a layer: formulas in its sizes, numbers where they have some."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from lattend.web.copies import command
from lattend.web.costs import LayerText, PricedLayer, SizeLetter, python_of_layer, read_layer, size_letters
from lattend.web.formulas import Formula, formula
from lattend.web.panel import Answer, Copies, Numbers, Panel, Question
from lattend.web.reports import ReportView, view

if TYPE_CHECKING:
    from lattend.cost.cost import Cost
    from lattend.cost.per_point import PerPoint
    from lattend.draw import Picture

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


class QuantityRow(BaseModel):
    """A quantity: its formulas, one a column, and its numbers once every letter has one.

    A column that is None is the same as the first; `words` stand where there is no formula.
    """

    name: str
    label: str
    formulas: list[Formula | None]
    numbers: list[str]
    words: str = ""


class MachineTime(BaseModel):
    """The least time on a machine, and what it is bound by."""

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


def answer(question: CostQuestion) -> CostAnswer:
    """The price of the layer, of its backward pass, or of one point."""
    layer = read_layer(question.layer, question.rule, question.numbers)
    return _of_point(question, layer) if question.per else _of_all(question, layer)


def _of_all(question: CostQuestion, layer: PricedLayer) -> CostAnswer:
    from lattend.cost.summary import by_layer, memory_of, within_budget, work_of
    from lattend.report.report import Report

    whole, cost = (one.backward if question.backward else one for one in (layer.open, layer.cost))
    cost = within_budget(cost)
    at = layer.is_number and bool(layer.given)
    as_typed = (question.layer, question.rule)
    shown = _formulas(*as_typed, question.backward) if at or not layer.given else _rows(cost)
    numbers = {"parameters": (cost.parameters,), **work_of(cost)} if layer.is_number else {}
    forward = not question.backward
    memory = [] if not forward else _memory(*as_typed) if at or not layer.given else _memory_rows(cost)
    held = memory_of(cost) | {"path": cost.path} if forward and layer.is_number else {}
    tables = [view(cost.parameters_by_matrix().report())] if forward else []
    tables += [view(Report("Layer by layer", [by_layer(cost)]))] if len(cost.parts) > 1 else []
    return CostAnswer(
        title=whole.heading if not at else cost.heading,
        letters=size_letters(layer.open.names),
        columns=["needed", "dense"],
        numbers=["needed", "executed", "dense"] if layer.is_number else [],
        work=[_with_numbers(row, numbers.get(row.name, ())) for row in shown],
        memory=[
            _with_numbers(row, (held[row.name],) if row.name in held else ()) for row in memory if forward
        ],
        facts=_facts(cost),
        tables=tables,
        times=_times(cost) if layer.is_number else [],
        notes=[] if layer.is_number else ["executed and peak are known when every size has a number"],
        copies=_copies(question, layer, _latex(shown)),
    )


def _of_point(question: CostQuestion, layer: PricedLayer) -> CostAnswer:
    found = layer.open.per(question.per)
    known = {name for cost in (*found.costs.values(), found.cache) if cost is not None for name in cost.names}
    given = {name: value for name, value in layer.given.items() if name in known}
    at = found.at(**given) if given else found
    complete = bool(given) and not any(cost.names for cost in at.costs.values())
    rows = _point_rows(found if complete else at)
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


def _point_rows(found: PerPoint) -> list[QuantityRow]:
    from lattend.cost.quantities import WORK, label

    shown = [name for name in WORK if not all(cost.is_nothing(name) for cost in found.costs.values())]
    rows = [
        _row(name, label(name), [cost.value(name) for cost in found.costs.values()], same=False)
        for name in shown
    ]
    if found.cache is not None and found.cache.cache != 0:
        rows.append(_row("cache", label("cache"), [found.cache.cache]))
    return rows


@lru_cache(maxsize=64)
def _formulas(layer: str, rule: str, backward: bool) -> list[QuantityRow]:
    """The formulas of a layer in all its letters, which stay as its numbers change."""
    from lattend.cost.summary import within_budget

    whole = within_budget(read_layer(layer, rule, {}).open)
    return _rows(whole.backward if backward else whole)


@lru_cache(maxsize=64)
def _memory(layer: str, rule: str) -> list[QuantityRow]:
    from lattend.cost.summary import within_budget

    return _memory_rows(within_budget(read_layer(layer, rule, {}).open))


def _rows(cost: Cost) -> list[QuantityRow]:
    from lattend.cost.quantities import label
    from lattend.cost.summary import work_of

    rows = [_row("parameters", "parameters", [cost.parameters])]
    for name, (needed, _, dense) in work_of(cost).items():
        rows.append(_row(name, label(name), [needed, dense]))
    return rows


def _memory_rows(cost: Cost) -> list[QuantityRow]:
    from lattend.cost.quantities import label
    from lattend.cost.summary import cache_label, memory_of

    called = {"cache": cache_label(cost)}
    found = memory_of(cost)
    found |= {} if cost.path is None else {"path": cost.path}
    return [_row(name, called.get(name, label(name)), [value]) for name, value in found.items()]


def _row(name: str, label: str, values: list[Any], *, same: bool = True) -> QuantityRow:
    """Values are numbers, formulas, None where a letter is open, or a text that says why there is none."""
    words = next((value for value in values if isinstance(value, str)), "")
    if words or values[0] is None:
        words = words or "known when every size has a number"
        return QuantityRow(name=name, label=label, formulas=[], numbers=[], words=words)
    written = [formula(value) for value in values]
    first, *rest = written
    others = [None if same and cell.text == first.text else cell for cell in rest]
    return QuantityRow(name=name, label=label, formulas=[first, *others], numbers=[])


def _with_numbers(row: QuantityRow, values: tuple[Any, ...]) -> QuantityRow:
    from lattend.report.numbers import format_value

    return row.model_copy(update={"numbers": [format_value(value) for value in values]})


def _facts(cost: Cost) -> list[tuple[str, str]]:
    """What depends on what, of one layer."""
    if cost.way == "backward" or len(cost.parts) != 1:
        return []
    layer = cost.parts[0][1]
    return [("schedule", layer.depth.schedule), ("mixes tokens", "yes" if layer.mixes_tokens else "no")]


def _times(cost: Cost) -> list[MachineTime]:
    from lattend.cost.roofline import time_of
    from lattend.machines import MACHINES
    from lattend.report.numbers import seconds

    floors = [time_of(cost, machine) for machine in MACHINES.values()]
    return [
        MachineTime(
            machine=floor.machine.name,
            time=seconds(floor.seconds),
            binds=floor.binds,
            about=floor.machine.about,
        )
        for floor in floors
    ]


def _copies(question: CostQuestion, layer: PricedLayer, latex: str) -> Copies:
    asked = (
        f'layer.per("{question.per}")' if question.per else "layer.backward" if question.backward else "layer"
    )
    return Copies(
        python=python_of_layer(question.layer, question.rule, layer.given, f"print({asked})"),
        command=command(
            "cost",
            question.layer,
            at=layer.given,
            rule=question.rule,
            per=question.per,
            backward=question.backward and not question.per,
        ),
        latex=latex,
    )


def _latex(rows: list[QuantityRow]) -> str:
    """The multiplies of the first column."""
    return next((row.formulas[0].latex for row in rows if row.name == "multiplies" and row.formulas[0]), "")


def picture(question: CostQuestion) -> Picture:
    """Bars of the multiplies, layer by layer."""
    cost = read_layer(question.layer, question.rule, question.numbers).cost
    return (cost.backward if question.backward else cost).draw()


PANEL = Panel("cost", "What a layer costs", CostQuestion, CostAnswer, answer, picture)
