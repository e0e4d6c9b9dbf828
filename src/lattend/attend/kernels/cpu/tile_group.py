"""TileGroup: equal tiles of queries and keys, where they lie, and which of their pairs are attended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lattend.errors import TensorError

MAX_MASKED_RUNS = 4
BLOCKED = -3e38  # added to the score of a pair that is not attended


@dataclass(frozen=True)
class Strided:
    """Positions start + tile * tile_step + row * row_step, which are read in place.

    >>> Strided(0, 2, 3, tile_step=2).positions().tolist()  # 2 tiles of 3 rows, the second 2 further on
    [[0, 1, 2], [2, 3, 4]]
    """

    start: int
    tiles: int
    rows: int
    tile_step: int
    row_step: int = 1

    def __getitem__(self, tiles: slice) -> Strided:
        """Those of some tiles that follow each other."""
        first, end, _ = tiles.indices(self.tiles)
        return replace(self, start=self.start + self.tile_step * first, tiles=end - first)

    def positions(self) -> Tensor:
        """All of them, int64 [tiles, rows]."""
        tiles, rows = torch.arange(self.tiles), torch.arange(self.rows)
        return self.start + self.tile_step * tiles[:, None] + self.row_step * rows

    @property
    def last(self) -> int:
        return self.start + self.tile_step * (self.tiles - 1) + self.row_step * (self.rows - 1)

    @cached_property
    def phases(self) -> int:
        """The least p for which tiles i, i + p, i + 2p, … have no position in common."""
        reach = self.row_step * (self.rows - 1) // self.tile_step if self.tile_step else self.tiles
        p = 1
        while any(self._meets(apart) for apart in range(p, min(self.tiles, reach + 1), p)):
            p += 1
        return p

    def _meets(self, apart: int) -> bool:
        rows, rest = divmod(self.tile_step * apart, self.row_step)
        return rest == 0 and rows < self.rows


Positions = Strided | Tensor


class MaskedRun(NamedTuple):
    """Keys first..end of a tile that not all its queries attend to, and what is added to their scores."""

    first: int
    end: int
    added: Tensor  # float32 [end - first, M]


@dataclass(frozen=True, eq=False)
class TileGroup:
    """T tiles of M queries by W keys each; made by `tile_group`."""

    queries: Positions
    keys: Positions
    shape: tuple[int, int, int]  # T, M, W
    last: tuple[int, int]  # the last query and the last key
    masked_runs: tuple[MaskedRun, ...]  # where the mask that all tiles share is not all True
    masked: Tensor | None  # uint8 [T, W, M], where tiles have masks of their own
    first: bool = False  # whether no query is in a group before this one

    @cached_property
    def _added(self) -> Tensor | None:
        """0 where a pair is attended and -inf elsewhere, [M, W] or [1, T, M, W]; None is all pairs."""
        if self.masked is not None:
            return torch.where(self.masked.mT > 0, -inf, 0.0)[None]
        if not self.masked_runs:
            return None
        _, rows, columns = self.shape
        added = torch.zeros(rows, columns)
        for run in self.masked_runs:
            added[:, run.first : run.end] = torch.where(run.added.mT < 0, -inf, 0.0)
        return added

    def additive(self, dtype: torch.dtype) -> Tensor | None:
        """What is added to scores, 0 or -inf, as torch's own attention wants it; None is nothing."""
        return None if self._added is None else self._added.to(dtype)

    @cached_property
    def empty(self) -> Tensor | None:
        """Queries that have no key in their tile, [M] or [1, T, M]; None if there are none."""
        none = None if self._added is None else (self._added == -inf).all(-1)
        return none if none is not None and bool(none.any()) else None

    def pieces(self, tiles: int) -> Iterator[TileGroup]:
        """The same pairs in groups of at most so many tiles."""
        if tiles >= self.shape[0]:
            yield self
            return
        for first in range(0, self.shape[0], tiles):
            some = slice(first, first + tiles)
            queries, keys = self.queries[some], self.keys[some]
            last = tuple(x.last if isinstance(x, Strided) else int(x.max()) for x in (queries, keys))
            shape = (min(tiles, self.shape[0] - first), *self.shape[1:])
            own = None if self.masked is None else self.masked[some]
            yield replace(self, queries=queries, keys=keys, shape=shape, last=last, masked=own)


