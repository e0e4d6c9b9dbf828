"""TileLists: a plan as tiles of 16 queries, each with the keys that some of them attend to.

A key comes with 16 bits, one for each query of the tile. Tiles that differ only in where they lie share a
list, which holds offsets; so a sliding window has one list for all tiles but those at its beginning.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from lattend.attend.kernels.cpu.equal_tiles import EqualTiles, cut_to, equal_tiles
from lattend.plans.plan import Plan
from lattend.plans.tiles import Tiles, with_lists
from lattend.rules.axes import HEADS

Ints = NDArray[np.int64]
ROWS = 16  # queries of a tile
SHAPES = {
    1: ((16,),),
    2: ((4, 4), (2, 8), (8, 2), (1, 16), (16, 1)),
    3: ((2, 2, 4), (1, 4, 4), (4, 2, 2), (1, 1, 16)),
}
BEGIN = 24  # what a tile costs beside its keys, in keys
MAX_ENTRIES = 1 << 22  # of lists that tiles do not share


class TileListsStruct(ctypes.Structure):
    """The struct TileLists of source/tiles.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("heads", "stages", "covered")),
        *((name, ctypes.c_void_p) for name in ("ranges", "tiles", "query_offsets", "query_counts")),
        *((name, ctypes.c_void_p) for name in ("list_begins", "key_offsets", "key_bits")),
    )


@dataclass(frozen=True, eq=False)
class TileLists:
    """The tiles of all parts of a plan, and of all heads where these differ."""

    stages: int  # a query is in at most one tile of each
    pairs: int  # in tiles, of a head
    described: TileListsStruct
    arrays: tuple[NDArray[Any], ...] = field(repr=False)  # what `described` points to

    @property
    def address(self) -> int:
        return ctypes.addressof(self.described)


_KNOWN: WeakKeyDictionary[Plan, TileLists] = WeakKeyDictionary()


def tile_lists(found: Plan) -> TileLists:
    """The tiles of a plan whose arrays are all bound; made once and remembered."""
    if found not in _KNOWN:
        _KNOWN[found] = _made(found)
    return _KNOWN[found]


def best_rows(found: Plan, place: int) -> tuple[int, ...]:
    """The box of queries whose tiles have the fewest keys."""
    part = found.parts[place]
    if part.block_table is not None:  # all rows of a block have the same keys
        return (min(part.block_table.outer, ROWS),)

    def work(shape: tuple[int, ...]) -> int:
        inner = found.tiles(place, shape).inner
        return int(inner.sum()) + BEGIN * int((inner > 0).sum())

    return min(SHAPES[len(part.axes)], key=work)


def entries(found: Plan) -> int:
    """How many entries the lists have that tiles do not share."""
    own = [place for place, part in enumerate(found.parts) if not part.exact or part.block_table is not None]
    return sum(int(found.tiles(place, best_rows(found, place)).inner.sum()) for place in own)


def pairs_in_tiles(found: Plan) -> int:
    """How many pairs the tiles have, attended or not; of all heads where these differ."""
    shapes = [best_rows(found, place) for place in range(len(found.parts))]
    return sum(int(found.tiles(place, x).inner.sum()) * prod(x) for place, x in enumerate(shapes))


class _Lists:
    """Lists of keys and shapes of queries so far."""

    def __init__(self) -> None:
        self.begins, self.offsets, self.bits = [np.zeros(1, np.int64)], list[Ints](), list[Ints]()
        self.shapes, self.counts = list[Ints](), list[int]()
        self.lists, self._entries = 0, 0

    def add(self, offsets: Ints, bits: Ints) -> Ints:
        """New lists, one for each row of offsets and bits, without the keys that nobody attends to."""
        attended = bits > 0
        self.offsets.append(offsets[attended])
        self.bits.append(bits[attended])
        self.begins.append(self._entries + attended.sum(1).cumsum())
        self._entries = int(self.begins[-1][-1])
        self.lists += len(offsets)
        return np.arange(self.lists - len(offsets), self.lists)

    def shape(self, offsets: Ints) -> int:
        """The place of a new shape of queries; the last of them stands in for those that there are not."""
        self.shapes.append(np.append(offsets, np.repeat(offsets[-1:], ROWS - len(offsets))))
        self.counts.append(len(offsets))
        return len(self.counts) - 1


