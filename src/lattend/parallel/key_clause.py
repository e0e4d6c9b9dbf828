"""KeyClause: conditions on a key and on the ends of its shard, from which its progressions follow at numbers.

Each is a bound of the key, or a window of its remainders modulo some number; what is neither is looked at for
every remainder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, lcm
from typing import Any

import numpy as np

from lattend.errors import NoClosedForm
from lattend.parallel.progressions import Ints, Progressions, check_held, occurring
from lattend.rules.language.linear import Atom, Linear, Quotient, Remainder, atom_names
from lattend.sets.bound import Bound


@dataclass(frozen=True)
class KeyLimit:
    """`slope * key + rest >= 0`, or `== 0`, where the rest does not speak of the key."""

    slope: int
    rest: Linear
    equal: bool


@dataclass(frozen=True)
class Window:
    """`sign * (form % by) + rest >= 0`, or `== 0`, where the form is the key, or less the key, and more."""

    form: Linear
    by: int
    sign: int
    rest: Linear
    equal: bool

    def ends(self, values: Mapping[str, Any]) -> tuple[Any, Any]:
        """It holds where begin <= form % by < end."""
        number = self.rest.value(values)
        begin = -self.sign * number if self.equal or self.sign > 0 else 0
        return begin, begin + 1 if self.equal else self.by if self.sign > 0 else number + 1


@dataclass(frozen=True)
class KeyClause:
    """Bounds that all hold of a key, by their kinds."""

    key: str
    limits: Sequence[KeyLimit]
    windows: Sequence[Window]
    others: Sequence[Bound]

    @staticmethod
    def of(clause: Iterable[Bound], key: str) -> KeyClause:
        limits, windows, others = list[KeyLimit](), list[Window](), list[Bound]()
        for bound in (simple for one in clause for simple in _plain(one, key)):
            slope, rest = _split(bound.form, key)
            if not _speaks_of(key, rest):
                limits.append(KeyLimit(slope, rest, bound.equal))
            elif (window := _window(bound, key)) is not None:
                windows.append(window)
            else:
                others.append(bound)
        return KeyClause(key, limits, windows, others)

    def progressions(self, size: int, values: Mapping[str, Any], shards: int) -> Progressions:
        """The keys below `size` at which it holds; `values` has numbers and arrays a shard."""
        known = {name: np.asarray(x, np.int64)[:, None] if np.ndim(x) else x for name, x in values.items()}
        low, high = np.zeros((shards, 1), np.int64), np.full((shards, 1), size)
        for limit in self.limits:
            low, high = _limited(low, high, limit.slope, limit.rest.value(known), limit.equal)
        found = occurring(1, np.array([[0]]), np.array([[1]]), low, high)
        ends: dict[tuple[Linear, int], tuple[Any, Any]] = {}
        for window in self.windows:
            place, (begin, end) = (window.form, window.by), window.ends(known)
            before, after = ends.get(place, (0, window.by))
            ends[place] = np.maximum(before, begin), np.minimum(after, end)
        for (form, by), (begin, end) in ends.items():
            if np.any(end - begin < by):
                found = found & self._windowed(form, by, begin, end, size, known)
        return found & self._by_remainder(size, known, shards) if self.others else found

    def _windowed(
        self, form: Linear, by: int, begin: Any, end: Any, size: int, values: Mapping[str, Any]
    ) -> Progressions:
        """The keys at which begin <= form % by < end."""
        slope, rest = _split(form, self.key)
        place = rest.value(values)
        first = begin - place if slope > 0 else place - end + 1
        sides = first, np.maximum(end - begin, 0), 0, size
        return Progressions(by, *map(np.atleast_2d, sides))

    def _by_remainder(self, size: int, values: Mapping[str, Any], shards: int) -> Progressions:
        """The keys at which the other bounds hold: of each remainder, an interval of the key's quotient."""
        modulus = lcm(*(_period(bound.form, self.key)[0] for bound in self.others))
        check_held(modulus * shards)
        places = np.arange(modulus)
        low, high = np.zeros((1, modulus), np.int64), np.full((1, modulus), _ceil(size, modulus))
        for bound in self.others:
            slope, rest = _along(bound.form, self.key, modulus, places, values)
            low, high = _limited(low, high, slope, rest, bound.equal)
        low, high = np.broadcast_arrays(low, high)
        alike = ((low[:, 1:] == low[:, :-1]) & (high[:, 1:] == high[:, :-1])).all(0)  # one window
        first = np.flatnonzero(np.concatenate([[True], ~alike]))
        sizes = np.diff(first, append=modulus)
        low, high = (modulus * side[:, first] + first for side in (low, high))
        return occurring(modulus, first[None], sizes[None], low, high)


def _split(form: Linear, key: str) -> tuple[int, Linear]:
    """How often the key itself is in a form, and the rest."""
    slope = form.coefficient(key)
    return slope, form.plus(Linear(((key, 1),)), -slope)


def _speaks_of(key: str, form: Linear) -> bool:
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


def _window(bound: Bound, key: str) -> Window | None:
    """The bound as one of the remainder of the key, where that is all it has of it."""
    for atom, factor in bound.form.terms:
        if isinstance(atom, Quotient) and isinstance(atom.by, int) and abs(factor) == atom.by:
            sign = -factor // atom.by
            rest = bound.form.plus(Linear(((atom, 1),)), -factor).plus(atom.of, -sign)
            slope, other = _split(atom.of, key)
            if abs(slope) == 1 and not _speaks_of(key, other) and not _speaks_of(key, rest):
                return Window(atom.of, atom.by, sign, rest, bound.equal)
    return None


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
