"""What a group of warps needs of a tile: it has 64 of 128 rows, and has no use for some of its steps.

In a sliding window of 256, 128 queries have 383 keys, six steps of 64; each group of 64 queries needs five of
them. Where rows are further on, so are their columns: a group leaves out some of a tile's first steps and
some of its last. Steps are then taken in their order, all with a mask, which costs more than it saves where
tiles are long.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lattend.plans.part import Part
from lattend.plans.plan import Plan
from lattend.plans.tables.adjacency import in_order
from lattend.plans.tables.tile_costs import TileShape
from lattend.plans.tiles import (
    FULL,
    INNER_BASE,
    INNER_END,
    INNER_FIRST,
    OUTER_BASE,
    OUTER_SLOT,
    PER_AXIS,
    Tiles,
)

ROWS = 64  # of a group
NEVER = np.iinfo(np.int32).max  # a column that is before none
LEAST = 4  # steps of the longest tile: where all are shorter, memory is waited for
WORTH = {"forward": 0.1, "backward_dq": 0.1, "backward_dkdv": 0.12}  # of all steps, at least
MOST = 2  # of a tile's first steps, since the next tile's rows are loaded at the third (hopper/tiles.py)


def leaving(plan: Plan, place: int, part: Part, kernel: str, shape: TileShape) -> Tiles | None:
    """The tiles of a part with what each group needs, if groups of this kernel let steps pass, the plan knows
    which, and it pays.

    >>> from lattend import rules
    >>> from lattend.plans.tables.tile_costs import TileShape
    >>> from lattend.plans.plan import plan
    >>> shape = TileShape((128,), 64, hopper=True, several=True)
    >>> for rule in (rules.strided(255), rules.causal()):
    ...     found = plan(rule, n=16_384)
    ...     print(leaving(found, 0, found.transposed[0], "backward_dkdv", shape) is not None)
    True
    False
    """
    known = in_order(part) and part.block_table is None and not part.cut_by
    if not known or not (shape.hopper and shape.several) or shape.in_turn:
        return None
    transposed = kernel == "backward_dkdv"
    own, each = (plan.tiles(place, (size,), transposed=transposed) for size in (shape.rows, ROWS))
    if not own.table.size:
        return None
    table = with_groups(own, each)
    short = own.inner.max() <= (LEAST - 1) * shape.step
    return None if short or left_out(table, shape.step, kernel) < WORTH[kernel] else Tiles(own.shape, table)


def with_groups(own: Tiles, each: Tiles) -> NDArray[np.int32]:
    """A part's table with two columns more for each group: the first of its columns, and their end.

    >>> from lattend import rules
    >>> from lattend.plans.plan import plan
    >>> found = plan(rules.strided(255), n=512)
    >>> with_groups(found.tiles(0, (128,)), found.tiles(0, (64,)))[0, :, -4:].tolist()
    [[1, 320, 65, 384], [129, 448, 193, 512], [0, 192, 0, 256], [0, 64, 0, 128]]
    """
    rows = [table[0, :, OUTER_SLOT] + table[0, :, OUTER_BASE] for table in (own.table, each.table)]
    order = np.argsort(rows[1])
    in_turn = rows[1][order]
    heads = max(len(own.table), len(each.table))
    columns = [np.broadcast_to(own.table, (heads, *own.table.shape[1:]))]
    for group in range(own.shape[0] // each.shape[0]):
        first = rows[0] + group * each.shape[0]
        place = np.minimum(np.searchsorted(in_turn, first), len(order) - 1)
        found = each.table[:, order[place]]
        some = (in_turn[place] == first) & (found[..., INNER_END] > found[..., INNER_FIRST])
        begin, end = (found[..., INNER_BASE] + found[..., column] for column in (INNER_FIRST, INNER_END))
        both = np.stack([np.where(some, begin, NEVER), np.where(some, end, 0)], -1)
        columns.append(np.broadcast_to(both, (heads, *both.shape[1:])))
    return np.concatenate(columns, -1).astype(np.int32)


def passed(table: NDArray[np.int32], step: int, kernel: str) -> NDArray[np.int64]:
    """How many of its tile's first steps each group leaves out, and of its last [heads, tiles, groups, 2].

    For gradients of keys the first group leaves out one last step at most, and the second one first step.
    """
    whole = table.astype(np.int64)
    groups = whole[..., len(PER_AXIS + FULL) :].reshape(*whole.shape[:-1], -1, 2)
    first = (whole[..., INNER_BASE] + whole[..., INNER_FIRST])[..., None]
    steps = np.maximum(-(-(whole[..., INNER_END] - whole[..., INNER_FIRST]) // step), 1)[..., None]
    opening = np.minimum(np.maximum(groups[..., 0] - first, 0) // step, np.minimum(steps - 1, MOST))
    needed = -(-np.maximum(groups[..., 1] - first, 1) // step)
    found = np.stack([opening, np.maximum(steps - np.maximum(needed, opening + 1), 0)], -1)
    return np.minimum(found, [[0, 1], [1, 0]]) if kernel == "backward_dkdv" else found


def left_out(table: NDArray[np.int32], step: int, kernel: str) -> float:
    """Which share of all steps is left out, each by a group of a tile; those without columns save nothing."""
    some = table[..., len(PER_AXIS + FULL) + 1 :: 2] > 0  # the end of their columns
    left = passed(table, step, kernel) * some[..., None]
    steps = np.maximum(-(-(table[..., INNER_END] - table[..., INNER_FIRST]) // step), 1)
    return float(left.sum() / left.shape[-2] / max(1, steps.sum()))
