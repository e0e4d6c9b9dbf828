"""Progressions: keys at numbers, for all shards at once, as pieces of arithmetic progressions.

A clause of conditions on a key is, for each remainder of the key modulo some number, an interval of its
quotient. So the keys that 1,024 shards reach are a few arrays, whatever n is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import NoClosedForm, TooLarge
from lattend.rules.language.linear import Atom, Linear, Quotient, Remainder, atom_names
from lattend.sets.region import Bound

MOST = 1 << 22  # remainders of all shards that are held at once
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Progressions:
    """Keys `modulus * i + remainder` with low <= i < high: a row a shard, and last a column a remainder.

    >>> some = Progressions(4, np.array([0, 1]), np.array([[0, 1]]), np.array([[3, 3]]))
    >>> some.between(np.array([0]), np.array([12])).tolist()  # 0, 4, 8 and 5, 9
    [5]
    """

    modulus: int
    remainders: Ints
    low: Ints
    high: Ints

    def between(self, first: Any, end: Any) -> Ints:
        """How many keys of each shard lie in first … end - 1."""
        low, high = (self._steps(at) for at in (first, end))
        return np.maximum(np.minimum(self.high, high) - np.maximum(self.low, low), 0).sum(-1)

    def _steps(self, at: Any) -> Ints:
        """How many keys of each remainder lie below places."""
        whole, rest = np.divmod(np.asarray(at), self.modulus)
        return whole[..., None] + (rest[..., None] > self.remainders)

    def finer(self, modulus: int) -> Progressions:
        """The same keys by their remainders modulo a multiple."""
        times = modulus // self.modulus
        if times == 1:
            return self
        _check(times * self.low.size)
        steps = np.repeat(np.arange(times), len(self.remainders))
        low, high = (
            -((steps - np.concatenate([side] * times, -1)) // times) for side in (self.low, self.high)
        )
        return Progressions(modulus, np.tile(self.remainders, times) + self.modulus * steps, low, high)

    def __and__(self, other: Progressions) -> Progressions:
        modulus = lcm(self.modulus, other.modulus)
        if modulus == 1:
            low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
            return _occurring(1, self.remainders, low, high)
        a, b = self.finer(modulus), other.finer(modulus)
        both, i, j = np.intersect1d(a.remainders, b.remainders, assume_unique=True, return_indices=True)
        low, high = np.maximum(a.low[..., i], b.low[..., j]), np.minimum(a.high[..., i], b.high[..., j])
        return _occurring(modulus, both, low, high)

    def spans_in(self, shard: int, first: int, end: int) -> tuple[Ints, Ints]:
        """The keys of one shard in first … end - 1, as spans in no order that may touch."""
        low, high = (self._steps(at) for at in (first, end))
        low, high = np.maximum(self.low[shard], low), np.minimum(self.high[shard], high)
        if self.modulus == 1:
            some = low < high
            return low[some], high[some]
        counts = np.maximum(high - low, 0)
        if counts.sum() > MOST:
            raise TooLarge(f"the keys are {counts.sum():,} spans, more than {MOST:,}")
        column = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(len(column)) - np.repeat(np.cumsum(counts) - counts, counts)
        keys = self.modulus * (low[column] + nth) + self.remainders[column]
        return keys, keys + 1

    def spans(self) -> list[tuple[Ints, Ints, Ints]]:
        """All of them as spans: which shards, and where each begins and ends."""
        if self.modulus == 1:
            rows = np.flatnonzero((self.low < self.high).any(1))
            return [(rows, self.low[rows, 0], self.high[rows, 0])] if len(rows) else []
        found: list[tuple[Ints, Ints, Ints]] = []
        for column, remainder in enumerate(self.remainders.tolist()):
            low, count = self.low[:, column], np.maximum(self.high[:, column] - self.low[:, column], 0)
            rows = np.repeat(np.arange(len(low)), count)
            nth = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
            keys = self.modulus * (low[rows] + nth) + remainder
            found.append((rows, keys, keys + 1))
        return found

    def rows(self, shards: Sequence[int]) -> Progressions:
        """Those of some shards, with an axis of their own before whatever they are counted in."""
        found = _occurring(self.modulus, self.remainders, self.low[shards], self.high[shards])
        return Progressions(self.modulus, found.remainders, found.low[:, None], found.high[:, None])


def _occurring(modulus: int, remainders: Ints, low: Ints, high: Ints) -> Progressions:
    """Without the remainders that no shard has."""
    some = (low < high).any(tuple(range(low.ndim - 1)))
    if some.all():
        return Progressions(modulus, remainders, low, high)
    return Progressions(modulus, remainders[some], low[..., some], high[..., some])


def progressions(
    clause: Iterable[Bound], key: str, size: int, values: Mapping[str, Any], shards: int
) -> Progressions:
    """The keys below `size` at which all bounds of a clause hold; `values` has numbers and arrays a shard."""
    bounds = [bound for one in clause if not _always(one, key, values) for bound in _plain(one, key)]
    modulus = lcm(*(_period(bound.form, key)[0] for bound in bounds), 1)
    _check(modulus * shards)
    places = np.arange(modulus)
    known = {name: np.asarray(x, np.int64)[..., None] if np.ndim(x) else x for name, x in values.items()}
    low = np.zeros((shards, modulus), np.int64)
    high = np.broadcast_to(-((places - size) // modulus), low.shape).copy()
    for bound in bounds:
        slope, rest = _along(bound.form, key, modulus, places, known)
        if slope == 0:
            high[np.broadcast_to(rest != 0 if bound.equal else rest < 0, low.shape)] = 0
            continue
        if slope > 0 or bound.equal:
            np.maximum(low, _ceil(-rest, slope) if slope > 0 else _ceil(rest, -slope), out=low)
        if slope < 0 or bound.equal:
            np.minimum(high, (rest // -slope if slope < 0 else -rest // slope) + 1, out=high)
    return _occurring(modulus, places, low, high)


def _always(bound: Bound, key: str, values: Mapping[str, Any]) -> bool:
    """Whether it says only that a remainder lies in 0 … by - 1, or in more than that, for all shards."""
    if bound.equal:
        return False
    for atom, factor in bound.form.terms:
        if isinstance(atom, Quotient) and isinstance(atom.by, int) and abs(factor) == atom.by:
            sign = -factor // atom.by  # sign * (of % by) + rest >= 0
            rest = bound.form.plus(Linear(((atom, 1),)), -factor).plus(atom.of, -sign)
            if not any(key in atom_names(part) for part, _ in rest.terms):
                return bool(np.all(rest.value(values) >= (0 if sign > 0 else atom.by - 1)))
    return False


def _plain(bound: Bound, key: str) -> list[Bound]:
    """The bound, without the quotient where that is all it has of the key: `k // 8 >= x` is `k >= 8*x`."""
    inside = [(atom, c) for atom, c in bound.form.terms if key in atom_names(atom)]
    (atom, factor), *more = inside or [("", 0)]
    if more or not isinstance(atom, Quotient) or not isinstance(atom.by, int):
        return [bound]
    by = atom.by
    rest = bound.form.plus(Linear(((atom, 1),)), -factor)  # factor*atom + rest >= 0
    if abs(factor) != 1:
        rest = Linear(((Quotient(rest, abs(factor)), 1),))  # atom >= -(rest // factor), or <= rest // -factor
        if bound.equal:
            return [bound]
    above = Bound(atom.of.plus(rest, by), False)  # of >= by * -rest
    below = Bound(rest.times(by).plus(atom.of, -1).plus(Linear(constant=by - 1)), False)  # of < by*rest + by
    if not bound.equal:
        return [above if factor > 0 else below]
    if factor > 0:  # atom == -rest
        below = Bound(rest.times(-by).plus(atom.of, -1).plus(Linear(constant=by - 1)), False)
        return [above, below]
    above = Bound(atom.of.plus(rest, -by), False)
    return [above, below]


def _ceil(number: Any, by: int) -> Any:
    return -(-number // by)


def _period(form: Linear, key: str) -> tuple[int, int]:
    """The least step of the key at which a form's quotients all move evenly, and by how much it moves."""
    parts = [(coefficient, *_atom_period(atom, key)) for atom, coefficient in form.terms]
    period = lcm(*(step for _, step, _ in parts), 1)
    return period, sum(coefficient * slope * (period // step) for coefficient, step, slope in parts)


def _atom_period(atom: Atom, key: str) -> tuple[int, int]:
    if isinstance(atom, str):
        return 1, int(atom == key)
    if isinstance(atom.by, str):
        raise NoClosedForm(f"it divides by {atom.by}, which has no number")
    step, slope = _period(atom.of, key)
    times = atom.by // gcd(atom.by, slope) if slope else 1
    return step * times, 0 if isinstance(atom, Remainder) else slope * times // atom.by


def _along(form: Linear, key: str, modulus: int, places: Ints, values: Mapping[str, Any]) -> tuple[int, Any]:
    """The form at key = modulus * i + place: its slope in i, and the rest."""
    slope, rest = 0, form.constant
    for atom, coefficient in form.terms:
        if isinstance(atom, str):
            s, r = (modulus, places) if atom == key else (0, values[atom])
        else:
            assert isinstance(atom.by, int)  # _period has seen to it
            s, r = _along(atom.of, key, modulus, places, values)
            s, r = (0, r % atom.by) if isinstance(atom, Remainder) else (s // atom.by, r // atom.by)
        slope, rest = slope + coefficient * s, rest + coefficient * r
    return slope, rest


def _check(held: int) -> None:
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
    return [one for one in shared if len(one.remainders)]
