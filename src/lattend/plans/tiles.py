"""Tiles: boxes of outer slots, and for each the box of inner slots that its rows can reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.plans.part import Part, PartAxis
from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Term
from lattend.rules.language.intervals import Interval, interval

Ints = NDArray[np.int64]
PER_AXIS = ("outer_slot", "outer_base", "inner_base", "inner_first", "inner_end")
OUTER_SLOT, OUTER_BASE, INNER_BASE, INNER_FIRST, INNER_END = range(len(PER_AXIS))  # of the first axis
FULL_FIRST, FULL_END = -2, -1
FULL = ("full_first", "full_end")  # on a line: the slots that all rows of the tile attend to


@dataclass(frozen=True, eq=False)
class Tiles:
    """A table with one row for each tile: PER_AXIS numbers for each axis, then FULL.

    Inner boxes start where the first row needs them, not on a grid. `table` is [heads or 1, tiles, columns].
    Where blocks are listed, a tile's inner slots go through the blocks `lists[inner_base …]`.
    """

    shape: tuple[int, ...]
    table: NDArray[np.int32]
    lists: NDArray[np.int32] | None = None

    @property
    def axes(self) -> int:
        return len(self.shape)

    def column(self, name: str, axis: int = 0) -> NDArray[np.int32]:
        """Returns one column of the table."""
        index = PER_AXIS.index(name) + axis * len(PER_AXIS) if name in PER_AXIS else FULL.index(name) - 2
        return self.table[..., index]

    @property
    def inner(self) -> Ints:
        """How many inner slots each tile has."""
        sizes = [
            (self.column("inner_end", axis) - self.column("inner_first", axis)).astype(np.int64)
            for axis in range(self.axes)
        ]
        return prod(sizes[1:], start=sizes[0])

    def executed(self, step: int) -> int:
        """How many pairs are computed when inner slots are taken `step` at a time, averaged over heads."""
        blocks = -(-self.inner // step)
        return int(blocks.sum()) * step * prod(self.shape) // len(self.table)


def tiles(part: Part, shape: tuple[int, ...]) -> Tiles:
    """Returns all tiles of a part with outer boxes of this shape, from closed forms."""
    outer_blocks = [_outer(axis, size) for axis, size in zip(part.axes, shape, strict=True)]
    grid = np.meshgrid(*(np.arange(len(slots)) for _, slots, _ in outer_blocks), indexing="ij")
    picks = [pick.ravel() for pick in grid]
    heads = part.numbers["heads"] if part.by_head else 1
    names = {name: Interval(value, value) for name, value in part.numbers.items()}
    names[HEAD] = Interval(np.arange(heads)[:, None], np.arange(heads)[:, None])
    for axis, (classes, slots, ends), pick in zip(part.axes, outer_blocks, picks, strict=True):
        bases = axis.outer_bases[classes[pick]]
        first, last = (axis.outer_order.positions(s, bases) for s in (slots[pick], ends[pick] - 1))
        names[axis.outer] = Interval(first, last)
        names[axis.inner] = Interval(0, axis.inner_size - 1)
    columns: list[Ints] = []
    for axis, (classes, slots, _), pick in zip(part.axes, outer_blocks, picks, strict=True):
        chosen = classes[pick]
        base = axis.inner_bases[chosen]
        low, high = _touched(axis, names)
        begin = axis.inner_order.below(low, base)
        end = np.maximum(begin, axis.inner_order.below(high + 1, base))
        columns += [slots[pick], axis.outer_bases[chosen], base, begin, end]
    columns += _full(part, names, columns)
    table = np.empty((heads, len(picks[0]), len(columns)), np.int32)
    for index, column in enumerate(columns):
        table[..., index] = column
    return Tiles(shape, _ordered(_closed_where_empty(part, table, heads)))


def with_lists(part: Part, tile_table: Tiles, data: Mapping[str, NDArray[Any]]) -> Tiles:
    """The tiles of a part with a table of blocks, cut to the attended ones; others stay as they are.

    >>> from lattend import rule
    >>> from lattend.plans.plan import plan
    >>> table = np.array([[1, 0], [1, 1]])
    >>> plan(rule("chosen[q // 4, k // 4]", data={"chosen": table}), n=8).tiles(0, (4,)).inner.tolist()
    [[8, 4]]
    """
    if part.block_table is None or tile_table.lists is not None:
        return tile_table
    blocks, (heads, rows, columns) = part.block_table, part.blocks
    mask = blocks.attended(np.asarray(data[blocks.array]), part.blocks)
    row, column = np.nonzero(mask.reshape(heads * rows, columns))
    block_places = row * columns + column  # in order
    table = tile_table.table.copy()
    head = np.arange(len(table))[:, None] % heads
    mine = (head * rows + table[..., OUTER_BASE] // blocks.outer) * columns
    begin, end, *full = (
        table[..., x].astype(np.int64) for x in (INNER_FIRST, INNER_END, FULL_FIRST, FULL_END)
    )
    first = np.searchsorted(block_places, mine + begin // blocks.inner)

    def below(position: Ints) -> Ints:
        """How many slots of the listed blocks lie below a position."""
        block, within = position // blocks.inner, position % blocks.inner
        slot = np.searchsorted(block_places, mine + block)
        listed = np.append(block_places, -1)[slot] == mine + block
        return np.maximum(0, (slot - first) * blocks.inner + listed * within)

    slots = [np.where(end > begin, below(position), 0) for position in (end, *full)]
    table[..., INNER_BASE], table[..., INNER_FIRST] = first, 0
    table[..., INNER_END], table[..., FULL_FIRST] = slots[:2]
    table[..., FULL_END] = np.maximum(*slots[1:])
    return Tiles(tile_table.shape, _ordered(table), column.astype(np.int32))


def listed_positions(part: Part, tile_table: Tiles, bases: Ints, slots: Ints) -> Ints:
    """The inner positions of these slots of tiles whose lists begin at `bases`."""
    if part.block_table is None or tile_table.lists is None:
        raise ValueError("the part has no lists")
    size = part.block_table.inner
    return tile_table.lists[bases + slots // size].astype(np.int64) * size + slots % size


def _outer(axis: PartAxis, size: int) -> tuple[Ints, Ints, Ints]:
    """Class, first slot and end of slots of the tiles along one axis."""
    begin, end = axis.slots
    count = -(-(end - begin) // size)
    classes = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(classes)) - np.repeat(np.cumsum(count) - count, count)
    slots = begin[classes] + within * size
    return classes, slots, np.minimum(slots + size, end[classes])


def outer_tiles(part: Part, shape: tuple[int, ...]) -> int:
    """Returns the number of tiles of the part without making them."""
    counts: list[int] = []
    for axis, size in zip(part.axes, shape, strict=True):
        slots = axis.outer_size // (len(axis.outer_bases) or 1) + 1
        slots = slots if axis.class_slots is None else min(axis.class_slots, axis.outer_size)
        counts.append(len(axis.outer_bases) * -(-slots // size))
    return prod(counts)


def _touched(axis: PartAxis, names: dict[str, Interval]) -> tuple[Ints, Ints]:
    """The least and greatest inner position that some row of each tile may attend to."""
    low = _extreme(np.maximum, 0, (*axis.lows, *axis.near_lows), names, 0)
    high = _extreme(np.minimum, axis.inner_size - 1, (*axis.highs, *axis.near_highs), names, 1)
    return low, high


def _extreme(
    choose: np.ufunc, start: int, terms: tuple[Term, ...], names: dict[str, Interval], end: int
) -> Ints:
    """Returns the maximum or minimum of one end of these terms, except terms that look up data."""
    best = np.full(1, start, np.int64)
    for term in terms:
        if expr.arrays(term):
            continue
        best = choose(best, interval(term, names)[end])
    return best


def _full(part: Part, names: dict[str, Interval], columns: list[Ints]) -> list[Ints]:
    """The inner slots that every row of the tile attends to, if the entries that must be equal are."""
    if not part.knows_full:
        nothing = np.zeros(1, np.int64)
        return [nothing, nothing]
    axis, base, begin, end = part.axes[0], columns[INNER_BASE], columns[INNER_FIRST], columns[INNER_END]
    low = _extreme(np.maximum, 0, axis.lows, names, 1)
    high = _extreme(np.minimum, axis.inner_size - 1, axis.highs, names, 0)
    first = np.clip(axis.inner_order.below(low, base), begin, end)
    return [first, np.clip(axis.inner_order.below(high + 1, base), first, end)]


def _closed_where_empty(part: Part, table: NDArray[np.int32], heads: int) -> NDArray[np.int32]:
    """The table with no inner slots where an axis has none, or where a head is left out."""
    width = len(PER_AXIS)
    empty = np.zeros(table.shape[:2], bool)
    for axis in range(len(part.axes)):
        empty |= table[..., axis * width + INNER_END] <= table[..., axis * width + INNER_FIRST]
    for gate in part.gates:
        held = evaluate(gate, {**part.numbers, HEAD: np.arange(heads)}, {})
        empty |= ~np.broadcast_to(np.asarray(held, bool), (heads,))[:, None]
    for axis in range(len(part.axes)):
        table[..., axis * width + INNER_END] = np.where(
            empty, table[..., axis * width + INNER_FIRST], table[..., axis * width + INNER_END]
        )
    table[..., FULL_END] = np.where(empty, table[..., FULL_FIRST], table[..., FULL_END])
    return table


def _ordered(table: NDArray[np.int32]) -> NDArray[np.int32]:
    """Heavy tiles first, so that none is left alone at the end; equal ones stay in order."""
    width = len(PER_AXIS)
    total = np.ones(table.shape[1], np.int64)
    for axis in range(table.shape[-1] // width):
        total *= (table[..., axis * width + INNER_END] - table[..., axis * width + INNER_FIRST]).sum(0)
    if not total.size or total.min() == total.max():
        return table
    return np.ascontiguousarray(table[:, np.argsort(-total, kind="stable")])