def _made(found: Plan) -> TileLists:
    lists, tables, ranges, pairs, end = _Lists(), list[Ints](), list[list[int]](), 0, 0
    by_head = any(part.by_head for part in found.parts)
    heads = found.rule.values[HEADS] if by_head else 1
    queries, covered = prod(axis.outer_size for axis in found.axes), True
    for head in range(heads):
        seen = np.zeros(queries, bool)
        for place in range(len(found.parts)):
            mine = seen.copy()
            stage: list[Ints] = []
            for some in _equal_tiles(found, place, head):
                positions = some.queries.positions()
                before = seen[positions]
                covered &= bool((before.all(1) == before.any(1)).all())
                mine[positions] = True
                stage.append(_rows(lists, some, before.sum(1) > 0))
                pairs += positions.size * some.keys.offsets.shape[1]
            table = np.concatenate([np.empty((0, 5), np.int64), *stage])
            tables.append(table[np.argsort(table[:, 0], kind="stable")])
            ranges.append([end, end + len(table)])
            end, seen = end + len(table), mine
        covered &= bool(seen.all())
    arrays = (
        np.array(ranges, np.int64),
        np.concatenate([np.empty((0, 5), np.int64), *tables]),
        np.array(lists.shapes, np.int32),
        np.array(lists.counts, np.int64),
        np.concatenate(lists.begins),
        np.concatenate([np.empty(0, np.int32), *lists.offsets]).astype(np.int32),
        np.concatenate([np.empty(0, np.uint16), *lists.bits]).astype(np.uint16),
    )
    addresses = [array.ctypes.data for array in arrays]
    described = TileListsStruct(heads, len(found.parts), int(covered), *addresses)
    return TileLists(len(found.parts), pairs // max(1, heads), described, arrays)


def _equal_tiles(found: Plan, place: int, head: int) -> Iterator[EqualTiles]:
    part, arrays = found.parts[place], found.rule.data
    tiles: Tiles = cut_to(part, found.tiles(place, best_rows(found, place)), arrays)
    return equal_tiles(part, with_lists(part, tiles, arrays), head, arrays)


def _rows(lists: _Lists, some: EqualTiles, merges: NDArray[np.bool_]) -> Ints:
    """The tiles as a table: where queries and keys begin, shape and list, and whether they merge."""
    bits, offsets, outer = _bits(some.mask), some.keys.offsets, some.queries.offsets
    tiles = len(some.keys.firsts)
    if bits.ndim == 1 and bool((offsets == offsets[:1]).all()):
        which = np.broadcast_to(lists.add(offsets[:1], bits[None]), tiles)
    else:
        each = (tiles, offsets.shape[1])
        which = lists.add(np.broadcast_to(offsets, each), np.broadcast_to(bits, each))
    if bool((outer == outer[:1]).all()):
        places = np.full(tiles, lists.shape(outer[0]))
    else:
        shapes, shape = np.unique(outer, axis=0, return_inverse=True)
        places = np.array([lists.shape(row) for row in shapes])[shape.ravel()]
    return np.stack([some.queries.firsts, places, some.keys.firsts, which, merges.astype(np.int64)], 1)


def _bits(mask: NDArray[np.bool_]) -> Ints:
    """Which queries attend to each key, [columns] or [tiles, columns] from [rows, columns] or [tiles, …].

    >>> _bits(np.array([[True, False], [True, True]])).tolist()  # 14 bits more are those of the last row
    [65535, 65534]
    """
    last = np.repeat(mask[..., -1:, :], ROWS - mask.shape[-2], axis=-2)
    low, high = np.moveaxis(np.packbits(np.concatenate([mask, last], -2), axis=-2, bitorder="little"), -2, 0)
    return low | high.astype(np.int64) << 8
