"""Attention of a shard on every rank at once: how long it takes, what comes, and whether it is right.

All functions run on every rank together; times are those of the slowest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import lattend as lt

HEADS, D = 4, 64
WRONG = 1e-5  # of the norm, in float32
FORWARD, BACKWARD, TRAINING = "forward", "backward", "training step"

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass
class Contender:
    """An attention of this rank's shard, how positions are cut for it, and seconds and bytes of each pass."""

    attend: Attend
    cut: str | None = None
    learns: bool = True
    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    bytes: dict[str, int] = field(default_factory=dict[str, int])


# What comes


class Received(TorchDispatchMode):
    """Counts the bytes that come to this rank while it is open; of collectives, what others sent."""

    supports_higher_order_operators = True  # FlexAttention is one

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether torch.compile may go on inside."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.bytes += received(str(func.name()), args)
        return func(*args, **(kwargs or {}))


def received(name: str, args: Any) -> int:
    """The bytes of others in a call of an operator of torch.distributed; 0 of any other."""
    match name:
        case "c10d::recv_":
            return sum(x.nbytes for x in args[0])
        case "c10d::allgather_":
            return sum(x.nbytes for x in args[0][0]) - args[1][0].nbytes
        case "c10d::reduce_scatter_":
            return sum(x.nbytes for x in args[1][0]) - args[0][0].nbytes
        case "_c10d_functional::all_gather_into_tensor":
            return (args[1] - 1) * args[0].nbytes
        case "_c10d_functional::all_to_all_single":
            others = sum(args[1]) - args[1][dist.get_rank()]
            return others * args[0][0].nbytes
        case "cplib::flex_cp_allgather":
            return (dist.get_world_size() - 1) * (args[0].nbytes + args[1].nbytes)
        case _:
            if "c10d" in name and not name.endswith(("send", "wait_tensor", "_wrap_tensor_autograd")):
                raise NotImplementedError(f"bytes of {name} are not counted")
            return 0


# What is right


def results(contender: Contender, qkv: list[Tensor]) -> list[Tensor]:
    """The output and the gradients of this rank's shard, as far as there are any; bytes are counted."""
    x = [one.detach().requires_grad_(contender.learns) for one in qkv]
    with Received() as came:
        out = contender.attend(*x)
        contender.bytes[FORWARD] = came.bytes
        if contender.learns:
            out.square().sum().backward()
            contender.bytes[TRAINING] = came.bytes
    return [out.detach(), *(one.grad for one in x if one.grad is not None)]


def check(name: str, contender: Contender, qkv: list[Tensor], wanted: list[Tensor]) -> None:
    """Raises unless it gives the output and the gradients that are wanted, of all positions."""
    for found, whole in zip(results(contender, qkv), wanted, strict=False):
        want = lt.parallel.shard(whole, cut=contender.cut)
        error = float((found - want).norm() / want.norm())
        assert error < WRONG, f"{name}: {error}"


# How long it takes


def measure(some: dict[str, Contender], n: int, repeats: int, works: tuple[str, ...]) -> None:
    """Fills in bytes and times of all, which take turns; results must be those of the first."""
    torch.manual_seed(0)
    whole = [torch.randn(1, HEADS, n, D) for _ in range(3)]
    qkv = {one.cut: [lt.parallel.shard(x, cut=one.cut) for x in whole] for one in some.values()}
    first = next(iter(some.values()))
    wanted = [lt.parallel.unshard(x, cut=first.cut) for x in results(first, qkv[first.cut])]
    for name, one in some.items():
        check(name, one, qkv[one.cut], wanted)
        one.bytes = {work: int(greatest(size)) for work, size in one.bytes.items()}
    for turn in range(repeats + 1):  # the first is not counted: something may be compiled
        for one in some.values():
            for work in works if one.learns else works[:1]:
                took = timed(one.attend, qkv[one.cut], work)
                one.seconds.setdefault(work, []).extend([took][: turn > 0])


def timed(attend: Attend, qkv: list[Tensor], work: str) -> float:
    """Seconds of a forward pass, of a backward pass alone, or of a training step, which is both."""
    x = [one.detach().requires_grad_(work != FORWARD) for one in qkv]
    if work == BACKWARD:
        loss = attend(*x).square().sum()
        return seconds(loss.backward)
    if work == FORWARD:
        return seconds(lambda: attend(*x))
    return seconds(lambda: attend(*x).square().sum().backward())


def seconds(run: Callable[[], object]) -> float:
    """How long a function takes that all ranks begin together."""
    dist.barrier()
    began = time.perf_counter()
    run()
    return greatest(time.perf_counter() - began)


def greatest(number: float) -> float:
    """The greatest of the ranks' numbers."""
    found = torch.tensor([number], dtype=torch.float64)
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return float(found)


def spread(times: list[float]) -> float:
    """Half the distance of the quartiles, as a share of the median."""
    if len(times) < 2:
        return 0.0
    low, middle, high = quantiles(times, n=4, method="inclusive")
    return (high - low) / 2 / middle
