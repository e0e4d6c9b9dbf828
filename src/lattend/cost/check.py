"""A cost against a run of plain code, and against a formula that someone claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from itertools import product
from typing import TYPE_CHECKING, Any

from lattend.cost.layer import OPERATIONS, ReferenceRun
from lattend.cost.reference.layers import PlainLayer, plain_layer
from lattend.cost.result import label, on_one_line
from lattend.cost.sizes import number_of, untied
from lattend.counts.claim import judge_number
from lattend.counts.verdict import OrderVerdict
from lattend.errors import LattendError, NamingError, TooLarge
from lattend.report.numbers import format_value
from lattend.report.report import Printed, Report
from lattend.report.table import Table

if TYPE_CHECKING:
    from lattend.cost.amount import Amount
    from lattend.cost.cost import Cost
    from lattend.cost.sizes import Recipe
    from lattend.counts.count import Count
    from lattend.counts.verdict import Verdict

MOST = 1_000_000  # numbers and operations of a run, forward and back: a few seconds
BACK = "backward"
WORK = (*OPERATIONS, *(f"{BACK} {op}" for op in OPERATIONS))


@dataclass(frozen=True)
class CheckedQuantity:
    """One quantity: the formula, its number at the sizes of the run, and what the run counted."""

    quantity: str
    formula: Count | int
    number: int
    counted: int

    @property
    def equal(self) -> bool:
        return self.number == self.counted

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as it is printed."""
        verdict = "equal" if self.equal else "differs"
        return self.quantity, format_value(self.formula), f"{self.number:,}", f"{self.counted:,}", verdict


@dataclass(frozen=True, repr=False)
class CostCheck(Printed):
    """The quantities of a cost beside those that a run counted; true if all are equal."""

    name: str
    values: Mapping[str, int]
    rows: tuple[CheckedQuantity, ...]

    def __bool__(self) -> bool:
        return all(row.equal for row in self.rows)

    @property
    def heading(self) -> str:
        """`rnn2d at n = 4, run on numbers that count themselves`."""
        at = ", ".join(f"{name} = {value:,}" for name, value in self.values.items())
        return f"{self.name}{' at ' + at if at else ''}, run on numbers that count themselves"

    def report(self) -> Report:
        """The printed table, with formulas only where there are any."""
        head, rows = ("", "formula", "number", "counted", ""), [row.cells for row in self.rows]
        if all(isinstance(row.formula, int) for row in self.rows):
            head, rows = (head[0], *head[2:]), [(row[0], *row[2:]) for row in rows]
        return Report(self.heading, [Table(head, rows)])

    def __repr__(self) -> str:
        return f"<CostCheck of {self.heading}: {'all equal' if self else 'some differ'}>"

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        rows = [{**vars(row), "formula": str(row.formula), "equal": row.equal} for row in self.rows]
        return {"layer": self.name, "at": dict(self.values), "equal": bool(self), "rows": rows}


def check(cost: Cost, values: Mapping[str, int]) -> CostCheck:
    """Compares the needed work, forward and backward, with a run at these sizes."""
    if not cost.runs:
        raise NamingError(
            f"{cost.name} has no plain code to run; every layer that lt.cost names has it, and sums of these"
        )
    needed = cost.needed.forward
    known = needed.at(**values)
    if known.names:
        missing = ", ".join(f"{name}=…" for name in known.names)
        raise NamingError(f"a run needs a number for every size: give {missing}")
    amounts, bare = _amounts(needed), replace(needed, values={})
    predicted = {name: known.number(amount) for name, amount in amounts.items()}
    runs = [(known.number(times), _plain(run, known.values)) for times, run in cost.runs]
    work = sum(predicted[name] for name in WORK) + sum(plain.size for _, plain in runs)
    if work > MOST:
        raise TooLarge(
            f"{cost.name} has {work:,} numbers and operations at these sizes, and a run at most {MOST:,}; "
            "give smaller sizes"
        )
    counted = dict.fromkeys(predicted, 0)
    for times, plain in runs:
        for name, number in _counted(plain).items():
            counted[name] += times * number
    rows = (
        CheckedQuantity(name, bare.number_or_formula(amount, name), predicted[name], counted[name])
        for name, amount in amounts.items()
    )
    done = tuple(row for row in rows if row.number or row.counted)
    fixed = {name: number_of(size) for _, run in cost.runs for name, size in run.sizes.items()}
    sizes = {name: number for name, number in fixed.items() if number is not None and number > 1}
    return CostCheck(cost.name, sizes | dict(known.values), done)


