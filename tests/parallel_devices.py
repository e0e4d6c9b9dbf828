"""What ranks do where they are held to float64: errors by name, bits, bytes, streams, order of messages."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from parallel_cases import Case, alone, bytes_of, over_ranks

from lattend.attend.kernels.tolerance import TOLERANCE
from lattend.attend.operators import attention_operator
from lattend.parallel.exchange import Exchange
from lattend.parallel.sharded_attention import attention

NAMES = ("out", "lse", "dq", "dk", "dv")
WRONG_LSE = 5e-3
WORSE = 4  # times plain attention's error in the same dtype, where that is above the tolerance itself
CYCLES = 100_000_000  # of a GPU's clock that tensors are late: some 60 ms
LATE = 0.1  # seconds that a message is late


@dataclass
class Found:
    """What a rank found: what is wrong, the largest error, and the bytes that came to it."""

    wrong: list[str] = field(default_factory=list[str])
    worst: float = 0.0
    bytes: tuple[int, int] = (0, 0)


def compared(group: Any, case: Case, runs: int) -> Found:
    """A case beside float64 in one process on the same device: outputs and gradients, bytes, equal bits."""
    rank, first = dist.get_rank(group), over_ranks(group, case)
    found = Found(bytes=(first["forward"], first["backward"]))
    results = _summed(group, case, first["results"])
    hold(found, case, rank, results)
    if found.bytes != (wanted := bytes_of(case, rank, first["strategy"])):
        found.wrong.append(f"bytes {found.bytes}, counted {wanted}")
    for _ in range(runs - 1):
        again = over_ranks(group, case)["results"]
        if not all(torch.equal(x, y) for x, y in zip(first["results"], again, strict=True)):
            found.wrong.append("other bits on another run")
            break
    return found


def _summed(group: Any, case: Case, results: list[Any]) -> list[Any]:
    """Gradients of what all ranks share are added over them; a table's rows are a rank's own."""
    shares = results[len(NAMES) :]
    own = 1 if case.bias is not None and not isinstance(case.bias, tuple) else 0
    totals: list[Any] = []
    for share in shares[own:]:
        total = share.double().cpu()
        dist.all_reduce(total, group=group)
        totals.append(total.to(case.device))
    return [*results[: len(NAMES)], *shares[:own], *totals]


def hold(found: Found, case: Case, rank: int, results: list[Any]) -> None:
    """Notes what is further from float64 than the table of tolerances allows."""
    exact, plain, places = alone(case, kernel="dense"), None, case.places(rank).to(case.device)
    names = [*NAMES, *case.learned()]
    for at, (name, result) in enumerate(zip(names, results, strict=True)):
        want = _mine(case, name, exact[at], places)
        if name == "lse":
            error, limit = float((result.double() - want).abs().max()), WRONG_LSE
        else:
            error, limit = relative(result, want), TOLERANCE[case.dtype]
        if not error <= limit and name != "lse":
            plain = plain or alone(case, case.dtype, "dense")
            limit = max(limit, WORSE * relative(_mine(case, name, plain[at], places), want))
        found.worst = max(found.worst, error)
        if not error <= limit:
            found.wrong.append(f"{name} is off by {error:.1e}, allowed {limit:.1e}")


def _mine(case: Case, name: str, whole: Any, places: torch.Tensor) -> Any:
    """A rank's part of what one process has."""
    if name == "table":
        return whole[..., places, :]
    return whole[:, :, places] if name in NAMES else whole


def relative(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found.double() - wanted).norm() / wanted.norm().clamp(min=1e-9))


# Streams, and messages on their way


def late_tensors(group: Any, case: Case, joined: bool) -> Found:
    """Attention whose q, k and v are still being made on a stream of their own when it is called.

    It is called on that stream, or, `joined`, on the usual one, which then waits for it. On a CPU nothing is
    late.
    """
    places = case.places(dist.get_rank(group)).to(case.device)
    *qkv, out, lse = (x[:, :, places] for x in case.tensors())
    leaves = [torch.full_like(x, torch.nan) for x in qkv]  # what is read too early shows
    cuda = case.device == "cuda"
    side: Any = torch.cuda.Stream() if cuda else None
    if cuda:
        torch.cuda.synchronize()
    with torch.cuda.stream(side) if cuda else contextlib.nullcontext():
        if cuda:
            torch.cuda._sleep(CYCLES)
        for leaf, x in zip(leaves, qkv, strict=True):
            leaf.copy_(x)
    if cuda and joined:
        torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.stream(side) if cuda and not joined else contextlib.nullcontext():
        learned = [x.requires_grad_() for x in leaves]
        attend: Any = attention
        how = {"strategy": case.strategy, "kernel": case.kernel, "return_lse": True}
        result = attend(*learned, case.rule, mesh=group, **how)
        loss = (result[0] * out).sum() + (result[1] * lse).sum()
        grads = torch.autograd.grad(loss, learned)
    if cuda:
        torch.cuda.synchronize()
    found = Found()
    hold(found, case, dist.get_rank(group), [*(x.detach() for x in result), *grads])
    return found


def late_messages(group: Any, case: Case) -> Found:
    """Attention whose messages leave the last rank late: others compute their own pairs meanwhile."""
    last = dist.get_rank(group) == dist.get_world_size(group) - 1
    order: list[str] = []
    begin, wait, forward = Exchange.begin, Exchange.wait, attention_operator.forward

    def late_begin(*args: Any) -> Any:
        if last:
            time.sleep(LATE)
        order.append("sent")
        return begin(*args)

    def noted_wait(self: Any) -> Any:
        order.append("waited")
        return wait(self)

    def noted_forward(*args: Any) -> Any:
        order.append("computed")
        return forward(*args)

    Exchange.begin, Exchange.wait = staticmethod(late_begin), noted_wait  # pyright: ignore
    attention_operator.forward = noted_forward
    try:
        results = over_ranks(group, case)["results"]
    finally:
        Exchange.begin, Exchange.wait = staticmethod(begin), wait  # pyright: ignore
        attention_operator.forward = forward
    found = Found()
    hold(found, case, dist.get_rank(group), _summed(group, case, results))
    if order[:2] != ["sent", "computed"] or "waited" not in order[2:]:
        found.wrong.append(f"messages and work in the order {', '.join(order)}")
    return found


def on_a_mesh(group: Any, case: Case) -> Found:
    """A case on a mesh of the device, of all ranks, as programs make it."""
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh(case.device, (dist.get_world_size(group),), mesh_dim_names=("sequence",))
    return compared(mesh.get_group(), case, 2)
