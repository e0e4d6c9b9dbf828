"""The order of tiles on a GPU: those that read the same columns run beside each other.

A plan has heavy tiles first. Causal windows of 1,024 have eight tiles each, the heaviest of all windows come
first, and the keys of a window are fetched from memory for each of its tiles, since others were between them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lattend.plans.part import Part
from lattend.plans.tables.adjacency import in_order
from lattend.plans.tables.chunks import BEGIN, PROCESSORS
from lattend.plans.tiles import INNER_BASE, INNER_END, INNER_FIRST, OUTER_BASE, OUTER_SLOT, Tiles

Ints = NDArray[np.int64]
PAIRS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)  # of batch elements and heads
LONGER = 1.03  # the program that has most to do may have so much more


def read_together(part: Part, tiles: Tiles, step: int) -> Tiles:
    """Tiles of a part on a line, in the order in which few columns are fetched twice, if work stays even.

    >>> from lattend import rules
    >>> from lattend.plans.plan import plan
    >>> found = plan(rules.windowed(w=256), n=65_536)
    >>> tiles = found.tiles(0, (128,))
    >>> both = tiles, read_together(found.parts[0], tiles, 128)
    >>> [one.table[0, :4, 0].tolist() for one in both]
    [[128, 384, 640, 896], [128, 0, 384, 256]]
    """
    if not in_order(part) or part.cut_by or len(tiles.table) > 1 or not tiles.table.shape[1]:
        return tiles
    order = _by_columns(tiles.table[0].astype(np.int64))
    lengths = np.maximum(-(-tiles.inner[0] // step), 1) + BEGIN
    if any(_most(lengths[order], pairs) > LONGER * _most(lengths, pairs) for pairs in PAIRS):
        return tiles
    return Tiles(tiles.shape, np.ascontiguousarray(tiles.table[:, order]))


def _by_columns(table: Ints) -> Ints:
    """Groups of tiles that share columns, heavy groups first; within one, heavy tiles."""
    begin, end = (table[:, INNER_BASE] + table[:, column] for column in (INNER_FIRST, INNER_END))
    along = np.argsort(table[:, OUTER_SLOT] + table[:, OUTER_BASE], kind="stable")
    reached = np.maximum.accumulate(end[along])
    group = np.empty(len(table), np.int64)
    group[along] = np.append(0, np.cumsum(begin[along][1:] >= reached[:-1]))
    weight = end - begin
    heavy = np.bincount(group, weights=weight)
    return np.lexsort((along.argsort(), -weight, group, -heavy[group]))


def _most(lengths: Ints, pairs: int) -> int:
    """The steps of the program with most, tiles dealt out in this order (hopper/tiles.py)."""
    dealt = np.repeat(lengths, pairs)
    dealt = np.append(dealt, np.zeros(-len(dealt) % PROCESSORS, dealt.dtype)).reshape(-1, PROCESSORS)
    dealt[1::2] = dealt[1::2, ::-1]
    return int(dealt.sum(0).max())
