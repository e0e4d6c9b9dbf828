"""KVCache over ranks: each keeps some of the past's keys, and a step merges what all of them found.

A step moves no keys: every rank has the new queries, answers them from the keys it has, and sends its output
and log-sum-exp to the others: each gets (P - 1) · batch · heads · s · (Dv + 1) numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.bias import dtype_name, shape_text
from lattend.attend.seams import (
    AttentionOptions,
    Scoring,
    StepMask,
    WithoutAutocast,
    as_one_kind,
    attend,
    check_length,
    check_scoring,
    check_shapes,
    check_sinks,
    check_step,
    rule_names,
    with_sinks,
)
from lattend.errors import DomainError, LattendError, NamingError, TensorError
from lattend.parallel.arguments import cut_of
from lattend.parallel.edges import BoxView
from lattend.parallel.exchange import Exchange, make_ready
from lattend.parallel.layout import Cut
from lattend.parallel.ranks import agree, ranks_of, refuse
from lattend.parallel.running import Merged
from lattend.plans.retention import retention
from lattend.rules.reader import RuleLike, read_rule

LEAST_ROOM = 16  # keys


class KVCache:
    """The past of sequences under a rule, its keys over ranks; for decoding long contexts.

    `fill` takes the keys of a prompt as lt.parallel.attention had them, each rank its own. `attend` takes the
    next positions, the same on every rank, and gives their output on every rank. Keys that no later query
    reaches are dropped, once they are half of those held. New keys go to the rank that was given fewest.
    """

    def __init__(self, rule: RuleLike, *, mesh: Any = None, heads: int, **values: Any) -> None:
        self.ranks, self.heads = ranks_of(mesh), heads
        if self.ranks.axes:
            raise NamingError("mesh cuts an image, and a cache has a line of positions: give another mesh")
        self.rule = read_rule(rule)
        self.retention = retention(self.rule, query_heads=heads, **values)
        by_head = heads if self.rule.has_heads else None
        self._mask = StepMask(self.retention.condition, self.retention.data, by_head)
        self.places: NDArray[np.int64] = np.zeros(0, np.int64)  # the positions of this rank's keys
        self.counts = [0] * self.ranks.size  # how many keys each rank was given
        self.length = 0
        self._room: list[Tensor] = []  # for keys and values, more than there are

    def __len__(self) -> int:
        return self.length

    def fill(self, k: Tensor, v: Tensor, *, cut: Cut | str | None = None) -> None:
        """Takes the first keys, of which each rank has a shard; the cache must be empty."""
        try:
            for name, x in (("k", k), ("v", v)):
                if not isinstance(x, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise TensorError(f"{name} must be a tensor, got {type(x).__name__}")
                if x.dim() != 4:
                    wanted = "(batch, kv_heads, n of this rank, D)"
                    raise TensorError(f"{name} has shape {shape_text(x)}, and a prompt takes {wanted}")
            if k.shape[:3] != v.shape[:3]:
                shapes = f"k has shape {shape_text(k)} and v {shape_text(v)}"
                raise TensorError(f"{shapes}: a prompt has as many keys as values")
            if k.shape[1] < 1 or self.heads % k.shape[1]:
                raise DomainError(f"heads = {self.heads} is not a multiple of the {k.shape[1]} heads of k")
            as_queries = k[:, :1].expand(-1, self.heads, -1, -1)
            _, k, v = self._checked(as_queries, k, v)
        except LattendError as error:
            refuse(self.ranks, error)
        call = {**self._call(k, v, "fill"), "cut": cut.pieces if isinstance(cut, Cut) else cut}
        agreed = agree(self.ranks, call, {}, k.shape[2], v.shape[2], 0, False)
        if self.length:  # on every rank
            raise DomainError(f"the cache has {self.length} positions already: a prompt comes first")
        cut = cut_of(cut, agreed.keys, "keys")
        check_length(0, cut.n, self.retention.length)
        pieces = [np.arange(a, b) for a, b in cut.pieces[self.ranks.rank]]
        self._write(k, v)
        self.places = np.concatenate([np.zeros(0, np.int64), *pieces])
        self.counts, self.length = [*agreed.keys], cut.n
        self._drop()

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None, softcap: float | None = None,
        sinks: Tensor | None = None, return_lse: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
        """The output [batch, heads, s, Dv] of the next s positions, whose keys and values join the cache.

        A step that fails on some rank fails on all, and changes nothing.
        """
        options = AttentionOptions(scale, softcap=softcap, return_lse=True)
        try:
            check_scoring(options.for_kernels)
            check_shapes(rule_names(self.rule.key), q, k, v)
            q, k, v = self._checked(q, k, v)
            check_sinks(sinks, q)
            check_length(self.length, q.shape[2], self.retention.length)
        except LattendError as error:
            refuse(self.ranks, error)
        scoring = tuple(options.for_kernels.as_constants())
        call = {**self._call(k, v, "attend"), "scale and softcap": scoring, "sinks": sinks is not None}
        now = {"positions": self.length, "new positions": q.shape[2]}
        agree(self.ranks, call, now, q.shape[2], k.shape[2], 0, False)
        make_ready(self.ranks, q.device)
        new = np.arange(self.length, self.length + q.shape[2])
        counts = [*self.counts]
        owners = np.array([_next_owner(counts) for _ in new], np.int64)
        mine = np.flatnonzero(owners == self.ranks.rank)
        places = np.concatenate([self.places, new[mine]])
        mask = torch.from_numpy(np.ascontiguousarray(self._mask.on_host(new, places))).to(q.device)
        chosen = torch.from_numpy(mine).to(k.device)
        self._write(k.index_select(2, chosen), v.index_select(2, chosen))
        how = Scoring.of(q, options)
        keys, values = (x[:, :, : len(places)] for x in self._room)
        with WithoutAutocast(q):
            out, lse = attend(q, keys, values, mask, how)
        assert lse is not None
        out, lse = self._merged(q, out, lse)
        if sinks is not None:
            out, lse = with_sinks(out, lse, sinks)
        self.places, self.counts, self.length = places, counts, self.length + q.shape[2]
        self._drop()
        out = out.to(q.dtype)
        return (out, lse) if return_lse else out

    def _checked(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The tensors, cast where autocast says so; raises unless they fit each other and the keys held."""
        q, k, v = as_one_kind(q, k, v)
        keys, values = self._room or (k, v)
        check_step(q, k, v, (keys, values), self.heads, sized=False)
        return q, k, v

    def _merged(self, q: Tensor, out: Tensor, lse: Tensor) -> tuple[Tensor, Tensor]:
        """The parts of all ranks, merged in their order: the same bits on every rank."""
        merged, ranks = Merged.like(q, out), self.ranks
        packed = torch.cat([out.to(lse.dtype), lse[..., None]], -1).contiguous()
        others = [i for i in range(ranks.size) if i != ranks.rank]
        leaving, coming = [(i, packed) for i in others], [(i, torch.empty_like(packed)) for i in others]
        flight = Exchange.begin(ranks, ranks.whole, "outputs", leaving, coming)
        came = iter(flight.wait())
        every = BoxView(0, (q.shape[2],), ((0, q.shape[2]),))
        for rank in range(ranks.size):
            part = packed if rank == ranks.rank else next(came)
            merged.add(every, part[..., :-1].contiguous(), part[..., -1].contiguous())
        return merged.out, merged.lse

    def _write(self, k: Tensor, v: Tensor) -> None:
        """Writes keys and values behind those that are held, which only their places make the cache's."""
        used, more = len(self.places), k.shape[2]
        if not self._room or self._room[0].shape[2] < used + more:
            size = max(LEAST_ROOM, 2 * (used + more))
            with torch.inference_mode(False):  # else they could not be written to outside of it
                room = [x.new_zeros((*x.shape[:2], size, x.shape[3])) for x in (k, v)]
            for new, old in zip(room, self._room, strict=False):
                new[:, :, :used] = old[:, :, :used]
            self._room = room
        for room, x in zip(self._room, (k, v), strict=True):
            room[:, :, used : used + more] = x.detach()

    def _drop(self) -> None:
        """Forgets keys that no query from now on reaches, where they are half of all."""
        kept = np.flatnonzero(self.retention.last(self.places) >= self.length)
        if 2 * len(kept) <= len(self.places):
            chosen = torch.from_numpy(kept).to(self._room[0].device) if self._room else torch.zeros(0)
            for room in self._room:
                room[:, :, : len(kept)] = room.index_select(2, chosen)
            self.places = self.places[kept]

    def _call(self, k: Tensor, v: Tensor, method: str) -> dict[str, Any]:
        return {
            "a cache's": method,
            "rule": self.rule.key,
            "heads": self.heads,
            "batch": k.shape[0],
            "kv heads": k.shape[1],
            "head dimension": k.shape[3],
            "value dimension": v.shape[3],
            "dtype": dtype_name(k.dtype),
            "device": k.device.type,
        }


def _next_owner(counts: list[int]) -> int:
    """The rank that gets the next key, which is counted; on all ranks the same."""
    rank = min(range(len(counts)), key=counts.__getitem__)
    counts[rank] += 1
    return rank
