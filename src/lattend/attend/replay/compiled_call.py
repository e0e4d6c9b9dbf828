"""CompiledCall: what was decided for one signature, as steps that are repeated on other tensors.

The signature is all that the code which decides may look at: the rule, its numbers and the options, and of
each tensor its dtype, device, shape, strides and alignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lattend.attend.call.attention_call import (
    AttentionCall,
    BackwardInputs,
    CallSignature,
    Gradients,
)
from lattend.attend.call.padding import check_lengths
from lattend.attend.call.sinks import sink_gradients
from lattend.attend.call.tensors import strides
from lattend.attend.kernels import dispatch
from lattend.attend.operators.operator_arguments import OperatorCall
from lattend.attend.replay.recorder import Recorder, Steps
from lattend.attend.replay.signature import tensor_signature
from lattend.recent import Recent

MAX_CALLS = 256
MAX_GRADIENTS = 4  # signatures of gradients that are kept for one call


class CompiledCall:
    """The steps of one signature, forward and backward, once they are recorded."""

    def __init__(self, operator_call: OperatorCall, call: AttentionCall) -> None:
        self.operator_call, self.call = operator_call, call.without_tensors()
        self.steps: Steps | None = None
        self.output_steps: Steps | None = None  # those that lead to the output alone
        self.backward_steps: Recent[CallSignature, Steps] = Recent(MAX_GRADIENTS)
        self._differentiated: bool | None = None

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *given: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the output and the log-sum-exp."""
        known = self.steps
        return self._record(q, k, v, *given)[:2] if known is None else self._replay(known, q, k, v, *given)

    def output(self, q: Tensor, k: Tensor, v: Tensor, *given: Tensor) -> Tensor:
        """Returns the output alone, which torch's own attention on a GPU lays out in memory as it likes."""
        known = self.output_steps
        return self._record(q, k, v, *given)[2] if known is None else self._replay(known, q, k, v, *given)

    def output_runner(self, q: Tensor) -> Steps:
        """Returns the recorded steps to the output directly when a call needs no checks."""
        return self.output if self._needs_checks(q) or self.output_steps is None else self.output_steps

    def runner(self, q: Tensor) -> Steps:
        """Returns the same for the output and the log-sum-exp."""
        return self.forward if self._needs_checks(q) or self.steps is None else self.steps

    def _needs_checks(self, q: Tensor) -> bool:
        return self.call.key_range is not None or torch.is_autocast_enabled(q.device.type)

    def _record(self, q: Tensor, k: Tensor, v: Tensor, *given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Runs a call and records its steps.

        Returns the output in the layout of q, the log-sum-exp, and the output as `output` returns it.
        """
        self._check(k, given)
        recorder, call = Recorder(q, k, v, *given), self.call.with_tensors(given)
        with WithoutAutocast(q):
            alone, lse = dispatch.forward(recorder, call, q, k, v)
        # a copy of what torch's own attention gives on a GPU would take longer than torch does
        own = q.device.type == "cuda" and dispatch.chosen(call, q, k, v) == "sdpa"
        alone = alone if own else _in_layout_of(recorder, alone, q)
        self.output_steps = recorder.steps_to(alone)
        lse = lse if lse.is_contiguous() else recorder.do(Tensor.contiguous, lse)
        out = _in_layout_of(recorder, alone, q)
        self.steps = recorder.steps(out, lse)
        return out, lse, alone

    def _replay(self, steps: Steps, q: Tensor, k: Tensor, v: Tensor, *given: Tensor) -> Any:
        self._check(k, given)
        if not torch.is_autocast_enabled(q.device.type):
            return steps(q, k, v, *given)
        with WithoutAutocast(q):
            return steps(q, k, v, *given)

    def _check(self, k: Tensor, given: Sequence[Tensor]) -> None:
        if self.call.key_range is not None:
            check_lengths(given[-1 if self.call.key_mask is None else -2], k.shape[2])

    def differentiated_by_torch(self, q: Tensor, k: Tensor, v: Tensor) -> bool:
        """Whether torch's own attention runs both passes, so that torch.autograd can tie them together."""
        if self._differentiated is None:
            self._differentiated = dispatch.differentiated_by_torch(self.call, q, k, v)
        return self._differentiated

    def backward(
        self,
        inputs: BackwardInputs,
        given: Sequence[Tensor],
        learned: bool,
        of_grad: CallSignature | None = None,
    ) -> Sequence[Tensor]:
        """Returns the gradients of q, k and v, of the tensors of a bias, and of the sinks if there are any.

        `of_grad` is the signature of grad_out, when all other tensors are the forward pass's own.
        """
        tensors = [x for x in inputs if x is not None]
        of_tensors = tensor_signature(*tensors, *given) if of_grad is None else of_grad
        signature = learned, inputs.grad_lse is None, of_tensors
        known = self.backward_steps.get(signature)
        if known is not None:
            if not torch.is_autocast_enabled(inputs.q.device.type):
                return known(*tensors, *given)
            with WithoutAutocast(inputs.q):
                return known(*tensors, *given)
        recorder, call = Recorder(*tensors, *given), replace(self.call.with_tensors(given), learned=learned)
        (*grads, biases), sinks = backward_steps(recorder, call, inputs)
        gradients = [*grads, *biases, *(() if sinks is None else (sinks,))]
        steps = recorder.steps(*gradients)
        if steps is not None:
            self.backward_steps.find(signature, lambda: steps)
        return gradients


COMPILED_CALLS: Recent[CallSignature, CompiledCall] = Recent(MAX_CALLS)


def compiled_call_of(
    q: Tensor, k: Tensor, v: Tensor, operator_call: OperatorCall, *, trains: bool | None = None
) -> tuple[CompiledCall, list[Tensor]]:
    """Returns the record of a call, and its tensors besides q, k and v.

    `trains` says whether a backward pass may follow; by default it may where a tensor wants a gradient.
    """
    plain, tensors = operator_call.without_tensors(), operator_call.tensors
    trains = wants_gradient(q, k, v, *tensors) if trains is None else trains
    kind = plain, trains, tensor_signature(q, k, v, *tensors)
    known = COMPILED_CALLS.get(kind)
    if known is None:
        call = replace(operator_call.attention_call(q), trains=trains)
        known = COMPILED_CALLS.find(kind, lambda: CompiledCall(plain, call))
    return known, tensors


def wants_gradient(*tensors: Tensor) -> bool:
    """Whether autograd records what is done to these tensors."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


# Steps


def backward_steps(
    recorder: Recorder, call: AttentionCall, given: BackwardInputs
) -> tuple[Gradients, Tensor | None]:
    """Computes the gradients of q, k and v in their layouts, of the bias, and of the sinks if any."""
    with WithoutAutocast(given.q):
        dq, dk, dv, biases = dispatch.backward(recorder, call, given)
        sinks = None
        if call.sinks is not None:
            known = [x for x in given if x is not None]
            sinks = recorder.do(partial(_sink_gradients, given.grad_lse is not None), call.sinks, *known)
    whole = zip((dq, dk, dv), (given.q, given.k, given.v), strict=True)
    dq, dk, dv = (_in_layout_of(recorder, grad, x) for grad, x in whole)
    return (dq, dk, dv, biases), sinks


def _sink_gradients(with_lse: bool, sinks: Tensor, grad_out: Tensor, *others: Tensor) -> Tensor:
    grad_lse, whole = (others[0], others[1:]) if with_lse else (None, others)
    return sink_gradients(sinks, BackwardInputs(grad_out, grad_lse, *whole))


def _in_layout_of(recorder: Recorder, found: Tensor, like: Tensor) -> Tensor:
    order = strides(like, found.shape[-1])
    if found.stride() == order:
        return found
    room = recorder.empty(found.shape, found.dtype, found.device, order)
    return recorder.do(Tensor.copy_, room, found)


class WithoutAutocast:
    """Turns autocast off inside it: q, k and v were cast before, and a kernel's products keep their dtype.

    torch.autocast(…, enabled=False) does the same in three times its time.
    """

    __slots__ = ("device", "enabled")

    def __init__(self, q: Tensor) -> None:
        self.device = q.device.type
        self.enabled = torch.is_autocast_enabled(self.device)

    def __enter__(self) -> None:
        if self.enabled:
            torch.set_autocast_enabled(self.device, False)

    def __exit__(self, *raised: object) -> None:
        if self.enabled:
            torch.set_autocast_enabled(self.device, True)
