"""The CPU kernel: a plan's tiles, those of one shape and mask together, run as batched products in torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.arrays import arrays_of, batch_of
from lattend.attend.bias import PairPositions, add_gradients, as_gradients, bias_of, empty_sums
from lattend.attend.call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.dropout import kept_weights
from lattend.attend.kernels.cpu import library
from lattend.attend.kernels.cpu.tile_group import TileGroup, in_sequence, tile_group
from lattend.attend.kernels.cpu.tiles import GradientSums, LargestScores, OnlineSoftmax
from lattend.attend.kernels.triton.tables import cut
from lattend.attend.memory import per_kv_head
from lattend.attend.padding import real_keys
from lattend.plans.part import Part, PartAxis
from lattend.plans.plan import Plan, plan
from lattend.plans.tiles import PER_AXIS, Tiles, listed_positions, with_lists
from lattend.rules.language.evaluation import evaluate, evaluate_term
from lattend.rules.language.expr import Term

Ints = NDArray[np.int64]
Data = Mapping[str, NDArray[Any]]
ROWS = {
    1: ((32,), (64,), (128,), (256,)),
    2: ((4, 8), (8, 8), (8, 16), (1, 128), (128, 1)),
    3: ((4, 4, 4), (1, 8, 8)),
}
GROUP = 30_000  # what a group of tiles costs beside its pairs, in pairs: measured on two cores
MOST_MASKS = 1 << 22  # pairs with masks of their own that are remembered
CHUNK = 1 << 22  # pairs whose masks or bias are made at once


def why_not(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None:
    """Why this kernel cannot take the call, or None when it can."""
    if q.device.type != "cpu":
        return f"it runs on the CPU, and q is on {q.device.type}"
    return None if plan(call.rule).fits else "the rule's numbers lead beyond 64 bits"


def forward(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp."""
    out, lse = (
        q.new_empty(*q.shape[:-1], v.shape[-1]),
        q.new_empty(q.shape[:-1], dtype=torch.promote_types(q.dtype, torch.float32)),
    )
    for some in _members(call, q):
        mine = _of(some, q, k, v)
        if library.takes(call, some.groups, mine[0], mine[2]):
            found, sums = library.forward(some.groups, call.scale, *mine)
            if some.all_of(q):
                return found.to(q.dtype).view(out.shape), sums.view(lse.shape)
            some.put(out, found)
            some.put(lse, sums)
            continue
        biased, real = call.term is not None, some.real(call, k)
        run = OnlineSoftmax(*mine, call.scale, softcap=call.softcap, biased=biased, real=real)
        for group in some.pieces(call):
            kept = _kept(call, some, group, q)
            run.add(group, _bias(call, some, group, run.q.dtype), kept)
        found, sums = run.finish()
        some.put(out, found)
        some.put(lse, sums)
    return out, lse


def largest(call: AttentionCall, q: Tensor, k: Tensor) -> Tensor:
    """The largest score of each query, -inf where it has no key."""
    found = q.new_empty(q.shape[:-1], dtype=torch.promote_types(q.dtype, torch.float32))
    for some in _members(call, q):
        run = LargestScores(*_of(some, q, k, k)[:2], call.scale, call.softcap, some.real(call, k))
        for group in some.pieces(call):
            run.add(group, _bias(call, some, group, run.q.dtype))
        some.put(found, run.finish())
    return found


