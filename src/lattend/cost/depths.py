"""Scalar depth: steps where a product is one, and a sum of r terms is a tree of ⌈log₂ r⌉."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.cost.layer import Layer
from lattend.cost.statement import KINDS, Array

if TYPE_CHECKING:
    from lattend.cost.cost import Cost


def scalar_depth(cost: Cost) -> int:
    """The depth in scalar operations, once every size has a number."""
    total = 0
    for times, layer in cost.parts:
        many = cost.number(times) * cost.number(layer.depth.steps)
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
        terms = max(cost.number(most) for most in statement.longest) if kind.sums else 1
        done = start + own + (terms - 1).bit_length()
        before[statement.writes] = max(before.get(statement.writes, 0), done)
        longest = max(longest, done)
    return longest
