"""The passes over a plan's parts, one after another: what is summed between them, what is written at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.plans.part import Part, PartAxis

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class PartPass:
    """The pass over one part: whether it goes on from earlier sums, and whether it writes the results."""

    place: int
    continues: bool
    ends: bool
    joined: int | None = None  # the place of a part that it takes along (fused_parts.py)
    earlier: tuple[int, ...] = ()  # the places of parts that have sums for some of its rows, if not for all

    @property
    def alone(self) -> bool:
        """Whether it needs no sums."""
        return self.ends and not self.continues

    @property
    def constants(self) -> dict[str, Any]:
        """Returns the compile-time constants of its kernels."""
        return {"CONTINUES": self.continues, "ENDS": self.ends}

    @property
    def begins(self) -> bool:
        """Whether some of its rows have had no pass yet."""
        return bool(self.earlier) or not self.continues


def sequence(
    parts: Sequence[Part], joined: Mapping[int, int] | None = None
) -> tuple[list[PartPass], bool, bool]:
    """Returns the passes; whether every row is written without being cleared; and whether they end.

    Parts that share no row need no sums. Else one that covers all rows ends; if there is another, it begins,
    and if not, those with few rows do. `joined` says which part takes another one along: both have the same
    rows.
    """
    guests = joined or {}
    taken = {place: part for place, part in enumerate(parts) if place not in guests.values()}
    if taken and not any(_may_share_rows(a, b) for a, b in combinations(taken.values(), 2)):
        covered = sum(part.rows for part in taken.values()) == prod(x.outer_size for x in parts[0].axes)
        return [PartPass(place, False, True, guests.get(place)) for place in taken], covered, True
    whole = [place for place, part in taken.items() if part.covers]
    others = [place for place in taken if place not in whole]
    order = [*whole[:-1], *others, *whole[-1:]]
    passes: list[PartPass] = []
    for number, place in enumerate(order):
        before = tuple(x for x in order[:number] if _may_share_rows(parts[x], parts[place]))
        some = bool(whole) and order[0] not in whole  # have sums
        passes.append(
            PartPass(
                place,
                continues=bool(before) or not whole,
                ends=bool(whole) and number == len(order) - 1,
                joined=guests.get(place),
                earlier=before if some else (),
            )
        )
    return passes, bool(whole), bool(whole)


def rows_of(parts: Iterable[Part]) -> Flags:
    """Which rows are in the tiles of these parts, in the order in which they lie in memory."""
    found = [reduce(np.logical_and.outer, map(_positions, part.axes)).ravel() for part in parts]
    return np.logical_or.reduce(found)


def _positions(axis: PartAxis) -> Flags:
    """Which outer positions of an axis are in its tiles."""
    found = np.zeros(axis.outer_size, np.bool_)
    begin, end = axis.slots
    count = end - begin
    classes = np.repeat(np.arange(len(count)), count)
    slots = np.arange(len(classes)) - np.repeat(np.cumsum(count) - count, count) + begin[classes]
    found[axis.outer_order.positions(slots, axis.outer_bases[classes])] = True
    return found


def _may_share_rows(a: Part, b: Part) -> bool:
    return all(x.first <= y.last and y.first <= x.last for x, y in zip(a.axes, b.axes, strict=True))