def tile_group(queries: Positions, keys: Positions, mask: Tensor | None = None) -> TileGroup:
    """A group from positions [T, M] and [T, W] and a bool mask [M, W] or [T, M, W]; None is all pairs.

    A query comes once in a group, a key once in a tile. Positions in even steps become a Strided.
    """
    queries, (t, m), last_query = _checked("queries", queries)
    keys, (t_keys, w), last_key = _checked("keys", keys)
    if t != t_keys:
        raise TensorError(f"queries come in {t} tiles and keys in {t_keys}; a group has one number of tiles")
    if _repeats(queries, last_query):
        raise TensorError("a query comes twice in a group; put its keys into one tile, or into two groups")
    shape, masked_runs, masked = (t, m, w), (), None
    if mask is not None:
        if mask.dtype != torch.bool or mask.shape not in ((m, w), shape):
            raise TensorError(
                f"mask must be bool {[m, w]} or {[t, m, w]}, not {mask.dtype} {list(mask.shape)}"
            )
        if mask.ndim == 3 and bool((mask == mask[:1]).all()):
            mask = mask[0]
        if mask.ndim == 2:
            masked_runs = tuple(_masked_runs(mask.mT))
        else:
            masked = (~mask).mT.contiguous().to(torch.uint8)
    return TileGroup(queries, keys, shape, (last_query, last_key), masked_runs, masked)


def in_sequence(groups: Sequence[TileGroup]) -> list[TileGroup]:
    """The groups, each with whether none of its queries is in one before it."""
    size = max((group.last[0] + 1 for group in groups), default=0)
    seen = torch.zeros(size, dtype=torch.bool)
    found: list[TileGroup] = []
    for group in groups:
        queries = group.queries if isinstance(group.queries, Tensor) else group.queries.positions()
        found.append(replace(group, first=not bool(seen[queries].any())))
        seen[queries] = True
    return found


def _checked(name: str, at: Positions) -> tuple[Positions, tuple[int, ...], int]:
    """The positions, as a Strided if they can be, how many they are, and the last of them."""
    if isinstance(at, Strided):
        if min(at.start, at.tile_step, at.tiles - 1, at.rows - 1, at.row_step - 1) < 0:
            raise TensorError(f"{name} must be at least one position from 0 on, in steps forward, not {at}")
        return at, (at.tiles, at.rows), at.last
    if at.dtype != torch.int64 or at.ndim != 2 or at.numel() == 0 or int(at.min()) < 0:
        raise TensorError(f"{name} must be positions from 0 on, int64 [tiles, rows], not {at}")
    return _strided(at) or at, tuple(at.shape), int(at.max())


def _repeats(at: Positions, last: int) -> bool:
    if isinstance(at, Strided):
        return at.phases > 1
    seen = torch.zeros(last + 1, dtype=torch.bool)
    seen[at.flatten()] = True
    return int(seen.sum()) < at.numel()


def _strided(positions: Tensor) -> Strided | None:
    tiles, rows = positions.shape
    start = int(positions[0, 0])
    tile_step = int(positions[1, 0]) - start if tiles > 1 else rows
    row_step = int(positions[0, 1]) - start if rows > 1 else 1
    span = Strided(start, tiles, rows, tile_step, row_step)
    even = tile_step >= 0 and row_step > 0 and torch.equal(span.positions(), positions)
    return span if even else None


def _masked_runs(mask: Tensor) -> Iterator[MaskedRun]:
    """The runs of keys that a mask [W, M] does not attend for all queries."""
    partial = (~mask.all(1)).numpy().astype(np.int8)
    turns = np.flatnonzero(np.diff(partial, prepend=0, append=0)).tolist()
    if len(turns) > 2 * MAX_MASKED_RUNS:  # a few long additions rather than many short ones
        turns = [turns[0], turns[-1]]
    for first, end in zip(turns[::2], turns[1::2], strict=True):
        yield MaskedRun(first, end, torch.where(mask[first:end], 0.0, BLOCKED).contiguous())
