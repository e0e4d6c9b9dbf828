"""Counting square by square: the oracle, and the way out where there is no closed form."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from lattend.errors import TooLarge
from lattend.rules.rule import Rule

MAX_SQUARES = 1 << 28  # seconds
CHUNK = 1 << 22  # squares looked at in one go


def enumerated(rule: Rule) -> int:
    """The number of marked squares of a complete rule, found by looking at each, some rows at a time."""
    lengths = rule.lengths
    squares = prod(lengths.values())
    _check(squares)
    if not squares:
        return 0
    first, rows = next(iter(lengths.items()))
    step = max(1, CHUNK // (squares // rows))
    ranges = {name: np.arange(length) for name, length in lengths.items()}
    blocks = (ranges | {first: np.arange(at, min(at + step, rows))} for at in range(0, rows, step))
    return sum(int(rule.marked(block).sum()) for block in blocks)


def enumerated_per(rule: Rule, places: Mapping[str, int]) -> int:
    """The number of marked squares of a complete rule at the given coordinates."""
    rule.located("position", list(places), tuple(places.values()))
    ranges = {name: np.arange(length) for name, length in rule.lengths.items() if name not in places}
    _check(prod(len(r) for r in ranges.values()))
    ranges |= {name: np.array([place]) for name, place in places.items()}
    return int(rule.marked({name: ranges[name] for name in rule.positions}).sum())


def _check(squares: int) -> None:
    if squares > MAX_SQUARES:
        raise TooLarge(f"{squares:,} squares are too many to enumerate; the limit is {MAX_SQUARES:,}")
