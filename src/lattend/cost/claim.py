"""Claims about a cost: whether a formula is the quantity, or else another column of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from itertools import product
from typing import TYPE_CHECKING

from lattend.cost.recipe import untied
from lattend.cost.result import on_one_line
from lattend.counts.claim import judge_number
from lattend.counts.verdict import OrderVerdict
from lattend.errors import LattendError

if TYPE_CHECKING:
    from lattend.cost.cost import Cost
    from lattend.cost.recipe import Recipe
    from lattend.counts.verdict import Verdict


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
    """What an argument is where a layer is made without it."""
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
