"""What travels between ranks: rows to who needs them, and their gradients home along the same edges."""

# torch.distributed has few types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lattend.parallel.ranks import Group, Ranks

Addressed = tuple[int, Tensor]  # the rank that a message goes to or comes from, and what it holds


@dataclass(frozen=True, eq=False)
class Routes:
    """What a rank sends and gets: to whom which of its rows, and from whom how many."""

    ranks: Ranks
    sends: tuple[tuple[int, Tensor], ...]  # target, places of the rows
    gets: tuple[tuple[int, int], ...]  # source, how many

    def out(self, *tensors: Tensor) -> Exchange:
        """Sends rows [n, …] of each tensor to who needs them; gets as many as were asked for.

        What comes are the rows of the first tensor by source, then those of the second.
        """
        leaving = [(target, x.index_select(0, places)) for x in tensors for target, places in self.sends]
        coming = [
            (source, x.new_empty((count, *x.shape[1:]))) for x in tensors for source, count in self.gets
        ]
        return Exchange.begin(self.ranks, self.ranks.along, "keys", leaving, coming)

    def home(self, gradients: Sequence[Tensor], like: Tensor) -> Exchange:
        """Sends the gradients of rows that came to whose they are, and gets those of rows that left."""
        leaving = [(source, x) for (source, _), x in zip(self.gets, gradients, strict=True)]
        coming = [(target, like.new_empty((len(places), *like.shape[1:]))) for target, places in self.sends]
        return Exchange.begin(self.ranks, self.ranks.along, "gradients", leaving, coming)

    def add(self, total: Tensor, found: Sequence[Tensor]) -> None:
        """Adds gradients that came home to their rows, in the order of the ranks."""
        for (_, places), x in zip(self.sends, found, strict=True):
            total.index_add_(0, places, x.to(total.dtype))


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
    for one in (ranks.along, ranks.across):
        if one.size > 1 and device.type != "cpu" and not _by_host(one.group, device):
            dist.all_reduce(torch.zeros(1, device=device), group=one.group)


def _by_host(group: Any, device: torch.device) -> bool:
    """Whether messages of this device go by way of the host: gloo sends from a CPU alone."""
    backends = dict(one.split(":") for one in dist.get_backend_config(group).split(","))
    return backends.get(device.type) == "gloo"
