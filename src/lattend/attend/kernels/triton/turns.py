"""The turns of a plan's parts in a pass: what is summed up between them, and what is written at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

from lattend.plans.part import Part


@dataclass(frozen=True)
class Turn:
    """A part's turn: whether it goes on from the sums of earlier ones, and whether it writes the results."""

    place: int
    continues: bool
    ends: bool
    joined: int | None = None  # the place of a part that it takes along (joining.py)

    @property
    def alone(self) -> bool:
        """Whether it needs no sums."""
        return self.ends and not self.continues

    @property
    def constants(self) -> dict[str, Any]:
        """What the kernels are told."""
        return {"CONTINUES": self.continues, "ENDS": self.ends}


def sequence(parts: Sequence[Part], joined: Mapping[int, int] | None = None) -> tuple[list[Turn], bool, bool]:
    """The turns of parts; whether every row is written without being cleared; and whether they end.

    Parts that share no row need no sums. Else one that covers all rows begins, and one ends. `joined` says
    which part has another's turn too: both have the same rows.
    """
    guests = joined or {}
    taken = {place: part for place, part in enumerate(parts) if place not in guests.values()}
    if taken and not any(_may_share_rows(a, b) for a, b in combinations(taken.values(), 2)):
        covered = sum(part.rows for part in taken.values()) == prod(x.outer_size for x in parts[0].axes)
        return [Turn(place, False, True, guests.get(place)) for place in taken], covered, True
    whole = [place for place, part in taken.items() if part.covers]
    others = [place for place in taken if place not in whole]
    order = [*whole[:-1], *others, *whole[-1:]]
    begins = bool(whole) and order[0] in whole
    last = len(order) - 1 if whole else None
    turns = [
        Turn(place, turn > 0 or not begins, turn == last, guests.get(place))
        for turn, place in enumerate(order)
    ]
    return turns, begins, bool(whole)


def _may_share_rows(a: Part, b: Part) -> bool:
    return all(x.first <= y.last and y.first <= x.last for x, y in zip(a.axes, b.axes, strict=True))
