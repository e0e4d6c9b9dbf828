"""Which kernel runs a call, and why the others do not: the one place that says so; and running it."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from torch import Tensor

from lattend import amx
from lattend.attend.call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.kernels import dense, reference, sdpa
from lattend.attend.kernels.cpu import kernel as cpu
from lattend.attend.kernels.triton import kernel as triton
from lattend.attend.sinks import with_sinks
from lattend.errors import LattendError


class Kernel(Protocol):
    """What each module of kernels/ has."""

    def why_not(self, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None: ...

    def forward(self, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]: ...

    def backward(self, call: AttentionCall, given: BackwardInputs) -> Gradients: ...


# In the order they are preferred
KERNELS: dict[str, Kernel] = {
    "sdpa": sdpa,
    "triton": triton,
    "cpu": cpu,
    "dense": dense,
    "reference": reference,
}


def reasons(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> dict[str, str | None]:
    """For each kernel, None when it can take the call, or why it cannot."""
    return {name: kernel.why_not(call, q, k, v) for name, kernel in KERNELS.items()}


def chosen(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str:
    """The kernel that was asked for, or the first that can take the call."""
    if call.kernel is not None:
        reason = KERNELS[call.kernel].why_not(call, q, k, v)
        if reason is not None:
            raise LattendError(f'kernel="{call.kernel}" cannot run this: {reason}')
        return call.kernel
    for name, kernel in KERNELS.items():
        if kernel.why_not(call, q, k, v) is None:
            return name
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons(call, q, k, v).items())
    raise LattendError(f"no kernel can run this. {why}")


def chosen_backward(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor, grad_lse: Tensor | None) -> str:
    """The kernel of the backward pass: the forward's, unless that is torch's own and cannot take it."""
    name = chosen(call, q, k, v)
    reason = sdpa.why_not_backward(call, q, k, grad_lse) if name == "sdpa" else None
    if reason is None:
        return name
    instead = "cpu" if q.device.type == "cpu" else "triton"
    missing = KERNELS[instead].why_not(replace(call, kernel=None), q, k, v)
    if missing is not None:
        raise LattendError(f"no kernel can run the backward pass. sdpa: {reason}; {instead}: {missing}")
    return instead


def forward(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output [batch, heads, n, Dv], and each row's log-sum-exp of scores [batch, heads, n]."""
    amx.check(q)
    name = chosen(call, q, k, v)
    out, lse = KERNELS[name].forward(call, q, k, v)
    if call.sinks is None or name == "reference":  # it has them among its scores
        return out, lse
    return with_sinks(out, lse, call.sinks)


def backward(call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k and v, and of the tensors of the bias."""
    kernel = chosen_backward(call, given.q, given.k, given.v, given.grad_lse)
    return KERNELS[kernel].backward(call, given)
