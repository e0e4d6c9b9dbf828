"""EqualTiles: the tiles of a part of a plan, those of one shape and one mask together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lattend.attend.kernels.triton.tables import cut
from lattend.plans.part import Part, PartAxis
from lattend.plans.tiles import PER_AXIS, Tiles, listed_positions
from lattend.rules.language.evaluation import evaluate, evaluate_term
from lattend.rules.language.expr import Term

Ints = NDArray[np.int64]
Data = Mapping[str, NDArray[Any]]
CHUNK = 1 << 22  # pairs whose masks are made at once


def cut_to(part: Part, tiles: Tiles, arrays: Data) -> Tiles:
    """The tiles cut to what the data leave."""
    if not part.cut_by:
        return tiles
    given = {
        name: torch.tensor(arrays[name] + np.uint8(0))[None] for name in part.cut_by
    }  # no bool is sorted
    table = cut(part, torch.as_tensor(tiles.table, device="cpu")[None], prod(tiles.shape), given)
    return replace(tiles, table=table[0].numpy())


class Places(NamedTuple):
    """The positions that each of some tiles has: the first, and how far behind it each lies."""

    firsts: Ints  # [tiles]
    offsets: Ints  # [tiles, size], or [1, size] where tiles have the same

    def at(self, which: NDArray[np.bool_] | slice) -> Places:
        """Those of some of the tiles."""
        return Places(self.firsts[which], self.offsets if len(self.offsets) == 1 else self.offsets[which])

    def positions(self) -> Ints:
        """[tiles, size]."""
        return self.firsts[:, None] + self.offsets


class EqualTiles(NamedTuple):
    """Tiles of one shape: their queries, their keys, and which pairs are attended."""

    queries: Places
    keys: Places
    mask: NDArray[np.bool_]  # [rows, columns], or [tiles, rows, columns] where they differ


def equal_tiles(part: Part, tiles: Tiles, head: int, arrays: Data) -> Iterator[EqualTiles]:
    """The tiles of a part, those with the same mask together."""
    table = tiles.table[head % len(tiles.table)].astype(np.int64)
    table = table[tiles.inner[head % len(tiles.table)] > 0]
    width = len(PER_AXIS)
    outer = [
        rows_along(axis, tiles.shape[a], table[:, a * width], table[:, a * width + 1])
        for a, axis in enumerate(part.axes)
    ]
    inner = [table[:, a * width + 4] - table[:, a * width + 3] for a in range(len(part.axes))]
    kinds, which = _distinct([*outer, *inner])
    for kind, sizes in enumerate(kinds):
        rows = table[which == kind]
        axes = len(part.axes)
        yield from _alike(part, tiles, rows, sizes[:axes].tolist(), sizes[axes:].tolist(), head, arrays)


def _distinct(columns: list[Ints]) -> tuple[Ints, Ints]:
    """The different rows of a table in order, and which of them each of its rows is.

    >>> _distinct([np.array([2, 1, 2]), np.array([5, 9, 5])])
    (array([[1, 9],
           [2, 5]]), array([1, 0, 1]))
    """
    sizes = tuple(int(column.max(initial=0)) + 1 for column in columns)
    if prod(sizes) >= 1 << 62:
        found, which = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        return found, which.ravel()
    codes, which = np.unique(np.ravel_multi_index(columns, sizes), return_inverse=True)  # one number a row
    return np.stack(np.unravel_index(codes, sizes), axis=1), which


def rows_along(axis: PartAxis, size: int, slot: Ints, base: Ints) -> Ints:
    """How many rows of each tile exist along an axis, from its first slot and its base on."""
    end = axis.outer_order.below(axis.last + 1, base)
    if axis.class_slots is not None:
        end = np.minimum(end, axis.class_slots)
    return np.minimum(size, end - slot)


def _alike(
    part: Part, tiles: Tiles, table: Ints, outer: list[int], inner: list[int], head: int, arrays: Data
) -> Iterator[EqualTiles]:
    """Tiles of one shape, cut into those with the same bounds."""
    rows = [_slots(part, table, a, outer[a], "outer") for a in range(len(outer))]  # [tiles, size] each
    listed = None
    if part.block_table is not None:
        listed = listed_positions(part, tiles, table[:, 2, None], np.arange(inner[0])[None])
    names: dict[str, Any] = {**part.numbers, "head": head}
    for a, axis in enumerate(part.axes):
        shape = [len(table)] + [outer[a] if b == a else 1 for b in range(len(outer))]
        names[axis.outer] = rows[a].reshape(shape)
    bounds: list[Ints] = []
    whole = (len(table), *outer)
    for a, axis in enumerate(part.axes):
        base, first = table[:, a * len(PER_AXIS) + 2], table[:, a * len(PER_AXIS) + 3]
        low = _extreme(np.maximum, 0, axis.lows, names, arrays, whole)
        high = _extreme(np.minimum, axis.inner_size - 1, axis.highs, names, arrays, whole)
        for position in (low, high + 1):
            if listed is None:
                slot = axis.inner_order.below(position, base[:, None]) - first[:, None]
            else:
                slot = _count_below(listed, position, axis.inner_size)
            bounds.append(np.clip(slot, 0, inner[a]))
    queries = _places(part, table, outer, "outer")
    keys = _places(part, table, inner, "inner") if listed is None else _counted_from_first(listed)
    if not part.exact:
        columns = [_slots(part, table, a, inner[a], "inner") for a in range(len(inner))]
        columns = columns if listed is None else [listed]
        yield from _each_its_own(part, bounds, queries, keys, rows, columns, names, arrays, inner)
        return
    limits = np.stack(bounds, axis=1)
    if bool((limits == limits[:1]).all()):  # of most tiles; no need to sort them
        yield EqualTiles(queries, keys, _mask(limits[:1], inner)[0])
        return
    shapes, which = np.unique(limits, axis=0, return_inverse=True)
    for kind, shape in enumerate(shapes):
        mine = which.ravel() == kind
        mask = _mask(shape[None], inner)[0]
        yield EqualTiles(queries.at(mine), keys.at(mine), mask)


def _count_below(columns: Ints, positions: Ints, size: int) -> Ints:
    """How many of a tile's columns, in order and all below `size`, lie below each of its positions."""
    shift = np.arange(len(columns))[:, None] * size
    found = np.searchsorted((columns + shift).ravel(), np.clip(positions, 0, size) + shift)
    return found - np.arange(len(columns))[:, None] * columns.shape[1]


