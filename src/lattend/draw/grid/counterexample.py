"""The attended pairs of a rule where a claim about their number fails."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from lattend.counts.verdict import Counterexample
from lattend.draw.grid.panel import Bools
from lattend.draw.grid.view import flat_mask
from lattend.rules.rule import Rule


class CounterexamplePairs(NamedTuple):
    """A mask of [queries, keys] at these numbers; of a claim about one query or key, which row or column."""

    numbers: dict[str, int]
    mask: Bools
    row: int | None
    column: int | None


def numbers_for(rule: Rule, example: Counterexample) -> dict[str, int]:
    """The sizes and parameters of the counterexample, without positions."""
    return {name: value for name, value in example.values.items() if name in rule.free}


def counterexample_pairs(
    rule: Rule, example: Counterexample, first: int = 0, longest: int = 32
) -> CounterexamplePairs | None:
    """The pairs there, positions told from `first` on; None of heads, and beyond `longest` positions a side.

    >>> from lattend.rules.reader import rule
    >>> causal = rule("k <= q")
    >>> found = causal.count(per="query").claim("q").counterexample  # query 0 has 1 key
    >>> counterexample_pairs(causal, found)[1:3]
    (array([[ True]]), 0)
    """
    numbers = numbers_for(rule, example)
    bound = rule.at(**numbers)
    sides = zip(*((axis.queries, axis.keys) for axis in rule.axes), strict=True)
    lengths = [prod(bound.values.get(size, longest + 1) for size in side) for side in sides]
    if rule.has_heads or max(lengths) > longest:
        return None
    axis, places = rule.axes[0], example.values if len(rule.axes) == 1 else {}
    row, column = (places[name] - first if name in places else None for name in (axis.query, axis.key))
    return CounterexamplePairs(numbers, flat_mask(bound), row, column)
