"""RankExecution: how calls of one kind run on a rank, which all ranks decide once and together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.bias import dtype_name, shape_text
from lattend.attend.seams import OpenArray, OperatorCall, dispatch
from lattend.errors import DomainError, RankError, TensorError
from lattend.parallel.arguments import Asked, bias_key, complete_rule, layouts_of
from lattend.parallel.edges import Edge
from lattend.parallel.exchange import Slices, head_slices, make_ready
from lattend.parallel.layout import Cut, Layout, Piece
from lattend.parallel.rank_schedule import Heads, LocalCall, RankSchedule, ScheduleKey, decide, edges_asked
from lattend.parallel.ranks import Agreed, Ranks, all_told
from lattend.parallel.strategies import Tensors, choose_strategy
from lattend.rules.flat import on_line
from lattend.rules.rule import Rule


@dataclass(frozen=True, eq=False)
class RankExecution:
    """How a call runs: the ranks, this rank's schedule, and what each rank that shares heads with it has."""

    ranks: Ranks
    schedule: RankSchedule
    heads: tuple[Slices, Slices] | None  # of q and k; None where heads are not shared
    queries: tuple[int, ...]
    keys: tuple[int, ...]


def execution_of(ranks: Ranks, asked: Asked, agreed: Agreed) -> tuple[RankExecution, WholeArrays]:
    """How a call runs: known, or decided now; and its arrays."""
    key = agreed.digest, agreed.queries, agreed.keys, agreed.shapes, agreed.masked
    known, arrays = None if asked.rule.open else ranks.executions.get(key), WholeArrays()
    if known is None:
        layouts = layouts_of(asked, agreed)
        rule = complete_rule(asked, layouts)
        arrays = whole_arrays(ranks, asked, rule, *(layout.flat for layout in layouts))
        kind = (*key, arrays.digest) if asked.rule.open else key
        known = ranks.executions.get(kind)
        if known is None:
            bias = bias_key(asked, rule, layouts[1])
            asked = replace(asked, strategy=asked.strategy or _quickest(ranks, asked, rule, layouts))
            made = _Deciding(asked, rule, layouts, arrays, bias).execution(ranks)
            known = ranks.executions.find(kind, lambda: made)
    return known, arrays


def _quickest(ranks: Ranks, asked: Asked, rule: Rule, layouts: tuple[Layout, Layout]) -> str | None:
    """What the first rank finds to be the quickest on the cluster that was described, if one was.

    None too where it cannot be told, and where the mesh says who shares heads.
    """
    cluster, (queries, keys), (q, k, v) = asked.cluster, layouts, (asked.q, asked.k, asked.v)
    if cluster is None or ranks.across.size > 1 or rule.open or queries != keys:
        return None
    tensors = Tensors(q.shape[1], k.shape[1], q.shape[3], v.shape[3], q.element_size(), q.shape[0])
    slices = None if asked.own_rows else head_slices(q.shape[1], k.shape[1], ranks.size)
    by_heads = slices is not None and ranks.size > 1 and len(queries.cuts) == 1
    how = {"trains": asked.trains, "by_heads": by_heads}
    return all_told(ranks, lambda: choose_strategy(rule, queries, tensors, cluster, **how))[0]


