"""Parts that join another: programs of the other take their steps of a tile before their own.

4 sinks and a window are two parts that share all queries. In a launch of its own the first would read the
queries, compute one step for each tile, and write sums that the second reads again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lattend.plans.part import Part
from lattend.plans.plan import Plan
from lattend.plans.tables.adjacency import has_large_numbers, in_order
from lattend.plans.tables.tile_costs import TileShape
from lattend.plans.tiles import INNER_BASE, INNER_END, INNER_FIRST, OUTER_BASE, OUTER_SLOT, Tiles

MOST_STEPS = 16  # of a part that joins, in a tile: all have masks, whether they need them or not


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
        if shape.several and not {guest, place} & {*found, *found.values()}:
            own, guests = plan.tiles(place, shape.outer), plan.tiles(guest, shape.outer)
            few = guests.inner.max(initial=0) <= MOST_STEPS * shape.step
            fewer = guests.inner.sum() <= own.inner.sum() or not in_order(plan.parts[place])
            if few and fewer:
                found[place] = guest
    return found


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


def _same_rows(guest: Part, host: Part) -> bool:
    """Whether two parts on a line have the same queries, in order and in the same tiles."""
    x, y = guest.axes[0], host.axes[0]
    if not in_order(guest) or y.outer_order.period > 1 or len(host.axes) > 1:
        return False
    ends = (x.first, x.last, x.class_slots) == (y.first, y.last, y.class_slots)
    return ends and np.array_equal(x.outer_bases, y.outer_bases)


def _may_join(guest: Part, host: Part) -> bool:
    """Whether the plan knows all that is asked of the guest's pairs, and the tiles of both."""
    if host.axes[0].inner_size % host.axes[0].inner_order.group:  # TMA copies the guest's keys in such groups
        return False
    known = guest.exact and not guest.data and guest.block_table is None and not has_large_numbers(guest)
    return known and host.block_table is None and not host.cut_by
