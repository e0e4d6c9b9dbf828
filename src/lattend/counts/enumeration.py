"""Counting square by square: the oracle, and the way out where there is no closed form."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from lattend.errors import TooLarge
from lattend.rules.axes import HEAD, HEADS
from lattend.rules.evaluate import evaluate
from lattend.rules.rule import Rule

MAX_SQUARES = 1 << 28  # a few seconds
CHUNK = 1 << 22


def enumerated(rule: Rule, values: Mapping[str, int], limit: int = MAX_SQUARES) -> int:
    """The number of marked squares, found by looking at every one, a block of queries at a time."""
    lengths = [values[HEADS]] if rule.has_heads else []
    lengths += [values[axis.queries] for axis in rule.axes] + [values[axis.keys] for axis in rule.axes]
    squares = prod(lengths)
    if squares > limit:
        raise TooLarge(f"{squares:,} squares are too many to enumerate; the limit is {limit:,}")
    if not squares:
        return 0
    queries = prod(lengths) // lengths[0]
    step = max(1, CHUNK // queries)
    total = 0
    for start in range(0, lengths[0], step):
        ranges = [np.arange(start, min(start + step, lengths[0]))] + [np.arange(size) for size in lengths[1:]]
        places = dict(zip(rule.positions, np.ix_(*ranges), strict=True))
        marked = evaluate(rule.condition, {**values, **places}, rule.data)
        total += int(np.broadcast_to(marked, [len(r) for r in ranges]).sum())
    return total


def enumerated_per(rule: Rule, values: Mapping[str, int], fixed: tuple[str, ...]) -> int:
    """The number of marked squares whose coordinates in `fixed` have the given values."""
    sizes = {HEAD: HEADS} | {axis.query: axis.queries for axis in rule.axes}
    sizes |= {axis.key: axis.keys for axis in rule.axes}
    free = [position for position in rule.positions if position not in fixed]
    lengths = [values[sizes[position]] for position in free]
    if prod(lengths) > MAX_SQUARES:
        raise TooLarge(f"{prod(lengths):,} squares are too many to enumerate; the limit is {MAX_SQUARES:,}")
    places = dict(zip(free, np.ix_(*(np.arange(size) for size in lengths)), strict=True))
    marked = evaluate(rule.condition, {**values, **places}, rule.data)
    return int(np.broadcast_to(marked, lengths).sum())
