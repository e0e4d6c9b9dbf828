"""Bounds of a condition on boxes of positions: whether it holds for all pairs or for none.

Both may be unknown, and what is said is always so: the bounds come from interval arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.rules.axes import POSITIONS
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate_term
from lattend.rules.language.expr import (
    And,
    Arith,
    Compare,
    Condition,
    Lookup,
    Name,
    Node,
    Not,
    Num,
    Or,
    Truth,
)
from lattend.rules.language.intervals import OPERATIONS, Ends, Interval, least
from lattend.rules.language.linear import gap_of

Bools = NDArray[np.bool_]


class Held(NamedTuple):
    """For each box, whether a condition surely holds for all its pairs, and whether surely for none."""

    every: Bools | bool
    none: Bools | bool


class Bounds:
    """Bounds of one condition without open parameters, with its data, on boxes of positions."""

    def __init__(self, condition: Condition, data: Mapping[str, NDArray[Any]]) -> None:
        self.condition = condition
        self.ranges = {
            node: Ranges.of(node, data) for node in expr.walk(condition) if isinstance(node, Lookup)
        }

    def held(self, boxes: Mapping[str, Interval]) -> Held:
        """Returns for which boxes the condition holds everywhere, and for which nowhere."""

        def step(node: Node, parts: Sequence[Any]) -> Any:
            match node:
                case Truth():
                    return Held(node.value, not node.value)
                case Num():
                    return Interval(node.value, node.value)
                case Name():
                    return boxes[node.name]
                case Lookup():
                    return self.ranges[node].between(parts)
                case Arith():
                    return OPERATIONS[node.op](*parts)
                case Compare():
                    return _compared(node, parts[0], parts[1], boxes)
                case And():
                    return Held(_all([part.every for part in parts]), _any([part.none for part in parts]))
                case Or():
                    return Held(_any([part.every for part in parts]), _all([part.none for part in parts]))
                case Not():
                    return Held(parts[0].none, parts[0].every)

        return expr.fold(self.condition, step)


def _all(parts: Sequence[Bools | bool]) -> Bools | bool:
    return reduce(lambda a, b: a & b, parts)


def _any(parts: Sequence[Bools | bool]) -> Bools | bool:
    return reduce(lambda a, b: a | b, parts)


def _compared(node: Compare, left: Interval, right: Interval, boxes: Mapping[str, Interval]) -> Held:
    low, high = left.low - right.high, left.high - right.low  # of left - right
    gap = None if expr.arrays(node) else gap_of(node, {})
    if gap is not None:  # names on both sides may cancel
        low, high = np.maximum(low, least(gap, boxes)), np.minimum(high, -least(gap.times(-1), boxes))
    match node.op:
        case "<=":
            return Held(high <= 0, low > 0)
        case "<":
            return Held(high < 0, low >= 0)
        case ">=":
            return Held(low >= 0, high < 0)
        case ">":
            return Held(low > 0, high <= 0)
        case "==":
            return Held((low == 0) & (high == 0), (low > 0) | (high < 0))
        case "!=":
            return Held((low > 0) | (high < 0), (low == 0) & (high == 0))


class Ranges:
    """Minimum and maximum of an array between two indices, from tables over 1, 2, 4, … entries."""

    def __init__(self, line: NDArray[np.int64], moving: int | None) -> None:
        self.moving = moving  # which index has positions; None where several have
        self.lows: list[NDArray[np.int64]] = [line]
        self.highs: list[NDArray[np.int64]] = [line]
        while len(self.lows[-1]) > 1:
            lows, highs = self.lows[-1], self.highs[-1]
            starts = np.arange(0, len(lows), 2)
            self.lows.append(np.minimum.reduceat(lows, starts).astype(np.int64))
            self.highs.append(np.maximum.reduceat(highs, starts).astype(np.int64))

    @staticmethod
    def of(node: Lookup, data: Mapping[str, NDArray[Any]]) -> Ranges:
        array = np.asarray(data[node.array]).astype(np.int64)
        moving = [at for at, index in enumerate(node.indices) if POSITIONS & {*expr.names(index)}]
        if len(moving) != 1:
            return Ranges(np.array([array.min(), array.max()]) if array.size else np.zeros(1, np.int64), None)
        indices = tuple(
            slice(None) if at == moving[0] else evaluate_term(index, {}, data)
            for at, index in enumerate(node.indices)
        )
        return Ranges(array[indices], moving[0])

    def between(self, indices: Sequence[Interval]) -> Interval:
        """Returns bounds of the entries at these indices, which may be wider than necessary."""
        if self.moving is None:
            return Interval(int(self.lows[-1][0]), int(self.highs[-1][0]))
        first, last = (_clipped(end, len(self.lows[0])) for end in indices[self.moving])
        first, last = np.broadcast_arrays(first, last)
        level = np.ceil(np.log2(last - first + 1)).astype(np.int64)
        low, high = np.empty(first.shape, np.int64), np.empty(first.shape, np.int64)
        sizes: list[int] = np.unique(level).tolist()
        for size in sizes:
            exact = level == size
            a, b = first[exact] >> size, last[exact] >> size
            low[exact] = np.minimum(self.lows[size][a], self.lows[size][b])
            high[exact] = np.maximum(self.highs[size][a], self.highs[size][b])
        return Interval(low, high)


def _clipped(end: Ends, length: int) -> NDArray[np.int64]:
    return np.clip(np.asarray(end, np.int64), 0, length - 1)
