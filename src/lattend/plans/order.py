"""Order: in which sequence the positions of an axis are taken, so that attended pairs lie together.

Slots 0, 1, 2, … stand for positions `(slot // group)*period + slot % group + base`:

    in order         period 1, group 1              0 1 2 3 4 5 …
    every l-th       period l, group 1, base r      r, r + l, r + 2l, …
    c out of l       period l, group c, base o      o … o+c-1, o+l … o+l+c-1, …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lattend.rules.language.expr import FLIPPED, Compare, Condition
from lattend.rules.language.linear import Linear, Quotient, Remainder, gap_of

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PlanAxis:
    """One axis before anything is solved: the names of the two positions and how many there are."""

    outer: str
    inner: str
    outer_size: int
    inner_size: int

    def transposed(self) -> PlanAxis:
        return PlanAxis(self.inner, self.outer, self.inner_size, self.outer_size)


@dataclass(frozen=True, slots=True)
class Order:
    """Positions of slots, without their base.

    >>> Order(period=4, group=2).positions(np.arange(5), 1).tolist()
    [1, 2, 5, 6, 9]
    """

    period: int = 1
    group: int = 1

    def positions(self, slots: Any, base: Any) -> Any:
        """The positions of these slots."""
        if self.group == 1:
            return slots * self.period + base
        return slots // self.group * self.period + slots % self.group + base

    def below(self, position: Any, base: Any) -> Any:
        """How many slots come before this position (negative ones count backwards from the base)."""
        gap = position - base
        if self.group == 1:
            return -(-gap // self.period) if self.period > 1 else gap
        return gap // self.period * self.group + np.minimum(gap % self.period, self.group)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Queries and keys in classes that meet only their like: residues of a number, or windows.

    Blocks are windows of the outer positions alone; each meets the blocks that data list. `shift` is what
    to add to a query's residue to find the key's; for windows, what is added to a position before it is
    divided.
    """

    kind: Literal["residues", "windows", "blocks"]
    modulus: int
    shift: int = 0


def pairing(condition: Condition, query: str, key: str, numbers: Mapping[str, int]) -> Pairing | None:
    """Returns the classes if a condition says exactly that both positions are in one class.

    >>> from lattend.rules.language.parser import parse
    >>> pairing(parse("(q - k) % 4 == 1"), "q", "k", {})
    Pairing(kind='residues', modulus=4, shift=3)
    """
    if not isinstance(condition, Compare) or condition.op != "==":
        return None
    gap = gap_of(condition, numbers)
    if gap is None:
        return None
    match gap.terms:
        case ((Remainder(of, int(modulus)), 1 | -1 as sign),):
            return _one_remainder(of, modulus, -gap.constant * sign, query, key)
        case ((Quotient() | Remainder() as a, 1 | -1 as sign), (Quotient() | Remainder() as b, other)):
            return _two_sides(a, b, query, key) if other == -sign and not gap.constant else None
        case _:
            return None


def has_windows(branch: Sequence[Condition], axes: Sequence[PlanAxis], numbers: Mapping[str, int]) -> bool:
    """Returns whether a condition says that query and key lie in the same window."""
    pairs = [pairing(condition, axis.outer, axis.inner, numbers) for condition in branch for axis in axes]
    return any(pair is not None and pair.kind == "windows" for pair in pairs)


def _one_remainder(of: Linear, modulus: int, value: int, query: str, key: str) -> Pairing | None:
    if not 0 <= value < modulus or len(of.terms) != 2:
        return None
    match of.coefficient(query), of.coefficient(key):
        case 1, -1:
            return Pairing("residues", modulus, (of.constant - value) % modulus)
        case -1, 1:
            return Pairing("residues", modulus, (value - of.constant) % modulus)
        case _:
            return None


def _two_sides(a: Quotient | Remainder, b: Quotient | Remainder, query: str, key: str) -> Pairing | None:
    if key in dict(a.of.terms):
        a, b = b, a
    plain = a.of.terms == ((query, 1),) and b.of.terms == ((key, 1),)
    if not plain or not isinstance(a.by, int) or a.by != b.by or type(a) is not type(b):
        return None
    if isinstance(a, Remainder):
        return Pairing("residues", a.by, (a.of.constant - b.of.constant) % a.by)
    if a.of.constant == b.of.constant:
        return Pairing("windows", a.by, a.of.constant)
    return None


@dataclass(frozen=True, slots=True)
class ResidueGroup:
    """Positions whose remainder by `period` is one of `size` consecutive remainders from `start`."""

    period: int
    start: int
    size: int


def residue_group(
    conditions: Sequence[Condition], name: str, numbers: Mapping[str, int]
) -> tuple[ResidueGroup | None, set[int]]:
    """Returns the remainders that these conditions allow one position, and which of them are used.

    >>> from lattend.rules.language.parser import parse
    >>> residue_group([parse("k % 8 >= 6")], "k", {})
    (ResidueGroup(period=8, start=6, size=2), {0})
    """
    residue: tuple[int, int] | None = None  # the modulus, and what is added to the position
    low, high, used = 0, 0, set[int]()
    for index, condition in enumerate(conditions):
        read = _remainder_range(condition, name, numbers)
        if read is None:
            continue
        modulus, shift, a, b = read
        if residue is None:
            residue, low, high = (modulus, shift), 0, modulus - 1
        if (modulus, shift) == residue:
            low, high = max(low, a), min(high, b)
            used.add(index)
    if residue is None or low > high:
        return None, set()
    period, shift = residue
    return ResidueGroup(period, (low - shift) % period, high - low + 1), used


def _remainder_range(
    condition: Condition, name: str, numbers: Mapping[str, int]
) -> tuple[int, int, int, int] | None:
    """(l, c, a, b) where the comparison says `a <= (name + c) % l <= b`."""
    gap = gap_of(condition, numbers) if isinstance(condition, Compare) else None
    if gap is None or not isinstance(condition, Compare):
        return None
    match gap.terms:
        case ((Remainder(Linear(((str(of), 1),), shift), int(modulus)), 1 | -1 as sign),) if of == name:
            value = -gap.constant * sign
        case _:
            return None
    match condition.op if sign > 0 else FLIPPED[condition.op]:
        case "==":
            return modulus, shift, value, value
        case "<=":
            return modulus, shift, 0, value
        case "<":
            return modulus, shift, 0, value - 1
        case ">=":
            return modulus, shift, value, modulus - 1
        case ">":
            return modulus, shift, value + 1, modulus - 1
        case "!=":
            return None
