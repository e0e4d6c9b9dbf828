"""Chooses the kernel of a call, says why the others cannot take it, and prepares its passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from torch import Tensor

from lattend import amx
from lattend.attend.call.attention_call import (
    AttentionCall,
    BackwardInputs,
    BackwardPass,
    ForwardPass,
    backward_inputs,
)
from lattend.attend.call.sinks import sink_gradients, with_sinks
from lattend.attend.call.tensors import in_layout_of
from lattend.attend.kernels import dense, gpu_crossovers, reference, sdpa
from lattend.attend.kernels.cpu import kernel as cpu
from lattend.attend.kernels.cpu import masked_sdpa
from lattend.attend.kernels.crossover import KernelCrossover
from lattend.attend.kernels.native import kernel as native
from lattend.attend.kernels.native.crossovers import PASSES
from lattend.attend.kernels.triton import fp8
from lattend.attend.kernels.triton import kernel as triton
from lattend.errors import LattendError


class Kernel(Protocol):
    """What each module of kernels/ has: why it cannot take a call, and functions that prepare its passes."""

    def why_not(self, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None: ...

    def prepare(self, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> ForwardPass: ...

    def prepare_backward(self, call: AttentionCall, inputs: BackwardInputs) -> BackwardPass: ...


class TorchKernel:
    """A kernel of torch operations, which decides as it runs: nothing is prepared."""

    def __init__(self, module: Any) -> None:
        self.module, self.why_not = module, module.why_not

    def prepare(self, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> ForwardPass:
        forward, bare = self.module.forward, call.without_tensors()

        def run(q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor]:
            output, lse = forward(bare.with_tensors(tensors), q, k, v)
            return in_layout_of(output, q), lse.contiguous()

        return ForwardPass.of(run)

    def prepare_backward(self, call: AttentionCall, inputs: BackwardInputs) -> BackwardPass:
        backward, bare, has_grad_lse = (
            self.module.backward,
            call.without_tensors(),
            inputs.grad_lse is not None,
        )

        def run(*tensors: Tensor) -> Sequence[Tensor]:
            given, others = backward_inputs(has_grad_lse, tensors)
            *grads, biases = backward(bare.with_tensors(others), given)
            matrices = zip(grads, (given.q, given.k, given.v), strict=True)
            return [*(in_layout_of(grad, x) for grad, x in matrices), *biases]

        return run


class CpuKernel(TorchKernel):
    """Torch operations on tiles; few pairs that depend on data are one call of torch's own attention."""

    def prepare(self, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> ForwardPass:
        prepare = masked_sdpa.prepare if masked_sdpa.takes(call, q, k, v) else super().prepare
        return prepare(call, q, k, v)

    def prepare_backward(self, call: AttentionCall, inputs: BackwardInputs) -> BackwardPass:
        small = inputs.grad_lse is None and masked_sdpa.takes(call, inputs.q, inputs.k, inputs.v)
        return (masked_sdpa.prepare_backward if small else super().prepare_backward)(call, inputs)


# In the order they are preferred, but for what `preferred` says
KERNELS: dict[str, Kernel] = {
    "sdpa": sdpa,
    "triton": triton,
    "native": native,
    "cpu": CpuKernel(cpu),
    "dense": TorchKernel(dense),
    "reference": TorchKernel(reference),
}


def reasons(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> dict[str, str | None]:
    """For each kernel, None when it can take the call, or why it cannot."""
    if call.scales is not None:
        reason = fp8.why_not(call, q, k, v)
        return {name: reason if name == "triton" else "it has no products of 8 bits" for name in KERNELS}
    return {name: kernel.why_not(call, q, k, v) for name, kernel in KERNELS.items()}


def preferred(call: AttentionCall, q: Tensor, v: Tensor) -> list[str]:
    """The kernels in the order they are tried: first one of ours where it is faster than torch's own."""
    ours, found = "native", native.crossover("forward", call, q, v)
    if q.device.type == "cuda":
        ours, found = "triton", gpu_crossovers.forward(call, q, v)
    first = "sdpa" if found is None or found.passed else ours
    return sorted(KERNELS, key=lambda name: name != first)


def chosen(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str:
    """The kernel that was asked for, or the first that can take the call."""
    if call.scales is not None:  # other kernels take dequantized numbers
        return _of_8_bits(call, q, k, v)
    if call.kernel is not None:
        reason = KERNELS[call.kernel].why_not(call, q, k, v)
        if reason is not None:
            raise LattendError(f'kernel="{call.kernel}" cannot run this: {reason}')
        return call.kernel
    for name in preferred(call, q, v):
        if KERNELS[name].why_not(call, q, k, v) is None:
            return name
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons(call, q, k, v).items())
    raise LattendError(f"no kernel can run this. {why}")


def _of_8_bits(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str:
    reason = fp8.why_not(call, q, k, v)
    if reason is not None:
        raise LattendError(f"no kernel multiplies these numbers of 8 bits: {reason}")
    return "triton"


def chosen_backward(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor, grad_lse: Tensor | None) -> str:
    """The kernel of the backward pass: the forward's, unless that is torch's own and cannot take it.

    After the native kernel it is torch's own where that is faster; the choice looks at no gradient that is
    wanted, so a forward pass is chosen by forward passes alone.
    """
    name = chosen(call, q, k, v)
    if name == "native":
        passed = grad_lse is None and any(found.passed for found in crossovers(call, q, k, v))
        return "sdpa" if passed else name
    reason = sdpa.why_not_backward(call, q, k, grad_lse) if name == "sdpa" else None
    if reason is None:
        return name
    missing = {"sdpa": reason}
    for name in ("native", "cpu") if q.device.type == "cpu" else ("triton",):
        why = KERNELS[name].why_not(replace(call, kernel=None), q, k, v)
        if why is None:
            return name
        missing[name] = why
    said = "; ".join(f"{name}: {why}" for name, why in missing.items())
    raise LattendError(f"no kernel can run the backward pass. {said}")


def crossovers(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> list[KernelCrossover]:
    """The crossovers that choose between torch's own attention and a kernel of ours, where both can run."""
    if call.kernel is not None or sdpa.why_not(call, q, k, v) is not None:
        return []
    if q.device.type == "cuda":
        forward = gpu_crossovers.forward(call, q, v) if triton.why_not(call, q, k, v) is None else None
        later = forward is None or (forward.passed and not call.deterministic)
        backward = gpu_crossovers.backward(call, q) if later else None
        return [found for found in (forward, backward) if found is not None]
    if native.why_not(call, q, k, v) is not None:
        return []
    forward, backward = (native.crossover(work, call, q, v) for work in PASSES)
    if forward is None or backward is None:
        return []
    return [forward] if forward.passed else [forward, backward]


def differentiated_by_torch(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether both passes are torch's own attention, so that torch.autograd can tie them together on a GPU.

    On a CPU little is saved, and who asks for a second derivative is told what to do by ours alone.
    """
    if q.device.type == "cpu" or call.sinks is not None or chosen(call, q, k, v) != "sdpa":
        return False
    return chosen_backward(call, q, k, v, None) == "sdpa"


def prepare(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> ForwardPass:
    """Prepares the output [batch, heads, n, Dv], and each row's log-sum-exp of scores [batch, heads, n]."""
    amx.check(q)
    name = chosen(call, q, k, v)
    forward = KERNELS[name].prepare(call, q, k, v)
    if call.sinks is None or name == "reference":  # it has them among its scores
        return forward
    sinks = 3 + len(call.data) + len(call.bias)  # their place among the tensors of a pass

    def run(*tensors: Tensor) -> tuple[Tensor, Tensor]:
        return with_sinks(*forward.run(*tensors), tensors[sinks])

    return ForwardPass.of(run)


def prepare_backward(call: AttentionCall, inputs: BackwardInputs) -> BackwardPass:
    """Prepares the gradients of q, k and v, of the bias' tensors, and of the sinks if there are any."""
    name = chosen_backward(call, inputs.q, inputs.k, inputs.v, inputs.grad_lse)
    backward = KERNELS[name].prepare_backward(call, inputs)
    if call.sinks is None:
        return backward
    has_grad_lse, sinks = inputs.grad_lse is not None, len(call.data) + len(call.bias)

    def run(*tensors: Tensor) -> Sequence[Tensor]:
        given, others = backward_inputs(has_grad_lse, tensors)
        return [*backward(*tensors), sink_gradients(others[sinks], given)]

    return run
