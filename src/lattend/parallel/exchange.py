"""What travels between ranks: rows to who needs them, and their gradients home along the same edges."""

# torch.distributed has few types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
        """Sends the gradients of keys that came to whose they are, and gets those of keys that left."""
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
    """The keys and values of a message that has so many, with the heads and dimensions of k and v."""
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
