"""Scalar depth: steps where a product is one, and a sum of r terms is a tree of ⌈log₂ r⌉."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.costs.amount import Amount
from lattend.costs.layer import Layer
from lattend.costs.statement import KINDS, Array
from lattend.counts.count import Count

if TYPE_CHECKING:
    from lattend.costs.cost import Cost


def scalar_depth(cost: Cost) -> int:
    """The depth in scalar operations, once every size has a number."""
    total = 0
    for times, layer in cost.parts:
        many = number_of_amount(times, cost) * number_of_amount(layer.depth.steps, cost)
        total += many * _unit(layer, cost)
    return total


def _unit(layer: Layer, cost: Cost) -> int:
    """The longest chain of operations in one cell: statements that read what others write, in order."""
    before: dict[Array, int] = {}
    longest = 0
    for statement in layer.statements:
        start = max((before.get(array.base, 0) for array in statement.reads), default=0)
        kind = KINDS[statement.kind]
        own = 1 if kind.forward else 0
        terms = max(number_of_amount(most, cost) for most in statement.longest) if kind.sums else 1
        done = start + own + (terms - 1).bit_length()
        before[statement.writes] = max(before.get(statement.writes, 0), done)
        longest = max(longest, done)
    return longest


def number_of_amount(amount: Amount, cost: Cost) -> int:
    """An amount at the cost's numbers; ValueError while a size is open."""
    found = amount.count()
    if isinstance(found, Count):
        found = found.at(**{name: value for name, value in cost.values.items() if name in amount.names})
    if not isinstance(found, int):
        raise ValueError("a size has no number yet")
    return found


def scalar_depth_words(cost: Cost) -> str:
    """The number, or how it is made up where a size is open."""
    try:
        return f"{scalar_depth(cost):,}"
    except ValueError:
        return "known when every size has a number"
