"""Progressions: keys at numbers, for all shards at once, as pieces of arithmetic progressions.

Keys between two places whose remainders lie in windows: those that 1,024 shards reach are a few arrays,
whatever n is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from math import inf, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import NoClosedForm, TooLarge

MOST = 1 << 22  # remainders of all shards, or spans, that are held at once
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Progressions:
    """Keys low <= k < high with (k - first) % modulus < size: a row a shard, and last a column a window.

    What is the same for all shards may have one row. No key lies in two windows.

    >>> some = Progressions(4, *(np.array([[x]]) for x in (0, 2, 1, 12)))
    >>> some.between(np.array([0]), np.array([10])).tolist()  # 1, 4, 5, 8, 9
    [5]
    """

    modulus: int
    first: Ints
    size: Ints
    low: Ints
    high: Ints

    @property
    def windows(self) -> int:
        return self.first.shape[-1]

    @property
    def _sides(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self.first, self.size, self.low, self.high

    def between(self, first: Any, end: Any) -> Ints:
        """How many keys of each shard lie in first … end - 1."""
        low = np.maximum(self.low, np.asarray(first)[..., None])
        high = np.maximum(np.minimum(self.high, np.asarray(end)[..., None]), low)
        found = high - low if self.modulus == 1 else self._below(high) - self._below(low)
        return found[..., 0] if self.windows == 1 else found.sum(-1)

    def _below(self, places: Ints) -> Ints:
        """How many positions of each window lie below places, from its first one on."""
        whole, rest = np.divmod(places - self.first, self.modulus)
        return whole * self.size + np.minimum(rest, self.size)

    def finer(self, modulus: int) -> Progressions:
        """The same keys by windows modulo a multiple."""
        times = modulus // self.modulus
        if times == 1:
            return self
        if self.modulus == 1:  # all between low and high
            return Progressions(modulus, self.first, self.size * modulus, self.low, self.high)
        check_held(times * self.low.size)
        first, size, low, high = (np.concatenate([side] * times, -1) for side in self._sides)
        steps = np.repeat(self.modulus * np.arange(times), self.windows)
        return Progressions(modulus, first + steps, size, low, high)

    def __and__(self, other: Progressions) -> Progressions:
        if not (self.windows and other.windows):
            return other if self.windows else self
        modulus = lcm(self.modulus, other.modulus)
        a, b = self.finer(modulus), other.finer(modulus)
        if 1 in (self.modulus, other.modulus):  # the windows are those of one
            windows = b if self.modulus == 1 else a
            low, high = np.maximum(a.low, b.low), np.minimum(a.high, b.high)
            return occurring(modulus, windows.first, windows.size, low, high)
        i, j = _meeting(a, b)
        first, size, low, high = (side[..., i] for side in a._sides)
        other_first, other_size, other_low, other_high = (side[..., j] for side in b._sides)
        low, high = np.maximum(low, other_low), np.minimum(high, other_high)
        gap = (other_first - first) % modulus  # from one window on to the other, which may reach round to it
        ahead = np.minimum(size, gap + other_size) - gap
        again = np.minimum(size, gap + other_size - modulus)
        parts = (other_first, first), (ahead, again), (low, low), (high, high)
        sides = (np.concatenate(np.broadcast_arrays(*some), -1) for some in parts)
        return occurring(modulus, *sides)

    def spans_in(self, shard: int, first: int, end: int) -> tuple[Ints, Ints]:
        """The keys of one shard in first … end - 1, as spans in no order that may touch."""
        one = self.of([shard])
        low, high = np.maximum(one.low, first), np.minimum(one.high, end)
        _, begins, ends = Progressions(self.modulus, one.first, one.size, low, high)._spans(MOST)
        return begins, ends

    def spans(self) -> tuple[Ints, Ints, Ints]:
        """All of them as spans: which shards, and where each begins and ends."""
        return self._spans(inf)

    def _spans(self, most: float) -> tuple[Ints, Ints, Ints]:
        first, size, low, high = np.broadcast_arrays(*self._sides)
        whole = size == self.modulus
        begin, end = -((first + size - 1 - low) // self.modulus), -((first - high) // self.modulus)
        counts = np.where(whole, 1, np.maximum(end - begin, 0)) * ((low < high) & (size > 0))
        if counts.sum() > most:
            raise TooLarge(f"the keys are {counts.sum():,} spans, more than {most:,}")
        place = np.repeat(np.arange(counts.size), counts.ravel())
        nth = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts.ravel(), counts.ravel())
        first, size, low, high, whole, begin = (
            side.ravel()[place] for side in (first, size, low, high, whole, begin)
        )
        start = np.where(whole, low, first + self.modulus * (begin + nth))
        stop = np.where(whole, high, start + size)
        return place // self.windows, np.maximum(start, low), np.minimum(stop, high)

    def rows(self, shards: Sequence[int]) -> Progressions:
        """Those of some shards, with an axis of their own before whatever they are counted in."""
        found = occurring(self.modulus, *self.of(shards)._sides)
        return Progressions(self.modulus, *(side[:, None] for side in found._sides))

    def of(self, shards: Sequence[int] | Ints) -> Progressions:
        """Those of some shards, or of each of these numbers of shards."""
        sides = (side if len(side) == 1 else side[shards] for side in self._sides)
        return Progressions(self.modulus, *sides)


def occurring(modulus: int, first: Ints, size: Ints, low: Ints, high: Ints) -> Progressions:
    """Without the windows in which no shard has a key."""
    size = np.maximum(size, 0)
    some = np.logical_and(low < high, size > 0).any(0)
    if some.all():
        return Progressions(modulus, first, size, low, high)
    return Progressions(modulus, *(side[..., some] for side in (first, size, low, high)))


def _meeting(a: Progressions, b: Progressions) -> tuple[Ints, Ints]:
    """Which windows of one may share keys with which of the other, both of one modulus."""
    if all(len(one.first) == 1 and one.size.max(initial=0) <= 1 for one in (a, b)):  # single remainders
        places = (one.first[0] % one.modulus for one in (a, b))
        _, i, j = np.intersect1d(*places, assume_unique=True, return_indices=True)
        return i, j
    check_held(2 * a.windows * b.windows * max(len(a.low), len(b.low)))
    i, j = np.indices((a.windows, b.windows)).reshape(2, -1)
    return i, j


def check_held(held: int) -> None:
    """Refuse tables that would not fit."""
    if held > MOST:
        raise NoClosedForm(f"its keys have {held:,} remainders, more than {MOST:,}")


Along = Sequence[Progressions]  # of one axis: clauses, no key in two of them
Product = Sequence[Along]  # of each axis


@dataclass(frozen=True)
class Union:
    """The keys that lie in at least one of several products, by inclusion and exclusion."""

    terms: Sequence[tuple[int, Product]]  # signs, and what some of the products share

    @staticmethod
    def of(parts: Sequence[Product]) -> Union:
        """The union of these products."""
        terms: list[tuple[int, Product]] = []
        for size in range(1, len(parts) + 1):
            for some in combinations(parts, size):
                shared = [[*reduce(_common, axis)] for axis in zip(*some, strict=True)]
                if all(shared):  # otherwise no shard has a key in all of them
                    terms.append((-((-1) ** size), shared))
        return Union(terms)

    def rows(self, shards: Sequence[int]) -> Union:
        """Those of some shards, with an axis of their own before whatever they are counted in."""
        return Union(
            [(sign, [[one.rows(shards) for one in axis] for axis in term]) for sign, term in self.terms]
        )

    def between(self, box: Sequence[tuple[Any, Any]]) -> Any:
        """How many keys of a box each shard has."""
        total: Any = 0
        for sign, term in self.terms:
            found: Any = sign
            for clauses, (first, end) in zip(term, box, strict=True):
                found = found * sum(one.between(first, end) for one in clauses)
            total = total + found
        return total


def _common(left: Along, right: Along) -> Along:
    shared = (a & b for a, b in product(left, right))
    return [one for one in shared if one.windows]
