"""What each half of a tile needs: a group of warps has 64 rows of a tile's 128, and not all of its steps.

In a sliding window of 256, 128 keys have 383 queries, six steps of 64; each half of the keys needs five.
Where rows are further on, so are their columns: the first half leaves out a tile's last step, the second its
first. Steps are then taken in their order, all with a mask, which costs more than it saves where tiles are
long.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lattend.attend.kernels.triton.tables import in_order
from lattend.attend.kernels.triton.tile_costs import TileShape
from lattend.plans.part import Part
from lattend.plans.plan import Plan
from lattend.plans.tiles import INNER_BASE, INNER_END, INNER_FIRST, OUTER_BASE, OUTER_SLOT, Tiles

NEVER = np.iinfo(np.int32).max  # a column that is before none
WORTH = 0.1  # of all steps, at least


def halved(plan: Plan, place: int, part: Part, kernel: str, shape: TileShape) -> Tiles | None:
    """The tiles of a part with what their halves need, if groups of this kernel let steps pass, the plan
    knows which, and it pays.

    >>> from lattend import rules
    >>> from lattend.attend.kernels.triton.tile_costs import TileShape
    >>> from lattend.plans.plan import plan
    >>> shape = TileShape((128,), 64, hopper=True, several=True)
    >>> for rule in (rules.strided(255), rules.causal()):
    ...     found = plan(rule, n=16_384)
    ...     print(halved(found, 0, found.transposed[0], "backward_dkdv", shape) is not None)
    True
    False
    """
    known = in_order(part) and part.block_table is None and not part.cut_by
    if not known or kernel != "backward_dkdv" or not (shape.hopper and shape.several):
        return None
    own, halves = (plan.tiles(place, (size,), transposed=True) for size in (shape.rows, shape.rows // 2))
    if not own.table.size:
        return None
    table = with_halves(own, halves)
    return Tiles(own.shape, table) if left_out(table, shape.step) >= WORTH else None


def with_halves(own: Tiles, halves: Tiles) -> NDArray[np.int32]:
    """A part's table with two columns more: the end of the first half's columns, the first of the second's.

    >>> from lattend import rules
    >>> from lattend.plans.plan import plan
    >>> found = plan(rules.strided(255), n=512)
    >>> with_halves(found.tiles(0, (128,)), found.tiles(0, (64,)))[0, :, -2:].tolist()
    [[320, 65], [448, 193], [192, 0], [64, 0]]
    """
    rows = [table[0, :, OUTER_SLOT] + table[0, :, OUTER_BASE] for table in (own.table, halves.table)]
    order = np.argsort(rows[1])
    in_turn = rows[1][order]

    def half(first: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The tiles of the halves that begin with these rows, and whether they have any columns."""
        place = np.minimum(np.searchsorted(in_turn, first), len(order) - 1)
        found = halves.table[:, order[place]]
        return found, (in_turn[place] == first) & (found[..., INNER_END] > found[..., INNER_FIRST])

    (first, has_first), (second, has_second) = (half(rows[0] + more) for more in (0, halves.shape[0]))
    end = np.where(has_first, first[..., INNER_BASE] + first[..., INNER_END], -NEVER)
    begin = np.where(has_second, second[..., INNER_BASE] + second[..., INNER_FIRST], NEVER)
    heads = max(len(own.table), len(halves.table))
    whole = [*np.moveaxis(own.table, -1, 0), end, begin]
    return np.stack([np.broadcast_to(x, (heads, x.shape[-1])) for x in whole], -1).astype(np.int32)


def left_out(table: NDArray[np.int32], step: int) -> float:
    """Which share of all steps is left out, each by half of a tile."""
    first = table[..., INNER_BASE] + table[..., INNER_FIRST]
    steps = np.maximum(-(-(table[..., INNER_END] - table[..., INNER_FIRST]) // step), 1)
    left = (table[..., -2] <= first + (steps - 1) * step).astype(int) + (table[..., -1] >= first + step)
    return float((left * (steps > 1)).sum() / 2 / max(1, steps.sum()))
