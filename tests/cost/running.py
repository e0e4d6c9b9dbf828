"""A layer run on numbers that count, and the cost that lt.cost gives it, quantity by quantity."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import lattend as lt
from lattend.cost.reference import layers
from lattend.cost.reference.shapes import Shape, Shapes

one = layers.one
OPERATIONS = ("multiplies", "adds", "exponentials", "divisions", "functions")
Price: TypeAlias = dict[str, Any]  # "parameters", "depth", the operations, and "backward adds" and so on


def run(layer: Callable[..., Any], weights: Shapes, *inputs: Shape) -> Price:
    """What a layer does, called with inputs of these shapes and then its weights; all outputs are used."""
    ran = layers.run(layer, weights, *inputs)
    return {"parameters": ran.parameters, "depth": ran.depth} | _both_ways(ran.forward, ran.backward)


def check(result: Price, name: str, sizes: dict[str, int], **options: Any) -> None:
    """The cost of a layer is what a run found: of these sizes, and as formulas that are given them after."""
    check_numbers(result, getattr(lt.cost, name)(**sizes, **options))
    formulas = _formulas(name, **{size: size for size in sizes}, **options)
    _equal({quantity: _value(formula, sizes) for quantity, formula in formulas.items()}, result)


def check_numbers(result: Price, cost: Any) -> None:
    """The same for a cost that has all its sizes."""
    _equal(_price(cost), result)


def check_dense(result: Price, cost: Any) -> None:
    """The dense column is what a run found that does every product, also those not needed."""
    _equal(_price(cost.dense), {name: result[name] for name in OPERATIONS})


def _equal(said: Price, result: Price) -> None:
    wrong = [
        f"{name}: {said[name]}, in the run {result[name]}" for name in result if said[name] != result[name]
    ]
    assert not wrong, "; ".join(wrong)


@cache
def _formulas(name: str, **options: Any) -> Price:
    """Every quantity of a layer whose sizes are symbols, made once."""
    return _price(getattr(lt.cost, name)(**options))


def _value(formula: Any, sizes: dict[str, int]) -> int:
    if isinstance(formula, int):
        return formula
    return formula.at(**{name: sizes[name] for name in formula.names})


def _price(cost: Any) -> Price:
    return {"parameters": cost.parameters, "depth": cost.depth} | _both_ways(cost, cost.backward)


def _both_ways(forward: Any, backward: Any) -> Price:
    result = {name: getattr(forward, name) for name in OPERATIONS}
    return result | {f"backward {name}": getattr(backward, name) for name in OPERATIONS}
