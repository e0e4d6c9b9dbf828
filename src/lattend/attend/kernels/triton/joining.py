"""Parts that join another: its programs take their steps of a tile before their own.

4 sinks and a window are two parts that share all queries. In a launch of its own the first would read the
queries, compute one step for each tile, and write sums that the second reads again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lattend.attend.kernels.triton.shapes import Choice, TileShape, choose
from lattend.attend.kernels.triton.tables import has_large_numbers, in_order
from lattend.plans.part import Part
from lattend.plans.plan import Plan
from lattend.plans.tiles import INNER_BASE, INNER_END, INNER_FIRST, OUTER_BASE, OUTER_SLOT, Tiles

MOST_STEPS = 16  # of a part that joins, in a tile: they have masks, whether they need them or not


def joined_parts(plan: Plan, shape_of: Callable[[int], TileShape]) -> dict[int, int]:
    """For places in the plan, the place of the part that joins each; tiles of queries have these shapes."""
    found: dict[int, int] = {}
    pairs = [
        (guest, place)
        for guest, part in enumerate(plan.parts)
        for place, host in enumerate(plan.parts)
        if guest != place and _same_rows(part, host) and _may_join(part, host)
    ]
    for guest, place in pairs:
        shape = shape_of(place)
        if {guest, place} & {*found, *found.values()} or not shape.hopper:
            continue
        own, guests = plan.tiles(place, shape.outer), plan.tiles(guest, shape.outer)
        steps = steps_joined(plan.parts[place], guests, shape)
        known = plan.parts[place].exact or steps == 1
        if known and steps <= MOST_STEPS and guests.inner.sum() <= own.inner.sum():
            found[place] = guest
    return found


@dataclass(frozen=True)
class Arranged:
    """What a kernel chooses for each part of a plan, and which parts join others: at the others' places."""

    choices: tuple[Choice, ...]
    joined: dict[int, int]


def arranged(plan: Plan, kernel: str, head_dim: int, dtype: torch.dtype, *, hopper: bool) -> Arranged:
    """The choices for parts of queries; a part that joins has the other's shape, and all its steps masks."""
    places = range(len(plan.parts))
    made = [choose(plan, place, kernel, head_dim, dtype, hopper=hopper) for place in places]
    joined = joined_parts(plan, lambda place: made[place].shape)
    for place, guest in joined.items():
        host = made[place]
        tiles = plan.tiles(guest, host.shape.outer)
        steps = float((-(-tiles.inner // host.shape.step)).sum()) / len(tiles.table)
        made[guest] = Choice(host.shape, steps * host.masked, host.measured, host.masked)
    return Arranged(tuple(made), joined)


def steps_joined(part: Part, guests: Tiles, shape: TileShape) -> int:
    """The steps of the part that joins another, in the tile with most; they begin where its groups do."""
    group = part.axes[0].inner_order.group
    first = guests.column("inner_base") + guests.column("inner_first")
    return max(1, int((-(-(guests.inner + first % group) // shape.step)).max(initial=0)))


def with_joined(own: Tiles, guest: Tiles) -> NDArray[np.int32]:
    """A part's table with two columns more: the first key of the part that joins, and how many it has.

    >>> from lattend import rules
    >>> from lattend.plans.plan import plan
    >>> found = plan(rules.sinks(s=4, t=9), n=300)
    >>> with_joined(found.tiles(1, (128,)), found.tiles(0, (128,)))[0, :, -2:].tolist()
    [[0, 4], [0, 4], [0, 4]]
    """
    rows = [table[0, :, OUTER_SLOT] + table[0, :, OUTER_BASE] for table in (own.table, guest.table)]
    order = np.argsort(rows[1])[np.searchsorted(np.sort(rows[1]), rows[0])]
    keys = guest.table[:, order]
    columns = [
        keys[..., INNER_BASE] + keys[..., INNER_FIRST],
        keys[..., INNER_END] - keys[..., INNER_FIRST],
    ]
    heads = max(len(own.table), len(keys))
    whole = [*np.moveaxis(own.table, -1, 0), *columns]
    return np.stack([np.broadcast_to(x, (heads, x.shape[1])) for x in whole], -1)


def _same_rows(a: Part, b: Part) -> bool:
    """Whether two parts on a line have the same queries, in the same tiles, and the first keys in order."""
    if not in_order(a) or len(b.axes) > 1 or b.axes[0].outer_order.period > 1:
        return False
    x, y = a.axes[0], b.axes[0]
    ends = (x.first, x.last, x.class_slots) == (y.first, y.last, y.class_slots)
    return ends and np.array_equal(x.outer_bases, y.outer_bases)


def _may_join(guest: Part, host: Part) -> bool:
    """Whether the plan knows all that is asked of the guest's pairs, and the tiles of both."""
    known = guest.exact and not guest.data and guest.block_table is None and not has_large_numbers(guest)
    return known and host.block_table is None and not host.cut_by
