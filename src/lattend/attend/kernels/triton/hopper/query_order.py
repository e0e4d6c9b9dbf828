"""In which order tiles of keys add to the gradients of queries, so that sums are the same on every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lattend.plans.tiles import INNER_BASE, INNER_END, INNER_FIRST, OUTER_BASE, OUTER_SLOT

Ints = NDArray[np.int32]


def by_keys(table: Ints) -> Ints:
    """The table [heads, tiles, columns] with its tiles ordered by their keys, those without queries last."""
    position = table[0, :, OUTER_SLOT].astype(np.int64) + table[0, :, OUTER_BASE]
    empty = (table[..., INNER_END] <= table[..., INNER_FIRST]).all(0)
    return np.ascontiguousarray(table[:, np.lexsort((position, empty))])


def first_tiles(table: Ints, queries: int, step: int) -> Ints | None:
    """The first tile that meets each block of `step` queries, if those that do follow each other there.

    So many tiles as lie between it and another one add to the block before that. None where heads differ, or
    where tiles go back.

    >>> from lattend import rule
    >>> from lattend.plans.plan import plan
    >>> found = plan(rule("k <= q and q - k <= 100"), n=512).tiles(0, (128,), transposed=True)
    >>> first_tiles(by_keys(found.table), 512, 64).tolist()  # keys up to 100 back: of queries 192 on from 92
    [0, 0, 0, 0, 1, 1, 2, 2]
    """
    if len(table) != 1:
        return None
    some = table[0, table[0, :, INNER_END] > table[0, :, INNER_FIRST]].astype(np.int64)
    begin = (some[:, INNER_BASE] + some[:, INNER_FIRST]) // step
    end = -(-(some[:, INNER_BASE] + some[:, INNER_END]) // step)
    if (np.diff(begin) < 0).any() or (np.diff(end) < 0).any():
        return None
    blocks = np.arange(-(-queries // step))
    return np.searchsorted(end, blocks, "right").astype(np.int32)
