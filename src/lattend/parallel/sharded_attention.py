"""attention(q, k, v, rule, mesh=…): each rank has a shard of the positions, and gets the keys it reaches."""

# torch.distributed has few types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn, overload

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, Replicate, Shard

from lattend.attend.bias import Bias
from lattend.attend.seams import OVERRIDES, left_to_python, new_seed
from lattend.errors import LattendError, NamingError, TensorError
from lattend.parallel.arguments import Asked, asked_of, check_lengths
from lattend.parallel.cluster import Cluster
from lattend.parallel.exchange import Shared, from_heads, to_heads
from lattend.parallel.layout import Cut
from lattend.parallel.rank_execution import RankExecution, WholeArrays, execution_of
from lattend.parallel.ranks import AXES, agree, ranks_of, refuse
from lattend.parallel.running import Given, run
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
    execution, arrays = execution_of(ranks, asked, agreed)
    if seed is not None:
        seed = torch.full_like(seed, agreed.seeds[0])
    out, lse = _run(execution, asked, arrays, seed, return_lse)
    if q.dim() > 4:
        out, lse = (x.unflatten(2, q.shape[2:-1]) for x in (out, lse))
    return as_given(out, lse) if return_lse else as_given(out)[0]


def _run(
    execution: RankExecution, asked: Asked, arrays: WholeArrays, seed: Tensor | None, with_lse: bool
) -> tuple[Tensor, Tensor]:
    """The output of this rank's positions, and their log-sum-exp."""
    q, k, v, learned, padding = asked.q, asked.k, asked.v, asked.learned, asked.padding
    lengths = padding.long() if padding is not None and padding.dim() == 1 else None
    mask = None if padding is None or padding.dim() == 1 else padding.T.contiguous()
    biases = len(learned) - (asked.sinks is not None)
    shared: list[Shared] = []
    if execution.heads is not None:
        of_q, of_k = Shared(execution.heads[0], execution.queries), Shared(execution.heads[1], execution.keys)
        q, k, v = to_heads(execution.ranks, (of_q, of_k, of_k), q, k, v)
        if mask is not None:
            one = Shared(((0, 1),) * execution.ranks.across.size, execution.keys)
            (whole,) = to_heads(execution.ranks, (one,), mask.T[:, None])
            mask = whole[:, 0].T.contiguous()
        if asked.sinks is not None:
            learned = [
                *learned[:biases],
                learned[-1][slice(*execution.heads[0][execution.ranks.across.rank])],
            ]
        shared = [of_q]
    given = Given(execution.schedule, asked.options, arrays.tensors, biases, seed, lengths, mask)
    out, lse = run(given, q, k, v, *learned)
    if shared and with_lse:
        out, lse = from_heads(execution.ranks, shared * 2, out, lse)
    elif shared:
        (out,) = from_heads(execution.ranks, shared, out)
    return out, lse


NOT_SHARDED = {
    "scales": "multiply q, k and v by their scales first",
    "cu_seqlens": 'give the documents of positions instead: "doc[q] == doc[k]" with doc=…',
    "cache": "decode in one process",
    "return_max_logit": "ask lt.max_logits in one process",
}


@dataclass(frozen=True)
class _OverRanks:
    mesh: Any
    cut: Cut | str | None
    strategy: str | None
    cluster: str | Cluster | None

    @left_to_python
    def attention(
        self, q: Any, k: Any, v: Any, rule: Any, how: Mapping[str, Any], values: Mapping[str, Any]
    ) -> Any:
        """lt.parallel.attention, for what lt.attention was given."""
        for name, instead in NOT_SHARDED.items():
            if name in how:
                self.refuse(NamingError(f"{name}: under lt.parallel.sharded there is none; {instead}"))
        sharing = {"mesh": self.mesh, "cut": self.cut, "strategy": self.strategy, "cluster": self.cluster}
        return attention(q, k, v, rule, **sharing, **how, **values)

    def refuse(self, error: LattendError) -> NoReturn:
        """Raises the error on this rank, and one that quotes it on the others."""
        refuse(ranks_of(self.mesh), error)