@dataclass(frozen=True, eq=False)
class _Deciding:
    """What decides how a kind of call runs."""

    asked: Asked
    rule: Rule
    layouts: tuple[Layout, Layout]  # of queries and of keys
    arrays: WholeArrays
    bias: str | None

    def execution(self, ranks: Ranks) -> RankExecution:
        """The execution that was asked for, or that of fewest bytes."""
        blocks, shares_heads = len(self.layouts[0].cuts) > 1, ranks.across.size > 1
        strategy = self.asked.strategy
        if strategy == "ulysses":
            if blocks:
                raise DomainError(
                    'strategy="ulysses" needs strips of rows: cut the image so, or leave it out'
                )
            if shares_heads:
                raise DomainError(
                    'strategy="ulysses" shares heads along all of a mesh; this one shares keys too'
                )
            return self._on(ranks.by_heads())
        edges = self._edges(ranks)
        if strategy is None and not blocks and not shares_heads and self._fewer_by_heads(ranks, edges):
            return self._on(ranks.by_heads())
        return self._on(ranks, edges)

    def _edges(self, ranks: Ranks) -> list[list[Edge]]:
        """What each of all ranks needs of the others in its line."""
        arrays = self.arrays.by_element()
        return all_told(ranks, lambda: edges_asked(self._work_key(ranks), ranks.along.rank, arrays))

    def _work_key(self, ranks: Ranks) -> ScheduleKey:
        queries, keys = (_along(layout, ranks) for layout in self.layouts)
        asked, strategy = self.asked, self.asked.strategy if self.asked.strategy != "ulysses" else None
        slices = self._slices(ranks)[0][ranks.across.rank]
        heads = Heads(slices[0], slices[1] - slices[0], asked.q.shape[1])
        rule = on_line(self.rule) if len(queries.sizes) == 1 else self.rule.baked()
        placed = asked.options.dropout > 0 or (asked.padding is not None and not asked.masked)
        return ScheduleKey(rule, queries, keys, heads, strategy or "", self.bias, asked.own_rows, placed)

    def _slices(self, ranks: Ranks) -> tuple[Slices, Slices]:
        heads, kv_heads, size = self.asked.q.shape[1], self.asked.k.shape[1], ranks.across.size
        slices = head_slices(heads, kv_heads, size)
        if slices is None:
            raise DomainError(
                f"{heads} heads of q on {kv_heads} of k cannot be shared evenly by {size} ranks: "
                'take a strategy that shares keys, "halo" or "ring"'
            )
        if size > 1 and self.asked.own_rows:
            raise DomainError("a table of a rank's own queries cannot be shared by heads: give a Bias, whole")
        return slices

    def _on(self, ranks: Ranks, edges: list[list[Edge]] | None = None) -> RankExecution:
        """How the call runs where ranks stand like this."""
        key, (_, place) = self._work_key(ranks), ranks.places[ranks.rank]
        edges = self._edges(ranks) if edges is None else edges
        line = [edges[i] for i in range(ranks.size) if ranks.places[i][0] == ranks.across.rank]
        make_ready(ranks, self.asked.q.device)
        made: list[RankSchedule] = []

        def decided() -> None:
            made.append(decide(ranks, key, line, self.asked.q.device))
            self._check_kernel(made[0])

        all_told(ranks, decided)
        near = [ranks.places.index((i, place)) for i in range(ranks.across.size)]
        lengths = [tuple(layout.lengths[near].tolist()) for layout in self.layouts]
        return RankExecution(ranks, made[0], self._slices(ranks) if len(near) > 1 else None, *lengths)

    def _fewer_by_heads(self, ranks: Ranks, edges: Sequence[Sequence[Edge]]) -> bool:
        """Whether the busiest rank gets fewer numbers in a forward pass where heads travel, and not keys."""
        asked, slices = self.asked, head_slices(self.asked.q.shape[1], self.asked.k.shape[1], ranks.size)
        if slices is None or asked.own_rows or ranks.size == 1:
            return False
        heads, kv_heads = (some[0][1] - some[0][0] for some in slices)
        width, both = asked.q.shape[3], asked.k.shape[3] + asked.v.shape[3]
        lengths = [layout.lengths for layout in self.layouts]

        def by_heads(rank: int) -> int:
            n, m = (int(some.sum() - some[rank]) for some in lengths)
            back = int(lengths[0][rank]) * (asked.q.shape[1] - heads) * asked.v.shape[3]
            return n * heads * width + m * kv_heads * both + back

        by_keys = max(sum(edge.total for edge in some) for some in edges) * asked.k.shape[1] * both
        return max(map(by_heads, range(ranks.size))) < by_keys

    def _check_kernel(self, schedule: RankSchedule) -> None:
        """Raises where a kernel that was asked for cannot run a block, before anything travels."""
        if self.asked.options.kernel is not None:
            for call in chain(
                schedule.own, *([call for _, call in stage.blocks] for stage in schedule.stages)
            ):
                self._check_block(call)

    def _check_block(self, call: LocalCall) -> None:
        asked = self.asked
        heads, q, block = call.heads[0], asked.q, call.block
        kv_heads = max(1, asked.k.shape[1] * heads // q.shape[1])
        own = q.new_empty((q.shape[0], heads, block.n, q.shape[3]))
        k, v = (q.new_empty((q.shape[0], kv_heads, block.m, x.shape[3])) for x in (asked.k, asked.v))
        bias = asked.learned[: len(asked.learned) - (asked.sinks is not None)] if call.term else None
        seed = torch.zeros(1, dtype=torch.int64, device=q.device) if asked.options.dropout else None
        real = (
            torch.zeros((q.shape[0], 2), dtype=torch.int32, device=q.device)
            if asked.padding is not None
            else None
        )
        operator_call = OperatorCall(
            call.held.key, call.numbers, self.arrays.tensors, call.term, bias or [], real, None, None, seed,
            asked.options,
        )  # fmt: skip
        dispatch.chosen(operator_call.attention_call(own), own, k, v)


def _along(layout: Layout, ranks: Ranks) -> Layout:
    """The positions of each place along the sequence: those of all ranks that share heads there."""
    if ranks.across.size == 1:
        return layout
    (cut,) = layout.cuts
    pieces = [
        _followed(chain(*(cut.pieces[ranks.places.index((i, j))] for i in range(ranks.across.size))))
        for j in range(ranks.along.size)
    ]
    return Layout((Cut(cut.name, tuple(pieces)),), layout.sizes)


def _followed(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Pieces that follow each other as one."""
    joined_pieces: list[Piece] = []
    for a, b in pieces:
        if joined_pieces and joined_pieces[-1][1] == a:
            joined_pieces[-1] = (joined_pieces[-1][0], b)
        else:
            joined_pieces.append((a, b))
    return tuple(joined_pieces)


Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WholeArrays:
    """The arrays of a rule, in its order, as tensors and for the host; `digest` is of all their entries."""

    tensors: tuple[Tensor, ...] = ()
    batched: tuple[bool, ...] = ()
    names: tuple[str, ...] = ()
    digest: bytes = b""

    def by_element(self) -> list[Mapping[str, Ints]]:
        """The arrays of each element of the batch; of one where all have the same."""
        held = [x.cpu().numpy() for x in self.tensors]
        size = max([len(x) for x, own in zip(held, self.batched, strict=True) if own], default=1)
        return [
            {name: x[i] if own else x for name, x, own in zip(self.names, held, self.batched, strict=True)}
            for i in range(size)
        ]


def whole_arrays(ranks: Ranks, asked: Asked, rule: Rule, queries: Cut, keys: Cut) -> WholeArrays:
    """The arrays of a call, whole; entries of other ranks come as what is agreed on does, over CPUs."""
    if not asked.rule.open:
        return WholeArrays()
    told = all_told(
        ranks, lambda: [_said(asked, rule, array, queries, keys, ranks.rank) for array in asked.names.arrays]
    )
    tensors: list[Tensor] = []
    batched: list[bool] = []
    digest = blake2b(digest_size=16)
    for place, array in enumerate(asked.names.arrays):
        own = asked.values[array.name]
        cut = queries if any("q" in positions for positions in array.positions) else keys
        whole = _joined(array, [one[place] for one in told], own, cut)
        digest.update(f"{array.name} {whole.shape} {whole.dtype}".encode())
        digest.update(np.ascontiguousarray(whole).tobytes())
        tensors.append(torch.from_numpy(whole).to(asked.q.device))
        batched.append(whole.ndim > len(array.positions))
    return WholeArrays(
        tuple(tensors), tuple(batched), tuple(x.name for x in asked.names.arrays), digest.digest()
    )


def _said(asked: Asked, rule: Rule, array: OpenArray, queries: Cut, keys: Cut, rank: int) -> tuple[str, Any]:
    """What a rank has of an array: all of it, as a digest, or the entries of its positions."""
    x, name, axes = asked.values[array.name], array.name, len(array.positions)
    if not isinstance(x, Tensor):
        raise TensorError(f"{name} must be a tensor, got {type(x).__name__}: torch.as_tensor({name})")
    if x.is_floating_point() or x.is_complex():
        raise TensorError(f"{name} must hold whole numbers, got {dtype_name(x.dtype)}")
    if x.dim() not in (axes, axes + 1) or (x.dim() > axes and x.shape[0] != asked.q.shape[0]):
        raise TensorError(
            f"{name} has shape {shape_text(x)}; {array.lookup} takes {axes} axes, "
            f"or {axes + 1} with the batch of {asked.q.shape[0]} first"
        )
    own = [cut.length(rank) for cut in (queries, keys)]
    if _fits(array, x, rule) and [queries.n, keys.n] != own:
        return "whole", blake2b(x.cpu().contiguous().numpy().tobytes(), digest_size=16).digest()
    if axes == 1 and x.shape[-1] == own["q" not in array.positions[0]]:
        return "shard", x.cpu().numpy()
    raise TensorError(
        f"{name} has shape {shape_text(x)}; {array.lookup} takes the entries of all {queries.n} queries and "
        f"{keys.n} keys, or, on one axis, those of this rank's {own[0]}"
    )


def _fits(array: OpenArray, x: Tensor, rule: Rule) -> bool:
    """Whether an array has an entry for each position of the whole that looks it up."""
    return all(
        x.shape[axis] >= rule.lengths[position]
        for axis, positions in enumerate(array.positions, x.dim() - len(array.positions))
        for position in positions
    )


def _joined(array: OpenArray, told: Sequence[tuple[str, Any]], own: Tensor, cut: Cut) -> Ints:
    """The whole array, from the shards of the ranks or from a rank that has all of it."""
    shards = [(rank, held) for rank, (kind, held) in enumerate(told) if kind == "shard"]
    digests = {held for kind, held in told if kind == "whole"}
    if not shards and len(digests) == 1:
        return own.cpu().numpy()
    if not shards or sum(held.shape[-1] for _, held in shards) < cut.n:
        what = (
            "some ranks gave it whole and some their shard" if shards else "it is not the same on every rank"
        )
        raise RankError(
            f"{array.name}: {what}; give all of it everywhere, or everywhere the rank's own entries"
        )
    whole: Ints = np.zeros((*shards[0][1].shape[:-1], cut.n), shards[0][1].dtype)
    for rank, held in shards:
        place = 0
        for a, b in cut.pieces[rank]:
            whole[..., a:b] = held[..., place : place + b - a]
            place += b - a
    return whole
