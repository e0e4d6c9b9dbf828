"""What travels between ranks: rows to who needs them, and their gradients home along the same edges."""

# torch.distributed and torch.autograd.Function have few types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lattend.parallel.ranks import Group, Ranks

Addressed = tuple[int, Tensor]  # the rank that a message goes to or comes from, and what it holds


@dataclass(frozen=True, eq=False)
class Routes:
    """What a rank sends and gets: to whom the keys at which places, and from whom how many."""

    ranks: Ranks
    sends: tuple[tuple[int, Tensor], ...]  # target, places
    gets: tuple[tuple[int, int], ...]  # source, how many

    def out(self, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Exchange:
        """Sends keys and values, and which are real, to who needs them; gets as many as were asked for.

        What comes are messages by source, then masks.
        """
        leaving = [(target, packed(k, v, places)) for target, places in self.sends]
        coming = [(source, k.new_empty(count * _width(k, v))) for source, count in self.gets]
        if mask is not None:
            leaving += [(target, mask.index_select(0, places)) for target, places in self.sends]
            coming += [(source, mask.new_empty((count, *mask.shape[1:]))) for source, count in self.gets]
        return Exchange.begin(self.ranks, self.ranks.along, "keys", leaving, coming)

    def home(self, gradients: Sequence[tuple[Tensor, Tensor]], like: tuple[Tensor, Tensor]) -> Exchange:
        """Sends gradients of received keys to their owners, and gets those of the keys that were sent."""
        leaving = [(source, packed(*some)) for (source, _), some in zip(self.gets, gradients, strict=True)]
        coming = [(target, like[0].new_empty(len(places) * _width(*like))) for target, places in self.sends]
        return Exchange.begin(self.ranks, self.ranks.along, "gradients", leaving, coming)

    def add(self, dk: Tensor, dv: Tensor, found: Sequence[Tensor]) -> None:
        """Adds gradients that came home to those of their keys, in the order of the ranks."""
        for (_, places), message in zip(self.sends, found, strict=True):
            for total, x in zip((dk, dv), unpacked(message, dk, dv, len(places)), strict=True):
                total.index_add_(2, places, x.to(total.dtype))


def packed(k: Tensor, v: Tensor, places: Tensor | None = None) -> Tensor:
    """Keys and values [batch, heads, n, D], or those at some places, as one message: keys, then values."""
    count = k.shape[2] if places is None else len(places)
    found = k.new_empty(count * _width(k, v))
    for x, room in zip((k, v), unpacked(found, k, v, count), strict=True):
        if places is None:
            room.copy_(x)
        else:
            torch.index_select(x, 2, places, out=room)
    return found


def unpacked(message: Tensor, k: Tensor, v: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The keys and values of a message with `count` keys, with the heads and dimensions of k and v."""
    shapes = [(*x.shape[:2], count, x.shape[3]) for x in (k, v)]
    keys, values = message.split([prod(shape) for shape in shapes])
    return keys.view(shapes[0]), values.view(shapes[1])


def _width(k: Tensor, v: Tensor) -> int:
    """Numbers of one key and its value."""
    return k.shape[0] * k.shape[1] * (k.shape[3] + v.shape[3])


@dataclass
class Exchange:
    """Messages on their way."""

    ranks: Ranks
    what: str
    work: list[Any]
    coming: list[Tensor]
    leaving: list[Tensor]  # held until they are gone
    device: torch.device | None  # where what comes is wanted, if messages go by way of the host

    @staticmethod
    def begin(
        ranks: Ranks, among: Group, what: str, leaving: Sequence[Addressed], coming: Sequence[Addressed]
    ) -> Exchange:
        """Posts all messages among some of the ranks; those between two go in order."""
        group = among.group
        device = next((x.device for _, x in (*leaving, *coming)), torch.device("cpu"))
        staged = device.type != "cpu" and _by_host(group, device)
        sent = [(rank, x.contiguous()) for rank, x in leaving]
        if staged:
            sent = [(rank, x.cpu()) for rank, x in sent]
            coming = [(rank, torch.empty_like(x, device="cpu")) for rank, x in coming]
        ops = [
            dist.P2POp(send, x, group=group, group_peer=among.peer(rank))
            for send, some in ((dist.isend, sent), (dist.irecv, coming))
            for rank, x in some
            if x.numel()
        ]
        work = ranks.guarded(f"sending {what}", lambda: dist.batch_isend_irecv(ops)) if ops else []
        held = [x for _, x in sent]
        return Exchange(ranks, what, work, [x for _, x in coming], held, device if staged else None)

    def wait(self) -> list[Tensor]:
        """What came, once it is there; raises where it does not come in time."""
        self.ranks.guarded(f"waiting for {self.what}", self._wait)
        self.leaving.clear()
        return self.coming if self.device is None else [x.to(self.device) for x in self.coming]

    def _wait(self) -> None:
        for one in self.work:
            one.wait()


def make_ready(ranks: Ranks, device: torch.device) -> None:
    """Has NCCL connect all ranks, which a first message between some of them must not do."""
    if device.type in ranks.connected:
        return
    ranks.connected.add(device.type)
    for one in dict.fromkeys((ranks.along, ranks.across, ranks.whole)):
        alone = one.size > 1 and one.members is None  # no ranks beside these are in its process group
        if alone and device.type != "cpu" and not _by_host(one.group, device):
            dist.all_reduce(torch.zeros(1, device=device), group=one.group)


def _by_host(group: Any, device: torch.device) -> bool:
    """Whether messages of this device go by way of the host: gloo sends from a CPU alone."""
    backends = dict(one.split(":") for one in dist.get_backend_config(group).split(","))
    return backends.get(device.type) == "gloo"


def widened(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which parts are added."""
    return torch.promote_types(dtype, torch.float32)


# Heads over ranks (Ulysses): each rank gets all positions of some heads, and gives its output back

Slices = tuple[tuple[int, int], ...]  # of each rank, its heads


def head_slices(heads: int, kv_heads: int, ranks: int) -> tuple[Slices, Slices] | None:
    """The heads of q and of k that each rank has; None where they cannot be shared out evenly.

    >>> head_slices(8, 2, 4)
    (((0, 2), (2, 4), (4, 6), (6, 8)), ((0, 1), (0, 1), (1, 2), (1, 2)))
    """
    if heads % ranks or heads < 1:
        return None
    each, shared = heads // ranks, heads // kv_heads
    if each % shared and shared % each:
        return None
    queries = tuple((i * each, (i + 1) * each) for i in range(ranks))
    return queries, tuple((a // shared, -(-b // shared)) for a, b in queries)


@dataclass(frozen=True)
class Shared:
    """How a tensor is shared out: the heads of each rank, and how many positions each has."""

    heads: Slices
    lengths: tuple[int, ...]

    @property
    def ends(self) -> list[tuple[int, int]]:
        """Where the positions of each rank begin and end among all."""
        return [*pairwise([0, *accumulate(self.lengths)])]


def _all_positions(ranks: Ranks, tensors: Sequence[Tensor], shared: Sequence[Shared]) -> list[Tensor]:
    """Each [batch, H, n of this rank, …] as [batch, h, n of all, …]: this rank's heads."""
    me, both = ranks.across.rank, [*zip(tensors, shared, strict=True)]
    others = [i for i in range(ranks.across.size) if i != me]
    leaving = [(i, x[:, slice(*how.heads[i])]) for x, how in both for i in others]
    coming = [
        (i, x.new_empty((x.shape[0], how.heads[me][1] - how.heads[me][0], how.lengths[i], *x.shape[3:])))
        for x, how in both
        for i in others
    ]
    came = iter(Exchange.begin(ranks, ranks.across, "heads", leaving, coming).wait())
    found: list[Tensor] = []
    for x, how in both:
        own = x[:, slice(*how.heads[me])]
        found.append(torch.cat([own if i == me else next(came) for i in range(ranks.across.size)], 2))
    return found


def _all_heads(ranks: Ranks, tensors: Sequence[Tensor], shared: Sequence[Shared]) -> list[Tensor]:
    """The other way; heads that several ranks had are added, in the order of the ranks."""
    me, both = ranks.across.rank, [*zip(tensors, shared, strict=True)]
    others = [i for i in range(ranks.across.size) if i != me]
    leaving = [(i, x[:, :, slice(*how.ends[i])]) for x, how in both for i in others]
    coming = [
        (i, x.new_empty((x.shape[0], how.heads[i][1] - how.heads[i][0], how.lengths[me], *x.shape[3:])))
        for x, how in both
        for i in others
    ]
    came = iter(Exchange.begin(ranks, ranks.across, "heads", leaving, coming).wait())
    found: list[Tensor] = []
    for x, how in both:
        shape = (x.shape[0], max(b for _, b in how.heads), how.lengths[me], *x.shape[3:])
        whole = x.new_zeros(shape, dtype=widened(x.dtype))
        for i, (a, b) in enumerate(how.heads):
            whole[:, a:b] += x[:, :, slice(*how.ends[i])] if i == me else next(came)
        found.append(whole.to(x.dtype))
    return found


class _ToHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ranks: Ranks, shared: Sequence[Shared], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.ranks, ctx.shared = ranks, shared
        return tuple(_all_positions(ranks, tensors, shared))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, None, *_all_heads(ctx.ranks, grads, ctx.shared)


class _FromHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ranks: Ranks, shared: Sequence[Shared], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.ranks, ctx.shared = ranks, shared
        return tuple(_all_heads(ranks, tensors, shared))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, None, *_all_positions(ctx.ranks, grads, ctx.shared)


def to_heads(ranks: Ranks, shared: Sequence[Shared], *tensors: Tensor) -> tuple[Tensor, ...]:
    """The heads of this rank at all positions; differentiable."""
    return _ToHeads.apply(ranks, shared, *tensors)  # pyright: ignore[reportReturnType]


def from_heads(ranks: Ranks, shared: Sequence[Shared], *tensors: Tensor) -> tuple[Tensor, ...]:
    """All heads at this rank's positions; differentiable."""
    return _FromHeads.apply(ranks, shared, *tensors)  # pyright: ignore[reportReturnType]