@contextmanager
def sharded(
    mesh: Any = None,
    *,
    cut: Cut | str | None = None,
    strategy: str | None = None,
    cluster: str | Cluster | None = None,
) -> Iterator[None]:
    """Inside it, lt.attention is lt.parallel.attention: every rank runs a model on its own positions.

    A model that says positions to itself, as RoPE does, must be given those of the shard:

        ids = lt.parallel.shard(input_ids, mesh, dim=1)
        places = lt.parallel.positions(input_ids.shape[1], mesh)
        with lt.parallel.sharded(mesh):
            loss = model(ids, position_ids=places[None], …)
            loss.backward()

    With activation checkpointing the backward pass must be inside too, since it runs layers again.
    """
    ranks_of(mesh)  # whoever has no process group hears of it here
    one = _OverRanks(mesh, cut, strategy, cluster)
    OVERRIDES.append(one)
    try:
        yield
    finally:
        OVERRIDES.remove(one)


POSITIONS = 2  # the axis of positions in [batch, heads, n, D]; on an image that of rows
AsGiven = Callable[..., Any]


def local_tensors(q: Any, k: Any, v: Any, mesh: Any) -> tuple[tuple[Tensor, Tensor, Tensor], Any, AsGiven]:
    """The local shards of q, k and v, the ranks that share them, and what makes results as q was given."""
    given = [isinstance(x, DTensor) for x in (q, k, v)]
    if not any(given):
        return (q, k, v), mesh, lambda *found: found
    if not all(given):
        name = "qkv"[given.index(False)]
        raise TensorError(
            f"{name} is no DTensor, and others are: give all three as DTensors, or x.to_local() of each"
        )
    for name, x in (("q", q), ("k", k), ("v", v)):
        _check(name, x)
        if x.device_mesh != q.device_mesh or x.placements != q.placements:
            raise TensorError(
                f"{name} is laid out as {x.placements} and q as {q.placements}: redistribute {name} as q is"
            )
    over, placements, whole = q.device_mesh, q.placements, q.shape
    at = [dim for dim, one in enumerate(placements) if isinstance(one, Shard) and one.dim != 0]
    if mesh is None:
        named = tuple(over.mesh_dim_names[dim] for dim in at) if over.mesh_dim_names else ()
        mesh = over[named] if named and named[0] in _image_axes(q) else over.get_group(at[0])

    def as_given(*found: Tensor) -> tuple[Tensor, ...]:
        """Results whose positions are those of q, as DTensors."""
        return tuple(_made(x, over, placements, whole) for x in found)

    return (q.to_local(), k.to_local(), v.to_local()), mesh, as_given


def _image_axes(x: Any) -> dict[str, int]:
    """The axes of an image or a volume by their names; of a line none."""
    axes = x.dim() - 1 - POSITIONS
    return dict(zip(AXES[-axes:], range(POSITIONS, POSITIONS + axes), strict=True)) if axes > 1 else {}


def _check(name: str, x: Any) -> None:
    image, names = _image_axes(x), x.device_mesh.mesh_dim_names or ("",) * x.device_mesh.ndim
    cut = [(one.dim, of) for one, of in zip(x.placements, names, strict=True) if one.is_shard() and one.dim]
    fits = cut and all(dim == image.get(of, POSITIONS) for dim, of in cut)
    once = len({dim for dim, _ in cut}) == len(cut)
    if not (fits and once and all(isinstance(one, (Shard, Replicate)) for one in x.placements)):
        raise TensorError(
            f"{name} is laid out as {x.placements}: positions, axis {POSITIONS}, must be cut along one "
            f"dimension of the mesh, Shard({POSITIONS}), or the axes of an image along those called rows and "
            f"cols, and all else but the batch, Shard(0), be whole: {name}.redistribute(…)"
        )


def _made(x: Tensor, mesh: Any, placements: Any, whole: Any) -> Tensor:
    shape = [*whole[: x.dim()]]
    if x.dim() == len(whole):
        shape[-1] = x.shape[-1]
    stride = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        stride[axis] = stride[axis + 1] * shape[axis + 1]
    sizes: dict[str, Any] = {"shape": tuple(shape), "stride": tuple(stride)}
    return DTensor.from_local(x, mesh, placements, run_check=False, **sizes)
