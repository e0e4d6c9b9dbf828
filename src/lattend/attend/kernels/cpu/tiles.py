"""Attention on groups of equal tiles on a CPU, with gradients: batched matrix products on views of the keys.

Tensors are [B, positions, D] with B = batch * heads; narrow floats are widened to float32 first. Scores
stand keys first, [tiles, W, M]: so all five products read their operands in order, and sums over keys
run along vectors. They are in base 2, for exp2 is three times as fast as exp. A chunk of tiles has a few
MB, which the cache holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log, prod
from typing import NamedTuple

import torch
from torch import Tensor

from lattend.attend.call.attention_call import BackwardInputs
from lattend.attend.call.tensors import masked_product, vecdot, vector_norm
from lattend.attend.kernels.cpu.tile_group import BLOCKED, Positions, Strided, TileGroup
from lattend.errors import TensorError

CHUNK = 1 << 20  # numbers of a chunk for each thread: 4 MB
MIN_BATCH = 2  # products for each thread, before the keys of a tile are taken all at once
LOG2E = 1 / log(2)
LOW = -1e37  # the largest of no scores: below all scores, yet finite, so that no difference is NaN
TAME = 1e36  # scores below it are far from those of pairs that are not attended
BOUND = 40.0  # scores within ±40 are summed as they are: exp(40) = 2.4e17, far from overflow
ALL = slice(None)


class _Chunk(NamedTuple):
    """Some keys of several tiles of one member of the batch, or of one tile of several members."""

    group: TileGroup
    b: slice
    tiles: slice
    keys: slice

    @property
    def members(self) -> int:
        return self.b.stop - self.b.start

    def view(self, x: Tensor, at: Strided, rows: slice = ALL) -> Tensor:
        """The chunk's strided rows in x [B, positions, D], as [tiles, rows, D]; tiles may overlap."""
        first, end, _ = rows.indices(at.rows)
        by_member, by_row, by_column = x.stride()
        row = at.start + self.tiles.start * at.tile_step + first * at.row_step
        sizes = (self.members, self.tiles.stop - self.tiles.start, end - first, x.shape[2])
        steps = (by_member, at.tile_step * by_row, at.row_step * by_row, by_column)
        offset = x.storage_offset() + self.b.start * by_member + row * by_row
        return x.as_strided(sizes, steps, offset).flatten(0, 1)

    def part_of(self, bias: Tensor) -> Tensor:
        """The chunk's part of a bias [B or 1, T or 1, M, W], as [tiles or 1, M, keys]."""
        b = self.b if bias.shape[0] > 1 else ALL
        tiles = self.tiles if bias.shape[1] > 1 else ALL
        return bias[b, tiles, :, self.keys].flatten(0, 1)


