"""Counting pair by pair: the oracle of the tests, and the method if there is no closed form."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from lattend.errors import DomainError, TooLarge
from lattend.rules.rule import Rule, check_integer

MAX_PAIRS = 1 << 28  # seconds
CHUNK = 1 << 22  # pairs looked at in one go


def enumerated(rule: Rule) -> int:
    """Returns the number of attended pairs of a complete rule by enumeration, a few rows at a time."""
    lengths, pairs = rule.lengths, rule.dense
    _check(pairs)
    if not pairs:
        return 0
    first, rows = next(iter(lengths.items()))
    step = max(1, CHUNK // (pairs // rows))
    ranges = {name: np.arange(length) for name, length in lengths.items()}
    blocks = (ranges | {first: np.arange(at, min(at + step, rows))} for at in range(0, rows, step))
    return sum(int(rule.mask_at(block).sum()) for block in blocks)


def enumerated_per(rule: Rule, positions: Mapping[str, int], first: int = 0) -> int:
    """Returns the number of attended pairs of a complete rule at these positions, counted from `first`."""
    for name, position in positions.items():
        check_integer(name, position)
        if not first <= position < rule.lengths[name] + first:
            raise DomainError(f"{name} = {position} lies outside {first} … {rule.lengths[name] - 1 + first}")
    positions = {name: position - first for name, position in positions.items()}
    ranges = {name: np.arange(length) for name, length in rule.lengths.items() if name not in positions}
    _check(prod(len(r) for r in ranges.values()))
    ranges |= {name: np.array([position]) for name, position in positions.items()}
    return int(rule.mask_at({name: ranges[name] for name in rule.positions}).sum())


def _check(pairs: int) -> None:
    if pairs > MAX_PAIRS:
        raise TooLarge(f"{pairs:,} pairs are too many to enumerate; the limit is {MAX_PAIRS:,}")