def backward(call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k and v, and of the tensors of the bias; the same on every run."""
    grad_out, grad_lse, q, k, v, out, lse = given
    wide = torch.promote_types(q.dtype, torch.float32)
    dq = torch.empty_like(q, dtype=wide)
    dk, dv = (x.new_zeros(x.shape[0], q.shape[1], *x.shape[2:], dtype=wide) for x in (k, v))
    sums = empty_sums(call, wide)
    for some in _members(call, q):
        theirs = None if grad_lse is None else some.of(grad_lse)
        inputs = BackwardInputs(some.of(grad_out), theirs, *_of(some, q, k, v), some.of(out), some.of(lse))
        if grad_lse is None and library.takes(call, some.groups, inputs.q, inputs.v):
            found = library.backward(some.groups, call.scale, inputs)
            for whole, mine in zip((dq, dk, dv), found, strict=True):
                some.put(whole, mine)
            continue
        run = GradientSums(inputs, call.scale, call.softcap, some.real(call, k))
        for group in some.pieces(call):
            bias = _bias(call, some, group, wide)
            slopes = torch.zeros_like(bias) if bias is not None and call.learned else None
            run.add(group, bias, slopes, _kept(call, some, group, q))
            if slopes is not None:
                add_gradients(call, _pairs(some, group), slopes, sums)
        for whole, mine in ((dq, run.dq), (dk, run.dk), (dv, run.dv)):
            some.put(whole, mine)
    dk, dv = per_kv_head(dk, k), per_kv_head(dv, v)
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), as_gradients(call, sums)


@dataclass(frozen=True, eq=False)
class Members:
    """Heads of batch elements that attend the same pairs, and those pairs as groups of tiles."""

    batch: slice
    heads: slice
    groups: list[TileGroup]

    def pieces(self, call: AttentionCall) -> Iterator[TileGroup]:
        """The groups; with a bias or dropout in pieces, since these are held for all pairs of a group."""
        members = (self.batch.stop - self.batch.start) * (self.heads.stop - self.heads.start)
        for group in self.groups:
            _, rows, columns = group.shape
            held = call.term is not None or call.seed is not None
            most = CHUNK // max(1, rows * columns * members) if held else group.shape[0]
            yield from group.pieces(max(1, most))

    def all_of(self, q: Tensor) -> bool:
        """Whether they are all heads of all batch elements."""
        return (self.batch, self.heads) == (slice(0, q.shape[0]), slice(0, q.shape[1]))

    def of(self, x: Tensor) -> Tensor:
        """Their part of [batch, heads, …], as [members, …]."""
        return x[self.batch, self.heads].flatten(0, 1)

    def real(self, call: AttentionCall, k: Tensor) -> Tensor | None:
        """Which of their keys are no padding, [members, m]."""
        found = real_keys(call, k.shape[2])
        heads = self.heads.stop - self.heads.start
        return None if found is None else found[self.batch].repeat_interleave(heads, 0)

    def put(self, x: Tensor, found: Tensor) -> None:
        part = x[self.batch, self.heads]
        part.copy_(found.view(part.shape))


def _of(some: Members, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Their queries, and the keys and values they share, once for each."""
    share = q.shape[1] // k.shape[1]
    first, end, _ = some.heads.indices(q.shape[1])
    k, v = (x[some.batch] if share == 1 else x[some.batch].repeat_interleave(share, 1) for x in (k, v))
    return some.of(q), k[:, first:end].flatten(0, 1), v[:, first:end].flatten(0, 1)


def _members(call: AttentionCall, q: Tensor) -> Iterator[Members]:
    """All heads of all batch elements, together where they attend the same pairs."""
    found = plan(call.rule)
    batch, heads = q.shape[:2]
    by_head = any(part.by_head for part in found.parts)
    data = [part for part in found.parts if part.data]
    elements = range(batch) if data and batch_of(call) is not None else [None]
    for element in elements:
        arrays = arrays_of(call, element or 0)
        rows = slice(0, batch) if element is None else slice(element, element + 1)
        for head in range(heads) if by_head else [None]:
            columns = slice(0, heads) if head is None else slice(head, head + 1)
            yield Members(rows, columns, _groups(found, head or 0, arrays, remember=not data))


_KNOWN: WeakKeyDictionary[Plan, dict[int, list[TileGroup]]] = WeakKeyDictionary()


def _groups(found: Plan, head: int, arrays: Data, *, remember: bool) -> list[TileGroup]:
    known = _KNOWN.setdefault(found, {})
    if head in known:
        return known[head]
    made: list[TileGroup] = []
    for place, part in enumerate(found.parts):
        tiles = cut_to(part, found.tiles(place, best_rows(found, place)), arrays)
        tiles = with_lists(part, tiles, arrays)
        made += [_group(*some) for some in equal_tiles(part, tiles, head, arrays)]
    made = in_sequence(made)
    masks = sum(group.masked.numel() for group in made if group.masked is not None)
    if remember and masks * found.rule.values.get("heads", 1) <= MOST_MASKS:
        known[head] = made
    return made


def cut_to(part: Part, tiles: Tiles, arrays: Data) -> Tiles:
    """The tiles cut to what the data leave."""
    if not part.cut_by:
        return tiles
    given = {name: torch.tensor(arrays[name])[None] for name in part.cut_by}
    table = cut(part, torch.as_tensor(tiles.table, device="cpu")[None], prod(tiles.shape), given)
    return replace(tiles, table=table[0].numpy())


def best_rows(found: Plan, place: int) -> tuple[int, ...]:
    """The box of queries with the least work: the pairs in tiles, and what it takes to begin them."""
    axes, listed = len(found.parts[place].axes), found.parts[place].block_table
    if listed is not None:  # all rows of a block have the same keys
        return (min(listed.outer, ROWS[1][-1][0]),)

    def work(shape: tuple[int, ...]) -> float:
        tiles = found.tiles(place, shape)
        return prod(shape) * float(tiles.inner.sum()) + GROUP * len(np.unique(tiles.inner))

    return min(ROWS[axes], key=work)


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


def _group(queries: Places, keys: Places, mask: NDArray[np.bool_]) -> TileGroup:
    given = None if mask.all() else torch.as_tensor(mask, device="cpu")
    outer, inner = (torch.as_tensor(some.positions(), device="cpu") for some in (queries, keys))
    return tile_group(outer, inner, given)


def _pairs(some: Members, group: TileGroup) -> PairPositions:
    """The pairs of a group for each member, [members, tiles, rows, columns]."""
    elements, heads = (torch.arange(x.start, x.stop) for x in (some.batch, some.heads))
    members = torch.cartesian_prod(elements, heads).view(-1, 2, 1, 1, 1)
    queries, keys = (x if isinstance(x, Tensor) else x.positions() for x in (group.queries, group.keys))
    return PairPositions(members[:, 0], members[:, 1], queries[:, :, None], keys[:, None, :])


def _kept(call: AttentionCall, some: Members, group: TileGroup, q: Tensor) -> Tensor | None:
    """What dropout multiplies the weights of a group with."""
    if call.seed is None:
        return None
    elements, heads = (torch.arange(x.start, x.stop) for x in (some.batch, some.heads))
    members = (elements[:, None] * q.shape[1] + heads).view(-1, 1, 1, 1)
    return kept_weights(call, members, *_pairs(some, group)[2:], torch.promote_types(q.dtype, torch.float32))


def _bias(call: AttentionCall, some: Members, group: TileGroup, dtype: torch.dtype) -> Tensor | None:
    if call.term is None:
        return None
    pairs = _pairs(some, group)
    shape = np.broadcast_shapes(*(x.shape for x in pairs))
    return bias_of(call, pairs, dtype).expand(shape).contiguous()