def _amounts(cost: Cost) -> dict[str, Amount]:
    """The amounts that are compared, by the name of their row."""
    back = cost.backward
    return {
        "parameters": cost.amount("parameters"),
        label("depth"): cost.amount("depth"),
        **{op: cost.amount(op) for op in OPERATIONS},
        **{f"{BACK} {op}": back.amount(op) for op in OPERATIONS},
    }


def _counted(plain: PlainLayer) -> dict[str, int]:
    """The same of one run."""
    ran = plain.run()
    return {
        "parameters": ran.parameters,
        label("depth"): ran.depth,
        **{op: getattr(ran.forward, op) for op in OPERATIONS},
        **{f"{BACK} {op}": getattr(ran.backward, op) for op in OPERATIONS},
    }


def _plain(run: ReferenceRun, values: Mapping[str, int]) -> PlainLayer:
    sizes = {name: number_of(size.at(values)) for name, size in run.sizes.items()}
    return plain_layer(run.name, **sizes, **run.options)


def judge_cost(
    cost: Cost,
    quantity: str,
    formula: str,
    assuming: str | None,
    rename: Mapping[str, str] | None,
    exact: bool,
) -> Verdict:
    """The verdict on a formula for a quantity, with what else the formula is where it is not that."""
    apart, text = untied(cost, formula, rename or ())
    verdict = _judged(apart, quantity, formula, assuming, rename, exact)
    if not verdict.holds and not isinstance(verdict, OrderVerdict):
        others = _other_columns(apart, quantity, formula, assuming, rename)
        verdict = replace(verdict, instead=(*verdict.instead, *others))
    return replace(verdict, readings=(*text, *verdict.readings))


def _judged(
    cost: Cost,
    quantity: str,
    formula: str,
    assuming: str | None,
    rename: Mapping[str, str] | None,
    exact: bool,
) -> Verdict:
    count = cost.formula(quantity)
    numbers = {**_arguments(cost), **cost.values}
    if isinstance(count, int):
        return judge_number(count, formula, numbers, rename, (assuming,) if assuming else (), exact=exact)
    named = {name: str(value) for name, value in numbers.items() if name not in {*count.names, *count.values}}
    verdict = count.claim(formula, assuming=assuming, rename={**named, **(rename or {})}, exact=exact)
    shown = () if verdict.counterexample is None else (f"exactly {on_one_line(str(count))}",)
    return replace(verdict, readings=(*verdict.readings, *shown))


def _arguments(cost: Cost) -> dict[str, int]:
    """The numbers that its layers were made with and have not by themselves, by name, where all agree."""
    numbers = [
        (name, value)
        for _, recipe in cost.recipes
        for name, value in recipe.arguments.items()
        if type(value) is int and value != _default(recipe, name)
    ]
    return {name: value for name, value in numbers if all(v == value for n, v in numbers if n == name)}


def _default(recipe: Recipe, name: str) -> object:
    """The default of an argument of a layer."""
    parameter = signature(recipe.make).parameters.get(name)
    return None if parameter is None else parameter.default


def _other_columns(
    cost: Cost, quantity: str, formula: str, assuming: str | None, rename: Mapping[str, str] | None
) -> Iterator[tuple[str, Verdict]]:
    """The first other column, or the other pass, that a formula is."""
    mine = _called(cost.column, cost.way)
    for way, column in product(("forward", "backward"), ("needed", "executed", "dense")):
        if (column, way) == (cost.column, cost.way):
            continue
        with suppress(LattendError):
            other = cost.changed(column=column, way=way)
            verdict = _judged(other, quantity, formula, assuming, rename, exact=True)
            if verdict.holds:
                yield f"this is the {_called(column, way)} count, not the {mine} one", verdict
                return


def _called(column: str, way: str) -> str:
    return column if way == "forward" else f"{column} backward"
