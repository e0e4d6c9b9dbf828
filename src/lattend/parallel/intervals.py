"""Strided intervals: positions as pieces of equal size at equal distances, one set of them or a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, inf, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import NoClosedForm, TooLarge
from lattend.rules.language.expr import Arith, Num, Term
from lattend.rules.language.linear import Atom, Linear, Quotient, Remainder, atom_names
from lattend.sets.region import Bound

MOST = 1 << 22  # remainders of all ranks, or spans, that are held at once
MOST_OF_RANKS = 1 << 25  # spans of all ranks, each with as many as the one that has most
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StridedInterval:
    """`count` pieces of `size` positions, the first at `start`, one every `period`."""

    start: int
    size: int
    period: int = 0
    count: int = 1

    @property
    def total(self) -> int:
        return self.size * self.count

    @property
    def end(self) -> int:
        """One beyond the last position."""
        return self.start + self.period * (self.count - 1) + self.size

    def positions(self) -> Ints:
        """All positions, in order."""
        pieces = self.start + self.period * np.arange(self.count)[:, None]
        return (pieces + np.arange(self.size)).reshape(-1)

    def position(self, number: Term) -> Term:
        """The position with this number in the interval: `start + period*(k // size) + k % size`.

        >>> from lattend.rules.language.expr import Name, term_text
        >>> term_text(StridedInterval(120, 8, 128, 4).position(Name("k")))
        '128 * (k // 8) + k % 8 + 120'
        """
        term = number
        if self.count > 1:
            piece = number if self.size == 1 else Arith("//", (number, Num(self.size)))
            term = Arith("*", (Num(self.period), piece))
            if self.size > 1:
                term = Arith("+", (term, Arith("%", (number, Num(self.size)))))
        return term if self.start == 0 else Arith("+", (term, Num(self.start)))

    def __str__(self) -> str:
        if self.count == 1:
            return f"{self.start} … {self.end - 1}" if self.size > 1 else str(self.start)
        each = f"{self.size} of each {self.period}" if self.size > 1 else f"every {self.period}th"
        return f"{each} from {self.start} to {self.end - 1}"


def intervals_of_mask(mask: NDArray[np.bool_], first: int = 0) -> list[StridedInterval]:
    """The intervals of positions that are True; the mask's first position has the number `first`.

    >>> [str(one) for one in intervals_of_mask(np.array([1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 1]) > 0)]
    ['2 of each 3 from 0 to 7', '12']
    """
    starts, ends = mask_spans(mask)
    return [*_grouped(starts + first, ends - starts)]


def intervals_of_spans(first: Ints, end: Ints) -> list[StridedInterval]:
    """The intervals of positions in spans that may touch and overlap, in any order.

    >>> [str(one) for one in intervals_of_spans(np.array([3, 0, 1]), np.array([5, 1, 2]))]
    ['2 of each 3 from 0 to 4']
    """
    starts, ends = merged_spans(first, end)
    return [*_grouped(starts, ends - starts)]


def mask_spans(mask: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Where spans of True begin and end."""
    steps = np.diff(mask.astype(np.int8), prepend=0, append=0)
    return np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)


