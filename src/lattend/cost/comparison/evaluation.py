"""Evaluated: where two amounts cross, found number by number where there is no formula to solve."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from lattend.cost.amount import Amount
from lattend.cost.comparison.claims import SignSample, claims
from lattend.cost.comparison.crossing_points import CrossingPoint
from lattend.cost.comparison.solve import CrossingCase
from lattend.counts.count import Count
from lattend.errors import DomainError, NoClosedForm
from lattend.rules.language.polynomial import Polynomial

DENSE, FAR = 4096, 40  # every number up to the first, then powers of two up to 2^40
EVALUATED_AT = f"evaluated at every number up to {DENSE:,}, and at powers of two beyond"
MOST_RUNS = 12


def numbers(amount: Amount, points: Mapping[str, Any], many: int) -> Any:
    """The amount at arrays of numbers, exactly."""
    found = amount.count()
    if not isinstance(found, Count):
        return np.full(many, found, object)
    return found.closed.values_at({name: points[name] for name in amount.names}, (many,))


def evaluated(amounts: tuple[Amount, Amount], over: str) -> tuple[CrossingCase, int]:
    """Who costs more from which number on, and at how many numbers that was evaluated."""
    chosen = [*range(DENSE + 1), *(2**power for power in range(DENSE.bit_length(), FAR + 1))]
    counts = [amount.count() for amount in amounts]
    for count in counts:
        if isinstance(count, Count):
            inside = np.broadcast_to(count.closed.domain.holds({over: np.array(chosen, object)}), len(chosen))
            chosen = [number for number, defined in zip(chosen, inside, strict=True) if defined]
    if not chosen:
        raise DomainError(f"there is no {over} at which both are defined")
    found = dict(zip(chosen, _signs(amounts, over, chosen), strict=True))
    for before, after in pairwise(chosen):
        low, high = before, after
        while found[low] != found[high] and high - low > 1:
            middle = (low + high) // 2
            (found[middle],) = _signs(amounts, over, [middle])
            low, high = (middle, high) if found[middle] == found[low] else (low, middle)
    ordered = sorted(found)
    sample = SignSample({}, ordered, [found[number] for number in ordered])
    runs = sample.runs
    ends = {end for _, *both in runs for end in both} if len(runs) <= MOST_RUNS else set[int]()
    places = [
        CrossingPoint(Polynomial.constant(end), jump=jump) for end in sorted(ends) for jump in (False, True)
    ]
    claim = next(claims(sample, places), None)
    if claim is None:
        raise NoClosedForm(f"they change places more than {MOST_RUNS} times as {over} grows")
    return CrossingCase(claim.signs, claim.places), len(ordered)


def _signs(amounts: tuple[Amount, Amount], over: str, chosen: list[int]) -> list[int]:
    kind = np.int64 if chosen[-1] < 2**31 else object
    first, second = (numbers(a, {over: np.array(chosen, kind)}, len(chosen)) for a in amounts)
    return [int(a > b) - int(a < b) for a, b in zip(first, second, strict=True)]
