"""Long tiles cut into chunks: where tiles are too few to keep the chip busy, several programs share one.

The gradient of 4 sinks' keys is one tile for each head, which meets all queries. Its queries are cut into
chunks, each a row of the table of its own, with a place for its share of the sums in float32; the shares of
a tile are added up in their order, so that the result has the same bits on every run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lattend.plans.part import Part
from lattend.plans.plan import MAX_KNOWN, PROBE, Plan
from lattend.plans.tables.tile_costs import Choice, TileShape
from lattend.plans.tiles import (
    FULL_END,
    FULL_FIRST,
    INNER_BASE,
    INNER_END,
    INNER_FIRST,
    OUTER_BASE,
    OUTER_SLOT,
    Tiles,
)

Ints = NDArray[np.int64]
PROCESSORS = 132  # of an H200
BESIDE = 2  # programs of a Triton kernel that run beside each other on one
# What a tile costs beside its steps, what a chunk does to write its sums and have them added, and another
# launch, in steps
BEGIN, SHARE, LAUNCH = 4, 6, 8
FINER = (1, 1.25, 1.5, 2, 3, 4, 6, 8)  # times as many chunks as programs that run at once
WORTH, FEWER = 0.6, 64  # of the time without chunks at most, or so many steps fewer
EVEN = 0.9  # of the most steps, on average, in tiles that are all alike


@dataclass(frozen=True)
class Chunks:
    """The chunks of a part's tiles: a row of the table each, with one column more, the place of its sums.

    `tiles` has a row for each tile: the first slot and the base of its rows, its first place, and how many.
    """

    table: NDArray[np.int32]  # [heads or 1, chunks, columns + 1]
    tiles: NDArray[np.int32]


@lru_cache(MAX_KNOWN)
def most_queries(plan: Plan) -> int:
    """The queries of one head that a tile of keys meets, at most."""
    places = range(len(plan.transposed))
    found = (plan.tiles(place, PROBE[len(plan.axes)], transposed=True) for place in places)
    return max((int(tiles.inner.max(initial=0)) for tiles in found), default=0)


def busy(lengths: Ints, pairs: int, shape: TileShape) -> float:
    """The steps of the program with most, tiles dealt out as the kernels do: heavy ones first, and who took
    the heaviest takes the lightest next.

    >>> busy(
    ...     np.array([5, 3, 1]), 66, TileShape((128,), 64, hopper=True, several=True)
    ... )  # 198 on 132: 5, 3 + 1
    5.0
    """
    slots = PROCESSORS * (1 if shape.hopper else BESIDE)
    dealt = np.repeat(-np.sort(-lengths), pairs)
    dealt = np.append(dealt, np.zeros(-len(dealt) % slots, dealt.dtype)).reshape(-1, slots)
    dealt[1::2] = dealt[1::2, ::-1]
    return float(dealt.sum(0).max(initial=0))


def steps_of(tiles: Tiles, shape: TileShape) -> Ints:
    """The steps of each tile, those of the head that has most."""
    return np.maximum(-(-tiles.inner // shape.step), 1).max(0)


def is_even(part: Part, tiles: Tiles, shape: TileShape) -> bool:
    """Whether the plan knows that nearly all tiles have as many steps.

    >>> from lattend import rules
    >>> from lattend.plans.plan import plan
    >>> shape = TileShape((128,), 128, hopper=True)
    >>> [
    ...     is_even(found.parts[0], found.tiles(0, (128,)), shape)
    ...     for found in (plan(rules.strided(t=255), n=8192), plan(rules.causal(), n=8192))
    ... ]
    [True, False]
    """
    steps = steps_of(tiles, shape)
    return not part.cut_by and part.block_table is None and float(steps.mean()) >= EVEN * int(steps.max())


def chunk_counts(part: Part, tiles: Tiles, shape: TileShape, pairs: int, share: int = 1) -> Ints | None:
    """Into how many chunks each tile is cut, if that pays; `pairs` of batch elements and kv heads have them,
    and `share` heads each.

    >>> from lattend import rules
    >>> from lattend.plans.plan import plan
    >>> found = plan(rules.sinks(s=4, t=1023), n=32768)
    >>> shape = TileShape((128,), 64, hopper=True, several=True)
    >>> [
    ...     chunk_counts(part, found.tiles(place, (128,), transposed=True), shape, 16) is None
    ...     for place, part in enumerate(found.transposed)
    ... ]
    [False, True]
    """
    if len(part.axes) > 1 or part.block_table is not None or part.cut_by or not tiles.table.shape[1]:
        return None
    if shape.hopper and not shape.several:
        return None
    steps = steps_of(tiles, shape)
    slots = PROCESSORS * (1 if shape.hopper else BESIDE)
    alone = busy(steps * share + BEGIN, pairs, shape)
    best, found = max(WORTH * alone, alone - FEWER), None
    for finer in FINER:
        most = max(1, -(-int(steps.sum()) * pairs // int(slots * finer)))  # of a head
        counts = -(-steps // most)
        lengths = np.repeat(-(-steps // counts), counts)
        time = busy(lengths * share + BEGIN + SHARE, pairs, shape) + LAUNCH
        if time < best:
            best, found = time, counts
    return found


def in_chunks(choice: Choice, part: Part, tiles: Tiles, pairs: int, share: int) -> Choice:
    """The choice with its chunks, if there are any, and the time that is then expected."""
    counts = chunk_counts(part, tiles, choice.shape, pairs, share)
    if counts is None:
        return choice
    steps, slots = steps_of(tiles, choice.shape), PROCESSORS * (1 if choice.shape.hopper else BESIDE)
    lengths = np.repeat(-(-steps // counts), counts)
    longest = busy(lengths * share + BEGIN + SHARE, pairs, choice.shape) + LAUNCH
    longer = longest * slots / (float((steps * share + BEGIN).sum()) * pairs)
    whole = choice.nanoseconds + choice.left * choice.masked  # no step of a chunk is left out
    return replace(choice, nanoseconds=whole * longer, left=0.0, chunks=int(counts.sum()))


def chunked(part: Part, tiles: Tiles, counts: Ints, shape: TileShape) -> Chunks:
    """The chunks of tiles, of so many each.

    >>> from lattend import rule
    >>> from lattend.plans.plan import plan
    >>> found = plan(rule("k <= q and k < 4"), n=300)
    >>> tiles = found.tiles(0, (64,), transposed=True)
    >>> made = chunked(found.transposed[0], tiles, np.array([2]), TileShape((64,), 32))
    >>> made.table[0, :, 3:].tolist(), made.tiles.tolist()  # ten steps of 32, five each
    ([[0, 160, 3, 160, 0], [160, 300, 160, 300, 1]], [[0, 0, 0, 2]])
    """
    which = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    number, of = np.arange(len(which)) - first[which], counts[which]
    whole = tiles.table[:, which].astype(np.int64)
    begin, end = whole[..., INNER_FIRST], whole[..., INNER_END]
    # the kernels for Hopper go on by steps from a multiple of four
    at = begin + (whole[..., INNER_BASE] if part.axes[0].inner_order.period == 1 else 0)
    origin = begin - (at % 4 if shape.hopper else 0)
    steps = -(-(end - origin) // shape.step)
    low, high = (np.clip(origin + steps * cut // of * shape.step, begin, end) for cut in (number, number + 1))
    whole[..., INNER_FIRST], whole[..., INNER_END] = low, high
    for column in (FULL_FIRST, FULL_END):
        whole[..., column] = np.clip(whole[..., column], low, high)
    place = np.broadcast_to(np.arange(len(which))[:, None], (*whole.shape[:2], 1))
    table = np.concatenate([whole, place], -1).astype(np.int32)
    order = np.argsort(-(high - low).max(0), kind="stable")  # heavy ones first
    rows = tiles.table[0][:, [OUTER_SLOT, OUTER_BASE]]
    sums = np.stack([first, counts], -1).astype(np.int32)
    return Chunks(table[:, order], np.ascontiguousarray(np.concatenate([rows, sums], -1)))
