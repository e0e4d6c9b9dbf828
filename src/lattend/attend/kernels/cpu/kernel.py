"""The CPU kernel: a plan's tiles, those of one shape and mask together, run as batched products in torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.bias import PairPositions, add_gradients, as_gradients, bias_of, empty_sums
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.call.batch_arrays import arrays_of, batch_of
from lattend.attend.call.dropout import kept_weights
from lattend.attend.call.padding import real_keys
from lattend.attend.call.tensors import is_finite, per_kv_head
from lattend.attend.kernels.cpu import grouped_sdpa
from lattend.attend.kernels.cpu.equal_tiles import Data, Places, cut_to, equal_tiles
from lattend.attend.kernels.cpu.tile_group import TileGroup, in_sequence, tile_group
from lattend.attend.kernels.cpu.tiles import GradientSums, LargestScores, OnlineSoftmax
from lattend.plans.plan import Plan, plan
from lattend.plans.tiles import with_lists

Ints = NDArray[np.int64]
ROWS = {
    1: ((32,), (64,), (128,), (256,)),
    2: ((4, 8), (8, 8), (8, 16), (1, 128), (128, 1)),
    3: ((4, 4, 4), (1, 8, 8)),
}
GROUP = 30_000  # what a group of tiles costs beside its pairs, in pairs: measured on two cores
MOST_MASKS = 1 << 22  # pairs with masks of their own that are remembered
CHUNK = 1 << 22  # pairs whose bias is made at once


def why_not(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None:
    """Why this kernel cannot take the call, or None when it can."""
    if q.device.type != "cpu":
        return f"it runs on the CPU, and q is on {q.device.type}"
    return None if plan(call.rule).fits else "the rule's numbers lead beyond 64 bits"


def forward(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp."""
    results = _forward(call, q, k, v, careful=False)
    return results if is_finite(results[0]) else _forward(call, q, k, v, careful=True)


def checked(
    call: AttentionCall, out: Tensor, lse: Tensor, q: Tensor, k: Tensor, v: Tensor, *others: Tensor
) -> tuple[Tensor, Tensor]:
    """The results, made again where there is a NaN: it may come from a pair that is not attended."""
    return (out, lse) if is_finite(out) else _forward(call.with_tensors(others), q, k, v, careful=True)


def _forward(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor, *, careful: bool) -> tuple[Tensor, Tensor]:
    out, lse = (
        q.new_empty(*q.shape[:-1], v.shape[-1]),
        q.new_empty(q.shape[:-1], dtype=torch.promote_types(q.dtype, torch.float32)),
    )
    for some in _members(call, q):
        mine = _of(some, q, k, v)
        if not careful and grouped_sdpa.takes(call, some.groups, mine[0], mine[2]):
            found, sums = grouped_sdpa.forward(some.groups, call.scale, *mine)
            if some.all_of(q):
                return found.to(q.dtype).view(out.shape), sums.view(lse.shape)
            some.put(out, found)
            some.put(lse, sums)
            continue
        run = OnlineSoftmax(
            *mine, call.scale, softcap=call.softcap, biased=call.term is not None, real=some.real(call, k),
            careful=careful,
        )  # fmt: skip
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
    dq, dk, dv, biases = _backward(call, given, careful=False)
    if is_finite(dq, dk, dv, *biases):
        return dq, dk, dv, biases
    return _backward(call, given, careful=True)


def checked_gradients(
    call: AttentionCall, dq: Tensor, dk: Tensor, dv: Tensor, grad: Tensor, *others: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The same of the gradients of q, k and v; after their output's gradient come q, k, v and the results."""
    if is_finite(dq, dk, dv):
        return dq, dk, dv
    given = BackwardInputs(grad, None, *others[:5])
    return _backward(call.with_tensors(others[5:]), given, careful=True)[:3]


def _backward(call: AttentionCall, given: BackwardInputs, *, careful: bool) -> Gradients:
    grad_out, grad_lse, q, k, v, out, lse = given
    wide = torch.promote_types(q.dtype, torch.float32)
    dq = torch.empty_like(q, dtype=wide)
    dk, dv = (x.new_zeros(x.shape[0], q.shape[1], *x.shape[2:], dtype=wide) for x in (k, v))
    sums = empty_sums(call, wide)
    for some in _members(call, q):
        theirs = None if grad_lse is None else some.of(grad_lse)
        inputs = BackwardInputs(some.of(grad_out), theirs, *_of(some, q, k, v), some.of(out), some.of(lse))
        if not careful and grad_lse is None and grouped_sdpa.takes(call, some.groups, inputs.q, inputs.v):
            found = grouped_sdpa.backward(some.groups, call.scale, inputs)
            for whole, mine in zip((dq, dk, dv), found, strict=True):
                some.put(whole, mine)
            continue
        run = GradientSums(inputs, call.scale, call.softcap, some.real(call, k), careful=careful)
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


def best_rows(found: Plan, place: int) -> tuple[int, ...]:
    """The box of queries with the least work: the pairs in tiles, and what it takes to begin them."""
    axes, listed = len(found.parts[place].axes), found.parts[place].block_table
    if listed is not None:  # all rows of a block have the same keys
        return (min(listed.outer, ROWS[1][-1][0]),)

    def work(shape: tuple[int, ...]) -> float:
        tiles = found.tiles(place, shape)
        return prod(shape) * float(tiles.inner.sum()) + GROUP * len(np.unique(tiles.inner))

    return min(ROWS[axes], key=work)


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
