"""Which kernel runs a call, and why the others do not: the one place that says so; and running it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from torch import Tensor

from lattend import amx
from lattend.attend.call.attention_call import AttentionCall, BackwardInputs, Gradients
from lattend.attend.call.sinks import with_sinks
from lattend.attend.kernels import dense, gpu_crossovers, reference, sdpa
from lattend.attend.kernels.cpu import kernel as cpu
from lattend.attend.kernels.cpu import masked_sdpa
from lattend.attend.kernels.crossover import KernelCrossover
from lattend.attend.kernels.native import kernel as native
from lattend.attend.kernels.native.crossovers import PASSES
from lattend.attend.kernels.triton import fp8
from lattend.attend.kernels.triton import kernel as triton
from lattend.attend.replay.recorder import Recorder
from lattend.errors import LattendError


class Kernel(Protocol):
    """What each module of kernels/ has."""

    def why_not(self, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None: ...

    def forward(
        self, recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor]: ...

    def backward(self, recorder: Recorder, call: AttentionCall, given: BackwardInputs) -> Gradients: ...


class OneStep:
    """A kernel of torch operations that decides as it goes: all of it is one step of a recorder."""

    def __init__(self, module: Any) -> None:
        self.module, self.why_not = module, module.why_not

    def forward(
        self, recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor]:
        run, bare = self.module.forward, call.without_tensors()

        def step(q: Tensor, k: Tensor, v: Tensor, *given: Tensor) -> tuple[Tensor, Tensor]:
            return run(bare.with_tensors(given), q, k, v)

        return recorder.do(step, q, k, v, *call.tensors)

    def backward(self, recorder: Recorder, call: AttentionCall, given: BackwardInputs) -> Gradients:
        run, bare, grad_lse = self.module.backward, call.without_tensors(), given.grad_lse

        def step(grad_out: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
            lse_too, left = (None, tensors) if grad_lse is None else (tensors[0], tensors[1:])
            inputs = BackwardInputs(grad_out, lse_too, *left[:5])
            *grads, biases = run(bare.with_tensors(left[5:]), inputs)
            return *grads, *biases

        whole = [x for x in given if x is not None]
        dq, dk, dv, *biases = recorder.do(step, *whole, *call.tensors)
        return dq, dk, dv, biases

    def largest(self, call: AttentionCall, q: Tensor, k: Tensor) -> Tensor:
        return self.module.largest(call, q, k)


class OnCpu(OneStep):
    """Torch operations on a CPU; few pairs that depend on data have steps of their own."""

    def forward(
        self, recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[Tensor, Tensor]:
        run = masked_sdpa.forward if masked_sdpa.takes(call, q, k, v) else super().forward
        return run(recorder, call, q, k, v)

    def backward(self, recorder: Recorder, call: AttentionCall, given: BackwardInputs) -> Gradients:
        small = given.grad_lse is None and masked_sdpa.takes(call, given.q, given.k, given.v)
        return (masked_sdpa.backward if small else super().backward)(recorder, call, given)


# In the order they are preferred, but for what `preferred` says
KERNELS: dict[str, Kernel] = {
    "sdpa": sdpa,
    "triton": triton,
    "native": native,
    "cpu": OnCpu(cpu),
    "dense": OneStep(dense),
    "reference": OneStep(reference),
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


def forward(
    recorder: Recorder, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """The output [batch, heads, n, Dv], and each row's log-sum-exp of scores [batch, heads, n]."""
    amx.check(q)
    name = chosen(call, q, k, v)
    out, lse = KERNELS[name].forward(recorder, call, q, k, v)
    if call.sinks is None or name == "reference":  # it has them among its scores
        return out, lse
    return recorder.do(with_sinks, out, lse, call.sinks)


def backward(recorder: Recorder, call: AttentionCall, given: BackwardInputs) -> Gradients:
    """The gradients of q, k and v, and of the tensors of the bias."""
    kernel = chosen_backward(call, given.q, given.k, given.v, given.grad_lse)
    return KERNELS[kernel].backward(recorder, call, given)
