"""attention(q, k, v, rule, mesh=…): each rank has a shard of the positions, and gets the keys it reaches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, overload

import torch
from torch import Tensor

from lattend.attend.bias import Bias
from lattend.attend.call.dropout import new_seed
from lattend.attend.operators.tracing import left_to_python
from lattend.errors import LattendError
from lattend.parallel.agreement import agree, refuse
from lattend.parallel.arguments import Asked, asked_of, check_lengths
from lattend.parallel.arrays import WholeArrays
from lattend.parallel.cluster import Cluster
from lattend.parallel.distributed_tensors import local_tensors
from lattend.parallel.heads import Shared, from_heads, to_heads
from lattend.parallel.layout import Cut
from lattend.parallel.ranks import ranks_of
from lattend.parallel.running import Given, run
from lattend.parallel.ways import Way, way_of
from lattend.rules.reader import RuleLike


@overload
def attention(
    q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, *, mesh: Any = ..., cut: Cut | str | None = ...,
    strategy: str | None = ..., cluster: str | Cluster | None = ..., scale: float | None = ...,
    bias: Bias | Tensor | None = ..., padding: Tensor | None = ..., softcap: float | None = ...,
    sinks: Tensor | None = ...,
    dropout: float = ..., return_lse: Literal[False] = ...,
    kernel: str | None = ..., deterministic: bool = ..., **values: Any,
) -> Tensor: ...  # fmt: skip
@overload
def attention(
    q: Tensor, k: Tensor, v: Tensor, rule: RuleLike, *, mesh: Any = ..., cut: Cut | str | None = ...,
    strategy: str | None = ..., cluster: str | Cluster | None = ..., scale: float | None = ...,
    bias: Bias | Tensor | None = ..., padding: Tensor | None = ..., softcap: float | None = ...,
    sinks: Tensor | None = ...,
    dropout: float = ..., return_lse: Literal[True],
    kernel: str | None = ..., deterministic: bool = ..., **values: Any,
) -> tuple[Tensor, Tensor]: ...  # fmt: skip
@left_to_python
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rule: RuleLike,
    *,
    mesh: Any = None,
    cut: Cut | str | None = None,
    strategy: str | None = None,
    cluster: str | Cluster | None = None,
    scale: float | None = None,
    bias: Bias | Tensor | None = None,
    padding: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    dropout: float = 0.0,
    return_lse: bool = False,
    kernel: str | None = None,
    deterministic: bool = True,
    **values: Any,
) -> Tensor | tuple[Tensor, Tensor]:
    """lt.attention over ranks: local shards in, the local shard of the output out, gradients the same way.

    q, k and v hold this rank's positions, [batch, heads, n of this rank, D]; ranks may have different numbers
    of them, or none. On an image a rank has a strip of rows, [batch, heads, rows of this rank, cols, D].
    Rules, biases and lengths speak of the whole. `mesh` is a DeviceMesh, of which positions are cut along the
    dimension "sequence" and heads, if it has that too, along "heads"; one whose dimensions are called "rows"
    and "cols" cuts an image into blocks; a process group; or None, all ranks of the world. Every rank must
    make the same call, forward and backward, as with any collective.

    Shards follow each other in the order of the ranks; `cut="zigzag"`, or a Cut, says otherwise. A `strategy`
    is "halo": the keys that a rank's queries reach come to it at once; "ring": the same rank by rank, and
    again in the backward pass, with the memory of two shards; "gather": all keys, whatever the rule, at once;
    "ulysses": all positions of some heads. Unless it is named, that of fewest bytes; where a `cluster` is
    described, as for lt.parallel.plan, the one that is predicted to be quickest on it, if the rule's pairs
    can be counted beforehand and no mesh shares heads.

    A mask `padding` is [batch, m of this rank], and its entries travel with their keys; lengths are of the
    whole sequences. A table `bias` has a row for each of this rank's queries and a column for each key of all
    ranks; the tensors of a Bias are whole on every rank. Gradients of these, and of sinks, are this rank's
    share: their sum over ranks is the gradient, as DistributedDataParallel adds them. Arrays of the rule are
    given whole, or by each rank for its positions. With dropout the same pairs are dropped as in one process
    that has the first rank's seed.

    DTensors, cut along their positions, give a DTensor. torch.compile leaves the call to Python.
    """
    how = {
        "cut": cut, "strategy": strategy, "cluster": cluster, "scale": scale, "bias": bias,
        "padding": padding, "softcap": softcap, "sinks": sinks, "dropout": dropout, "return_lse": return_lse,
        "kernel": kernel, "deterministic": deterministic,
    }  # fmt: skip
    try:
        (q, k, v), mesh, as_given = local_tensors(q, k, v, mesh)
    except LattendError as error:
        if mesh is None:  # nobody knows yet who the others are
            raise
        refuse(ranks_of(mesh), error)
    ranks = ranks_of(mesh)
    try:
        asked = asked_of(ranks, q, k, v, rule, values, how)
        seed = new_seed(asked.q) if dropout else None
    except LattendError as error:
        refuse(ranks, error)
    sizes = asked.q.shape[2], asked.k.shape[2], 0 if seed is None else int(seed), asked.masked, asked.shape
    agreed = agree(ranks, asked.said, asked.said_now, *sizes)
    check_lengths(asked, sum(agreed.keys))
    if agreed.masked and not asked.masked:
        asked = replace(
            asked, padding=asked.k.new_ones((asked.k.shape[0], asked.k.shape[2]), dtype=torch.bool)
        )
    way, arrays = way_of(ranks, asked, agreed)
    if seed is not None:
        seed = torch.full_like(seed, agreed.seeds[0])
    out, lse = _run(way, asked, arrays, seed, return_lse)
    if q.dim() > 4:
        out, lse = (x.unflatten(2, q.shape[2:-1]) for x in (out, lse))
    return as_given(out, lse) if return_lse else as_given(out)[0]


def _run(
    way: Way, asked: Asked, arrays: WholeArrays, seed: Tensor | None, with_lse: bool
) -> tuple[Tensor, Tensor]:
    """The output of this rank's positions, and their log-sum-exp."""
    q, k, v, learned, padding = asked.q, asked.k, asked.v, asked.learned, asked.padding
    lengths = padding.long() if padding is not None and padding.dim() == 1 else None
    mask = None if padding is None or padding.dim() == 1 else padding.T.contiguous()
    biases = len(learned) - (asked.sinks is not None)
    shared: list[Shared] = []
    if way.heads is not None:
        of_q, of_k = Shared(way.heads[0], way.queries), Shared(way.heads[1], way.keys)
        q, k, v = to_heads(way.ranks, (of_q, of_k, of_k), q, k, v)
        if mask is not None:
            one = Shared(((0, 1),) * way.ranks.across.size, way.keys)
            (whole,) = to_heads(way.ranks, (one,), mask.T[:, None])
            mask = whole[:, 0].T.contiguous()
        if asked.sinks is not None:
            learned = [*learned[:biases], learned[-1][slice(*way.heads[0][way.ranks.across.rank])]]
        shared = [of_q]
    given = Given(way.work, asked.options, arrays.tensors, biases, seed, lengths, mask)
    out, lse = run(given, q, k, v, *learned)
    if shared and with_lse:
        out, lse = from_heads(way.ranks, shared * 2, out, lse)
    elif shared:
        (out,) = from_heads(way.ranks, shared, out)
    return out, lse