class _Pass:
    """q, k and v, what chunks read and write of them, and products in memory that outlives a chunk."""

    def __init__(
        self, q: Tensor, k: Tensor, v: Tensor, scale: float, softcap: float | None, real: Tensor | None,
        *, careful: bool,
    ) -> None:  # fmt: skip
        if q.ndim != 3 or k.shape != (*q.shape[:1], k.shape[1], q.shape[2]) or v.shape[:2] != k.shape[:2]:
            shapes = ", ".join(str(list(x.shape)) for x in (q, k, v))
            raise TensorError(f"q, k and v must be [B, n, D], [B, m, D] and [B, m, Dv], not {shapes}")
        wide = torch.promote_types(q.dtype, torch.float32)
        self.q, self.k, self.v = (x.detach().to(wide) for x in (q, k, v))
        self.scale, self.softcap, self._blocked, self.careful = scale, softcap, None, careful
        if real is not None:  # [B, m]; what stands in padding may be anything
            hidden = ~real[..., None]
            self.k, self.v = self.k.masked_fill(hidden, 0), self.v.masked_fill(hidden, 0)
            self._blocked = torch.where(real, 0.0, BLOCKED).to(wide)[..., None]
        self._memory: dict[str, Tensor] = {}

    def chunks(self, group: TileGroup, held: int) -> Iterator[_Chunk]:
        """All pairs of a group in chunks of few enough keys; of each, `held` numbers are in use."""
        for name, last, x in zip(("query", "key"), group.last, (self.q, self.k), strict=True):
            if last >= x.shape[1]:
                raise TensorError(f"{name} {last} of a group is past the last of {x.shape[1]} positions")
        t, _, w = group.shape
        members, threads = len(self.q), torch.get_num_threads()
        by_tile = t >= members
        one, many = (members, t) if by_tile else (t, members)
        room = CHUNK * threads // held
        width = min(w, max(64, room // min(many, MIN_BATCH * threads) // 64 * 64))
        count = max(1, room // width)
        count = ceil(many / ceil(many / count))  # chunks of one size
        for i in range(one):
            for j in range(0, many, count):
                alone, several = slice(i, i + 1), slice(j, min(j + count, many))
                b, tiles = (alone, several) if by_tile else (several, alone)
                for key in range(0, w, width):
                    yield _Chunk(group, b, tiles, slice(key, min(key + width, w)))

    def _held(self, name: str, *shape: int) -> Tensor:
        """Memory under a name: fresh pages cost more than the sums done in them."""
        size = prod(shape)
        if name not in self._memory or self._memory[name].numel() < size:
            self._memory[name] = self.q.new_empty(size)
        return self._memory[name][:size].view(shape)

    def _read(self, chunk: _Chunk, name: str, x: Tensor, at: Positions, rows: slice = ALL) -> Tensor:
        """The chunk's rows in x [B, positions, D], as [tiles, rows, D]: a view where they are strided."""
        if isinstance(at, Strided):
            return chunk.view(x, at, rows)
        index = at[chunk.tiles, rows]
        out = self._held(name, chunk.members, index.numel(), x.shape[2])
        for member, part in zip(x[chunk.b], out, strict=True):  # threads share the work only on a matrix
            torch.index_select(member, 0, index.flatten(), out=part)
        return out.view(-1, index.shape[1], x.shape[2])

    def _queries(self, chunk: _Chunk, name: str, x: Tensor) -> Tensor:
        return self._read(chunk, name, x, chunk.group.queries)

    def _keys(self, chunk: _Chunk, name: str, x: Tensor) -> Tensor:
        return self._read(chunk, name, x, chunk.group.keys, chunk.keys)

    def _write(self, chunk: _Chunk, x: Tensor, value: Tensor) -> None:
        """Puts back what was read of x at the queries, if it was a copy."""
        if isinstance(at := chunk.group.queries, Tensor):
            x[chunk.b].index_copy_(1, at[chunk.tiles].flatten(), value.view(chunk.members, -1, x.shape[2]))

    def _product(self, name: str, a: Tensor, b: Tensor, factor: float = 1.0) -> Tensor:
        """The products factor * a b, [tiles, rows, columns], until the next ones of that name."""
        out = self._held(name, a.shape[0], a.shape[1], b.shape[2])
        return torch.baddbmm(out, a, b, beta=0, alpha=factor, out=out)

    def _weighted(
        self, name: str, weights: Tensor, attended: Tensor | None, x: Tensor, factor: float = 1.0
    ) -> Tensor:
        """The same products, to which pairs that are not attended add nothing, whatever x holds."""
        if attended is None:
            return self._product(name, weights, x, factor)
        whole = attended.expand(weights.shape)
        return masked_product(weights.masked_fill(~whole, 0), whole, x).mul_(factor)

    def _add_product(self, to: Tensor, a: Tensor, b: Tensor, factor: float = 1.0) -> None:
        """Adds factor * a b; PyTorch does so in one batch only where `to` is contiguous."""
        if to.is_contiguous():
            to.baddbmm_(a, b, alpha=factor)
        else:
            to.add_(self._product("added", a, b, factor))

    def _scores(
        self, chunk: _Chunk, q: Tensor, k: Tensor, bias: Tensor | None, softened: Tensor | None = None
    ) -> Tensor:
        """Scores in base 2, [tiles, keys, M]: far below LOW where not attended.

        `softened` is filled with their derivatives by what a softcap is given.
        """
        if self.softcap is None:
            s = self._product("scores", k, q.mT, self.scale * LOG2E)
        else:
            s = self._product("scores", k, q.mT, self.scale / self.softcap).tanh_()
            if softened is not None:
                torch.mul(s, s, out=softened).neg_().add_(1)
            s.mul_(self.softcap * LOG2E)
        first, end = chunk.keys.start, chunk.keys.stop
        for run in chunk.group.masked_runs:
            low, high = max(first, run.first), min(end, run.end)
            if low < high:
                s[:, low - first : high - first].add_(run.added[low - run.first : high - run.first])
        if self._blocked is not None:
            s.add_(self._keys(chunk, "blocked", self._blocked))
        if chunk.group.masked is not None:
            s.add_(chunk.group.masked[chunk.tiles, chunk.keys], alpha=BLOCKED)
        if bias is not None:
            s.add_(chunk.part_of(bias).mT, alpha=LOG2E)
        if (attended := self._attended(chunk)) is not None:  # a NaN stays one, whatever is added
            s.masked_fill_(~attended, BLOCKED)
        return s

    def _attended(self, chunk: _Chunk) -> Tensor | None:
        """The attended pairs, [tiles or 1, keys, M or 1], of a careful pass; None where all are."""
        group, found = chunk.group, None
        if not self.careful:
            return None
        if group.masked is not None:
            found = group.masked[chunk.tiles, chunk.keys] == 0
        elif group.masked_runs:
            found = torch.ones(1, group.shape[2], group.shape[1], dtype=torch.bool)
            for run in group.masked_runs:
                found[:, run.first : run.end] = run.added == 0
            found = found[:, chunk.keys]
        if self._blocked is None:
            return found
        real = self._keys(chunk, "blocked", self._blocked) == 0
        return real if found is None else real & found


class OnlineSoftmax(_Pass):
    """Attention so far: of each query, the sum of exp(score) over its keys and the values so weighed.

    Groups are added in sequence; no pair may be in two of them. `biased` says that some will come
    with a bias; `real` [B, m], which keys are no padding.
    """

    def __init__(
        self, q: Tensor, k: Tensor, v: Tensor, scale: float, *,
        softcap: float | None = None, biased: bool = False, real: Tensor | None = None,
        careful: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(q, k, v, scale, softcap, real, careful=careful)
        b, n, _ = q.shape
        largest = abs(scale) * _longest(self.q) * _longest(self.k)
        self.careful |= not largest < TAME
        small = not biased and largest <= BOUND
        self._top = None if small else self.q.new_full((b, n, 1), LOW)  # the largest score, taken off all
        self._total = self.q.new_zeros(b, n, 1)
        self._values = self.q.new_zeros(b, n, v.shape[2])

    def add(self, group: TileGroup, bias: Tensor | None = None, kept: Tensor | None = None) -> None:
        """Adds the pairs of a group; bias is [B or 1, T or 1, M, W], added to scale * q·k.

        `kept`, of the same shape, is what dropout multiplies the weights with.
        """
        if bias is not None and self._top is None:
            raise TensorError("a bias was not announced; make OnlineSoftmax with biased=True")
        copied = 0 if isinstance(group.keys, Strided) else self.k.shape[2]
        for chunk in self.chunks(group, 2 * group.shape[1] + copied):  # half the room is for what is read
            q, k = self._queries(chunk, "q", self.q), self._keys(chunk, "k", self.k)
            s = self._scores(chunk, q, k, bias)
            total = self._queries(chunk, "total", self._total)
            values = self._queries(chunk, "values", self._values)
            if self._top is not None:
                top = self._queries(chunk, "top", self._top)
                s.sub_(_raise(top, s.amax(1, keepdim=True).mT, total, values).mT)
                self._write(chunk, self._top, top)
            s.exp2_()
            total.add_(s.sum(1).unsqueeze(2))
            if kept is not None:
                s.mul_(chunk.part_of(kept).mT)
            v = self._keys(chunk, "v", self.v)
            if (attended := self._attended(chunk)) is not None:
                values.add_(self._weighted("added", s.mT, attended.mT, v))
            else:
                self._add_product(values, s.mT, v)
            self._write(chunk, self._total, total)
            self._write(chunk, self._values, values)

    def finish(self) -> tuple[Tensor, Tensor]:
        """The output [B, n, Dv] and the log-sum-exp of scores [B, n]: 0 and -inf for a query without keys.

        Nothing can be added after it.
        """
        out = self._values.div_(self._total.masked_fill(self._total == 0, 1))
        lse = self._total.log2() if self._top is None else self._total.log2().add_(self._top)
        return out, lse.mul_(log(2)).squeeze(2)


def _longest(x: Tensor) -> float:
    return float(vector_norm(x, dim=-1).max()) if x.numel() else 0.0


def _raise(top: Tensor, fresh: Tensor, total: Tensor, values: Tensor) -> Tensor:
    """Raises `top` to the fresh scores where these are larger; sums made with the old one follow."""
    largest = torch.maximum(top, fresh)
    kept = (top - largest).exp2_()
    total.mul_(kept)
    values.mul_(kept)
    return top.copy_(largest)


class LargestScores(_Pass):
    """The largest score of each query so far."""

    def __init__(
        self, q: Tensor, k: Tensor, scale: float, softcap: float | None = None, real: Tensor | None = None
    ) -> None:
        super().__init__(q, k, k, scale, softcap, real, careful=False)
        self.careful = not abs(scale) * _longest(self.q) * _longest(self.k) < TAME
        self._top = self.q.new_full((*q.shape[:2], 1), LOW)

    def add(self, group: TileGroup, bias: Tensor | None = None) -> None:
        """Takes in the pairs of a group; bias is [B or 1, T or 1, M, W]."""
        copied = 0 if isinstance(group.keys, Strided) else self.k.shape[2]
        for chunk in self.chunks(group, 2 * group.shape[1] + copied):
            q, k = self._queries(chunk, "q", self.q), self._keys(chunk, "k", self.k)
            fresh = self._scores(chunk, q, k, bias).amax(1, keepdim=True).mT
            top = self._queries(chunk, "top", self._top)
            top.copy_(torch.maximum(top, fresh))
            self._write(chunk, self._top, top)

    def finish(self) -> Tensor:
        """They, [B, n]: -inf of a query without keys."""
        return (self._top * log(2)).masked_fill_(self._top == LOW, -torch.inf).squeeze(2)


class GradientSums(_Pass):
    """Gradients of q, k and v so far: `dq`, `dk` and `dv`, in float32.

    Results and their gradients are those of all groups together.
    """

    def __init__(
        self, given: BackwardInputs, scale: float, softcap: float | None = None, real: Tensor | None = None,
        *, careful: bool = False,
    ) -> None:  # fmt: skip
        given = given.without_unused_queries() if careful else given
        super().__init__(given.q, given.k, given.v, scale, softcap, real, careful=careful)
        wide, empty = self.q.dtype, given.lse == -torch.inf
        self._dout = given.grad_out.to(wide)
        delta = vecdot(self._dout, given.out.to(wide))
        delta = delta if given.grad_lse is None else delta - given.grad_lse
        self._delta = delta.masked_fill(empty, 0).unsqueeze(2)
        self._lse = (given.lse.to(wide) * LOG2E).masked_fill(empty, torch.inf).unsqueeze(2)  # in base 2
        self.dq, self.dk, self.dv = (x.new_zeros(x.shape) for x in (self.q, self.k, self.v))

    def add(
        self, group: TileGroup, bias: Tensor | None = None, dbias: Tensor | None = None,
        kept: Tensor | None = None,
    ) -> None:  # fmt: skip
        """Adds what flows through a group; to `dbias` too, float32 of bias's shape, where it is wanted."""
        copied = 0 if isinstance(group.keys, Strided) else self.k.shape[2]
        for chunk in self.chunks(group, 2 * group.shape[1] + self.k.shape[2] + copied):
            q, k = self._queries(chunk, "q", self.q), self._keys(chunk, "k", self.k)
            v, dout = self._keys(chunk, "v", self.v), self._queries(chunk, "dout", self._dout)
            lse, delta = self._queries(chunk, "lse", self._lse), self._queries(chunk, "delta", self._delta)
            shape, capped = (q.shape[0], k.shape[1], q.shape[1]), self.softcap is not None
            softened = self._held("softened", *shape) if capped else None
            p = self._scores(chunk, q, k, bias, softened).sub_(lse.mT).exp2_()  # [tiles, keys, M]
            ds, weights = self._product("slopes", v, dout.mT), p
            if kept is not None:
                mine = chunk.part_of(kept).mT
                ds.mul_(mine)
                weights = p * mine
            attended = self._attended(chunk)
            turned = None if attended is None else attended.mT
            by_key = self._weighted("by key", weights, attended, dout)
            _add(chunk, self.dv, group.keys, chunk.keys, by_key)
            ds.sub_(delta.mT).mul_(p)
            if attended is not None:
                ds.masked_fill_(~attended, 0)
            if dbias is not None:
                part = chunk.part_of(dbias)
                part.add_(ds.mT if len(part) == len(ds) else ds.sum(0, keepdim=True).mT)
            if softened is not None:
                ds.mul_(softened)
            by_query = self._weighted("by query", ds.mT, turned, k, self.scale)
            _add(chunk, self.dq, group.queries, ALL, by_query)
            by_key = self._weighted("by key", ds, attended, q, self.scale)
            _add(chunk, self.dk, group.keys, chunk.keys, by_key)


def _add(chunk: _Chunk, x: Tensor, at: Positions, rows: slice, sums: Tensor) -> None:
    """Adds sums [tiles, rows, D] to x at the chunk's rows; tiles that share positions in sequence."""
    if isinstance(at, Strided):
        view, phases = chunk.view(x, at, rows), at.phases if chunk.members == 1 else 1
        for phase in range(min(phases, len(sums))):
            view[phase::phases].add_(sums[phase::phases])
        return
    index = at[chunk.tiles, rows].flatten()
    for member, part in zip(x[chunk.b], sums.view(chunk.members, -1, x.shape[2]), strict=True):
        member.index_add_(0, index, part)  # four times as fast on a matrix