def merged_spans(first: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The same positions as spans in order that do not touch."""
    some = first < end
    order = np.argsort(first[some], kind="stable")
    first, end = first[some][order], np.maximum.accumulate(end[some][order])
    if not len(first):
        return first, end
    new = np.concatenate([[True], first[1:] > end[:-1]])
    return first[new], end[np.concatenate([new[1:], [True]])]


def _grouped(starts: Ints, sizes: Ints) -> Iterator[StridedInterval]:
    """Pieces of one size at one distance together, from the first on."""
    index = 0
    while index < len(starts):
        start, size = int(starts[index]), int(sizes[index])
        count, period = 1, 0
        if index + 1 < len(starts) and sizes[index + 1] == size:
            period = int(starts[index + 1]) - start
            like = (np.diff(starts[index:]) == period) & (sizes[index + 1 :] == size)
            count = 1 + (len(like) if like.all() else int(np.argmin(like)))
        yield StridedInterval(start, size, period if count > 1 else 0, count)
        index += count


@dataclass(frozen=True)
class IntervalTable:
    """Keys low <= k < high with (k - first) % modulus < size: a row for each rank, a column for each window.

    What is the same for all ranks may have one row. No key lies in two windows.

    >>> table = IntervalTable(4, *(np.array([[x]]) for x in (0, 2, 1, 12)))
    >>> table.between(np.array([0]), np.array([10])).tolist()  # 1, 4, 5, 8, 9
    [5]
    """

    modulus: int
    first: Ints
    size: Ints
    low: Ints
    high: Ints

    @staticmethod
    def of_spans(spans: Sequence[tuple[Ints, Ints]]) -> IntervalTable:
        """The keys of each rank from its spans, which do not touch."""
        widest = max((len(first) for first, _ in spans), default=0)
        if len(spans) * widest > MOST_OF_RANKS:
            raise NoClosedForm(f"its keys are up to {widest:,} spans for each of {len(spans):,} ranks")
        low = np.zeros((len(spans), widest), np.int64)
        high = np.zeros_like(low)
        for row, (first, end) in enumerate(spans):
            low[row, : len(first)], high[row, : len(end)] = first, end
        return IntervalTable(1, np.array([[0]]), np.array([[1]]), low, high)

    @property
    def windows(self) -> int:
        return self.low.shape[-1]

    @property
    def _sides(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self.first, self.size, self.low, self.high

    def between(self, first: Any, end: Any) -> Ints:
        """How many keys of each rank lie in first … end - 1."""
        low = np.maximum(self.low, np.asarray(first)[..., None])
        high = np.maximum(np.minimum(self.high, np.asarray(end)[..., None]), low)
        keys = high - low if self.modulus == 1 else self._below(high) - self._below(low)
        return keys[..., 0] if self.windows == 1 else keys.sum(-1)

    def _below(self, positions: Ints) -> Ints:
        """How many keys of each window lie below positions, from its first one on."""
        turns, rest = np.divmod(positions - self.first, self.modulus)
        return turns * self.size + np.minimum(rest, self.size)

    def finer(self, modulus: int) -> IntervalTable:
        """The same keys by windows modulo a multiple."""
        times = modulus // self.modulus
        if times == 1:
            return self
        if self.modulus == 1:  # all between low and high
            return IntervalTable(modulus, self.first, self.size * modulus, self.low, self.high)
        check_held(times * self.low.size)
        first, size, low, high = (np.concatenate([side] * times, -1) for side in self._sides)
        steps = np.repeat(self.modulus * np.arange(times), self.windows)
        return IntervalTable(modulus, first + steps, size, low, high)

    def __and__(self, other: IntervalTable) -> IntervalTable:
        if not (self.windows and other.windows):
            return other if self.windows else self
        modulus = lcm(self.modulus, other.modulus)
        a, b = self.finer(modulus), other.finer(modulus)
        if 1 in (self.modulus, other.modulus):  # the windows are those of one
            windows = b if self.modulus == 1 else a
            low, high = np.maximum(a.low, b.low), np.minimum(a.high, b.high)
            return _without_empty(modulus, windows.first, windows.size, low, high)
        i, j = _meeting(a, b)
        first, size, low, high = (side[..., i] for side in a._sides)
        other_first, other_size, other_low, other_high = (side[..., j] for side in b._sides)
        low, high = np.maximum(low, other_low), np.minimum(high, other_high)
        gap = (other_first - first) % modulus  # from one window on to the other, which may reach round to it
        ahead = np.minimum(size, gap + other_size) - gap
        wrapped = np.minimum(size, gap + other_size - modulus)
        parts = (other_first, first), (ahead, wrapped), (low, low), (high, high)
        sides = (np.concatenate(np.broadcast_arrays(*some), -1) for some in parts)
        return _without_empty(modulus, *sides)

    def spans_in(self, rank: int, first: int, end: int) -> tuple[Ints, Ints]:
        """The keys of one rank in first … end - 1, as spans in no order that may touch."""
        row = self.of([rank])
        low, high = np.maximum(row.low, first), np.minimum(row.high, end)
        _, begins, ends = IntervalTable(self.modulus, row.first, row.size, low, high)._spans(MOST)
        return begins, ends

    def spans(self) -> tuple[Ints, Ints, Ints]:
        """All keys as spans: the rank of each, and where it begins and ends."""
        return self._spans(inf)

    def _spans(self, most: float) -> tuple[Ints, Ints, Ints]:
        first, size, low, high = np.broadcast_arrays(*self._sides)
        full = size == self.modulus
        begin, end = -((first + size - 1 - low) // self.modulus), -((first - high) // self.modulus)
        counts = np.where(full, 1, np.maximum(end - begin, 0)) * ((low < high) & (size > 0))
        if counts.sum() > most:
            raise TooLarge(f"the keys are {counts.sum():,} spans, more than {most:,}")
        index = np.repeat(np.arange(counts.size), counts.ravel())
        nth = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts.ravel(), counts.ravel())
        first, size, low, high, full, begin = (
            side.ravel()[index] for side in (first, size, low, high, full, begin)
        )
        start = np.where(full, low, first + self.modulus * (begin + nth))
        stop = np.where(full, high, start + size)
        return index // self.windows, np.maximum(start, low), np.minimum(stop, high)

    def rows(self, ranks: Sequence[int]) -> IntervalTable:
        """The keys of some ranks, with an axis before that of the positions at which they are counted."""
        table = _without_empty(self.modulus, *self.of(ranks)._sides)
        return IntervalTable(self.modulus, *(side[:, None] for side in table._sides))

    def of(self, ranks: Sequence[int] | Ints) -> IntervalTable:
        """The keys of some ranks, or for each of these numbers those of that rank."""
        sides = (side if len(side) == 1 else side[ranks] for side in self._sides)
        return IntervalTable(self.modulus, *sides)


def _without_empty(modulus: int, first: Ints, size: Ints, low: Ints, high: Ints) -> IntervalTable:
    """The table without windows in which no rank has a key."""
    size = np.maximum(size, 0)
    some: NDArray[np.bool_] = np.asarray(np.logical_and(low < high, size > 0).any(0))
    sides = first, size, low, high
    if not some.all():
        sides = tuple(np.broadcast_to(side, (len(side), len(some)))[..., some] for side in sides)
    return IntervalTable(modulus, *sides)


def _meeting(a: IntervalTable, b: IntervalTable) -> tuple[Ints, Ints]:
    """Which windows of one may share keys with which of the other, both of one modulus."""
    if all(len(one.first) == 1 and one.size.max(initial=0) <= 1 for one in (a, b)):  # single remainders
        remainders = (one.first[0] % one.modulus for one in (a, b))
        _, i, j = np.intersect1d(*remainders, assume_unique=True, return_indices=True)
        return i, j
    check_held(2 * a.windows * b.windows * max(len(a.low), len(b.low)))
    i, j = np.indices((a.windows, b.windows)).reshape(2, -1)
    return i, j


def check_held(held: int) -> None:
    """Raises where a table would not fit."""
    if held > MOST:
        raise NoClosedForm(f"its keys have {held:,} remainders, more than {MOST:,}")


# Tables of bounds on a key


def interval_table(
    bounds: Sequence[Bound], key: str, size: int, values: Mapping[str, Any], ranks: int
) -> IntervalTable:
    """The keys below `size` at which all bounds hold; `values` has numbers, and arrays with one a rank.

    A bound limits the key, or is a window of its remainders modulo some number; what is neither is looked at
    for every remainder.
    """
    known = {name: np.asarray(x, np.int64)[:, None] if np.ndim(x) else x for name, x in values.items()}
    limits, windows, others = _kinds(tuple(bounds), key)
    low, high = np.zeros((ranks, 1), np.int64), np.full((ranks, 1), size)
    for slope, rest, equal in limits:
        low, high = _limited(low, high, slope, rest.value(known), equal)
    table = _without_empty(1, np.array([[0]]), np.array([[1]]), low, high)
    ends: dict[tuple[Linear, int], tuple[Any, Any]] = {}
    for form, by, sign, rest, equal in windows:
        number = rest.value(known)
        begin = -sign * number if equal or sign > 0 else 0
        end = begin + 1 if equal else by if sign > 0 else number + 1
        before, after = ends.get((form, by), (0, by))
        ends[form, by] = np.maximum(before, begin), np.minimum(after, end)
    for (form, by), (begin, end) in ends.items():
        if np.any(end - begin < by):
            slope, rest = _split(form, key)
            shift = rest.value(known)
            first = begin - shift if slope > 0 else shift - end + 1
            sides = first, np.maximum(end - begin, 0), 0, size
            table = table & IntervalTable(by, *map(np.atleast_2d, sides))
    return table & _by_remainder(others, key, size, known, ranks) if others else table


@lru_cache(maxsize=256)
def _kinds(
    bounds: tuple[Bound, ...], key: str
) -> tuple[list[tuple[int, Linear, bool]], list[tuple[Linear, int, int, Linear, bool]], list[Bound]]:
    """The bounds as limits `slope*key + rest >= 0`, windows `sign*(form % by) + rest >= 0`, and others.

    The form of a window is the key, or less the key, and a rest; no rest mentions the key. A bound that is
    `equal` has == for >=.
    """
    limits, windows, others = list[Any](), list[Any](), list[Bound]()
    for bound in (simple for one in bounds for simple in _without_quotient(one, key)):
        slope, rest = _split(bound.form, key)
        if not _mentions(rest, key):
            limits.append((slope, rest, bound.equal))
        elif (window := _window(bound.form, key)) is not None:
            windows.append((*window, bound.equal))
        else:
            others.append(bound)
    return limits, windows, others


def _by_remainder(
    bounds: Iterable[Bound], key: str, size: int, values: Mapping[str, Any], ranks: int
) -> IntervalTable:
    """The keys at which bounds hold: for each remainder, an interval of the key's quotient."""
    modulus = lcm(*(_period(bound.form, key)[0] for bound in bounds))
    check_held(modulus * ranks)
    remainders = np.arange(modulus)
    low, high = np.zeros((1, modulus), np.int64), np.full((1, modulus), _ceil(size, modulus))
    for bound in bounds:
        slope, rest = _along(bound.form, key, modulus, remainders, values)
        low, high = _limited(low, high, slope, rest, bound.equal)
    low, high = np.broadcast_arrays(low, high)
    alike = ((low[:, 1:] == low[:, :-1]) & (high[:, 1:] == high[:, :-1])).all(0)  # one window
    first = np.flatnonzero(np.concatenate([[True], ~alike]))
    sizes = np.diff(first, append=modulus)
    low, high = (modulus * side[:, first] + first for side in (low, high))
    return _without_empty(modulus, first[None], sizes[None], low, high)


def _split(form: Linear, key: str) -> tuple[int, Linear]:
    """The factor of the key itself in a form, and the rest."""
    slope = form.coefficient(key)
    return slope, form.plus(Linear(((key, 1),)), -slope)


def _mentions(form: Linear, key: str) -> bool:
    return any(key in atom_names(atom) for atom, _ in form.terms)


def _limited(low: Ints, high: Ints, slope: int, rest: Any, equal: bool) -> tuple[Ints, Ints]:
    """Where low <= i < high and slope*i + rest >= 0, or == 0: that is an interval too."""
    if slope == 0:
        return low, np.where(rest != 0 if equal else rest < 0, low, high)
    if slope > 0 or equal:
        low = np.maximum(low, _ceil(-rest, slope) if slope > 0 else _ceil(rest, -slope))
    if slope < 0 or equal:
        high = np.minimum(high, (rest // -slope if slope < 0 else -rest // slope) + 1)
    return low, high


def _window(bounded: Linear, key: str) -> tuple[Linear, int, int, Linear] | None:
    """A form as `sign*(form % by) + rest`, where that remainder is all it has of the key."""
    for atom, factor in bounded.terms:
        if isinstance(atom, Quotient) and isinstance(atom.by, int) and abs(factor) == atom.by:
            sign = -factor // atom.by
            rest = bounded.plus(Linear(((atom, 1),)), -factor).plus(atom.of, -sign)
            slope, other = _split(atom.of, key)
            if abs(slope) == 1 and not _mentions(other, key) and not _mentions(rest, key):
                return atom.of, atom.by, sign, rest
    return None


def _without_quotient(bound: Bound, key: str) -> list[Bound]:
    """The bound without its quotient where that is all it has of the key: `k // 8 >= x` is `k >= 8*x`."""
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


def _along(
    form: Linear, key: str, modulus: int, remainders: Ints, values: Mapping[str, Any]
) -> tuple[int, Any]:
    """The form at key = modulus * i + remainder: its slope in i, and the rest."""
    slope, rest = 0, form.constant
    for atom, coefficient in form.terms:
        if isinstance(atom, str):
            s, r = (modulus, remainders) if atom == key else (0, values[atom])
        else:
            assert isinstance(atom.by, int)  # _period has checked it
            s, r = _along(atom.of, key, modulus, remainders, values)
            s, r = (0, r % atom.by) if isinstance(atom, Remainder) else (s // atom.by, r // atom.by)
        slope, rest = slope + coefficient * s, rest + coefficient * r
    return slope, rest
