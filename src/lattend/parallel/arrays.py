"""Arrays that a rule looks up, given by each rank for its positions or whole: on every rank all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.attend.bias import dtype_name, shape_text
from lattend.attend.call.rule_names import OpenArray
from lattend.errors import RankError, TensorError
from lattend.parallel.agreement import all_told
from lattend.parallel.arguments import Asked
from lattend.parallel.layout import Cut
from lattend.parallel.ranks import Ranks
from lattend.rules.rule import Rule

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
    found: list[Tensor] = []
    batched: list[bool] = []
    digest = blake2b(digest_size=16)
    for place, array in enumerate(asked.names.arrays):
        own = asked.values[array.name]
        cut = queries if any("q" in positions for positions in array.positions) else keys
        whole = _joined(array, [one[place] for one in told], own, cut)
        digest.update(f"{array.name} {whole.shape} {whole.dtype}".encode())
        digest.update(np.ascontiguousarray(whole).tobytes())
        found.append(torch.from_numpy(whole).to(asked.q.device))
        batched.append(whole.ndim > len(array.positions))
    return WholeArrays(
        tuple(found), tuple(batched), tuple(x.name for x in asked.names.arrays), digest.digest()
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
    """The array, of which every rank has told its shard, or that it has it whole."""
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