def _slots(part: Part, table: Ints, a: int, size: int, side: str) -> Ints:
    axis = part.axes[a]
    order = axis.outer_order if side == "outer" else axis.inner_order
    slot, base = (0, 1) if side == "outer" else (3, 2)
    return order.positions(
        table[:, a * len(PER_AXIS) + slot, None] + np.arange(size), table[:, a * len(PER_AXIS) + base, None]
    )


def _places(part: Part, table: Ints, sizes: list[int], side: str) -> Places:
    """The flat positions of tiles; those at equal distances are counted for one tile only."""
    orders = [axis.outer_order if side == "outer" else axis.inner_order for axis in part.axes]
    if any(order.group > 1 for order in orders):
        along = [_slots(part, table, a, size, side) for a, size in enumerate(sizes)]
        return _counted_from_first(_flat(part, along, side))
    firsts = [_slots(part, table, a, 1, side) for a in range(len(sizes))]
    steps = [np.arange(size)[None] * order.period for size, order in zip(sizes, orders, strict=True)]
    return Places(_flat(part, firsts, side)[:, 0], _flat(part, steps, side))


def _counted_from_first(positions: Ints) -> Places:
    return Places(positions[:, 0], positions - positions[:, :1])


def _extreme(
    choose: np.ufunc, start: int, terms: tuple[Term, ...], names: dict[str, Any], arrays: Data, shape: Any
) -> Ints:
    best = np.full(shape, start, np.int64)
    for term in terms:
        best = choose(best, evaluate_term(term, names, arrays))
    return best.reshape(shape[0], -1)


def _flat(part: Part, positions: list[Ints], side: str) -> Ints:
    """Flat positions [tiles, rows or columns] from those along each axis, the last fastest."""
    flat = np.zeros((len(positions[0]), 1), np.int64)
    for axis, along in zip(part.axes, positions, strict=True):
        size = axis.outer_size if side == "outer" else axis.inner_size
        flat = (flat[:, :, None] * size + along[:, None, :]).reshape(len(along), -1)
    return flat


def _mask(bounds: Ints, inner: list[int]) -> NDArray[np.bool_]:
    """Which columns each row attends, [tiles, rows, columns], from its bounds [tiles, 2*axes, rows]."""
    tiles, _, rows = bounds.shape
    attended = np.ones((tiles, rows, 1), bool)
    for a, size in enumerate(inner):
        slot = np.arange(size)
        along = (slot >= bounds[:, 2 * a, :, None]) & (slot < bounds[:, 2 * a + 1, :, None])
        attended = (attended[:, :, :, None] & along[:, :, None, :]).reshape(tiles, rows, -1)
    return attended


def _each_its_own(
    part: Part, bounds: list[Ints], queries: Places, keys: Places, rows: list[Ints], columns: list[Ints],
    names: dict[str, Any], arrays: Data, inner: list[int],
) -> Iterator[EqualTiles]:  # fmt: skip
    """Tiles whose masks are computed pair by pair, some at a time."""
    shape = queries.offsets.shape[1], keys.offsets.shape[1]
    count = max(1, CHUNK // max(1, prod(shape)))
    axes = len(inner)
    for begin in range(0, len(queries.firsts), count):
        some = slice(begin, begin + count)
        env = dict(names)
        for a, axis in enumerate(part.axes):
            env[axis.outer] = _on_axis(rows[a][some], a, 2 * axes)
            env[axis.inner] = _on_axis(columns[a][some], axes + a, 2 * axes)
        held = np.asarray(evaluate(part.rest, env, arrays), bool)
        tiles = len(queries.firsts[some])
        sizes = (tiles, *(x.shape[1] for x in rows), *(x.shape[1] for x in columns))
        held = np.broadcast_to(held, sizes).reshape(tiles, *shape)
        mask = held & _mask(np.stack(bounds, axis=1)[some], inner)
        live = np.asarray(mask.any((1, 2)))
        if live.any():
            yield EqualTiles(queries.at(some).at(live), keys.at(some).at(live), mask[live])


def _on_axis(positions: Ints, axis: int, axes: int) -> Ints:
    """Positions [tiles, size] as [tiles, 1, …, size, …, 1], to be broadcast with those of other axes."""
    return positions.reshape(len(positions), *(positions.shape[1] if a == axis else 1 for a in range(axes)))
