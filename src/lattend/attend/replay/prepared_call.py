"""Record: one kind of call, decided once. Its steps, noted on a Tape, are taken again by calls of that kind.

The kind is all that the code which decides may look at: the rule, its numbers and the options, and of each
tensor its dtype, device, shape, strides and alignment.
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
    Gradients,
    Kind,
)
from lattend.attend.call.memory import strides
from lattend.attend.call.padding import check_lengths
from lattend.attend.call.sinks import sink_gradients
from lattend.attend.kernels import dispatch
from lattend.attend.operators.operator_arguments import OperatorCall
from lattend.attend.replay.recorder import Steps, Tape
from lattend.attend.replay.signature import kind_of_tensors
from lattend.recent import Recent

MAX_RECORDS = 256
MAX_GRADIENTS = 4  # kinds of gradients that one record is given


class CallRecord:
    """One kind of call: its steps forward and backward, once they are known."""

    def __init__(self, operator_call: OperatorCall, call: AttentionCall) -> None:
        self.operator_call, self.call = operator_call, call.without_tensors()
        self.steps: Steps | None = None
        self.output_steps: Steps | None = None  # those that lead to the output alone
        self.backward_steps: Recent[Kind, Steps] = Recent(MAX_GRADIENTS)
        self._differentiated: bool | None = None

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *given: Tensor) -> tuple[Tensor, Tensor]:
        """The output and the log-sum-exp."""
        known = self.steps
        return self._first(q, k, v, *given)[:2] if known is None else self._again(known, q, k, v, *given)

    def output(self, q: Tensor, k: Tensor, v: Tensor, *given: Tensor) -> Tensor:
        """The output alone; that of torch's own attention on a GPU lies in memory as torch lays it."""
        known = self.output_steps
        return self._first(q, k, v, *given)[2] if known is None else self._again(known, q, k, v, *given)

    def way_to_output(self, q: Tensor) -> Steps:
        """What gives the output of such calls: the steps alone where nothing is to be looked at first."""
        return self.output if self._looks(q) or self.output_steps is None else self.output_steps

    def way_to_both(self, q: Tensor) -> Steps:
        """The same of the output and the log-sum-exp."""
        return self.forward if self._looks(q) or self.steps is None else self.steps

    def _looks(self, q: Tensor) -> bool:
        return self.call.key_range is not None or torch.is_autocast_enabled(q.device.type)

    def _first(self, q: Tensor, k: Tensor, v: Tensor, *given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The output, which lies in memory as q does, the log-sum-exp, and the output as it is given alone.

        The steps to them are noted.
        """
        self._check(k, given)
        tape, call = Tape(q, k, v, *given), self.call.with_tensors(given)
        with WithoutAutocast(q):
            alone, lse = dispatch.forward(tape, call, q, k, v)
        # a copy of what torch's own attention gives on a GPU would take longer than torch does
        own = q.device.type == "cuda" and dispatch.chosen(call, q, k, v) == "sdpa"
        alone = alone if own else _laid_out(tape, alone, q)
        self.output_steps = tape.steps_to(alone)
        lse = lse if lse.is_contiguous() else tape.do(Tensor.contiguous, lse)
        out = _laid_out(tape, alone, q)
        self.steps = tape.steps(out, lse)
        return out, lse, alone

    def _again(self, steps: Steps, q: Tensor, k: Tensor, v: Tensor, *given: Tensor) -> Any:
        self._check(k, given)
        if not torch.is_autocast_enabled(q.device.type):
            return steps(q, k, v, *given)
        with WithoutAutocast(q):
            return steps(q, k, v, *given)

    def _check(self, k: Tensor, given: Sequence[Tensor]) -> None:
        if self.call.key_range is not None:
            check_lengths(given[-1 if self.call.key_mask is None else -2], k.shape[2])

    def differentiated_by_torch(self, q: Tensor, k: Tensor, v: Tensor) -> bool:
        """Whether the steps to the output are torch's own, whose backward is the one that would run."""
        if self._differentiated is None:
            self._differentiated = dispatch.differentiated_by_torch(self.call, q, k, v)
        return self._differentiated

    def backward(
        self, inputs: BackwardInputs, given: Sequence[Tensor], learned: bool, of_grad: Kind | None = None
    ) -> Sequence[Tensor]:
        """The gradients of q, k and v, of the tensors of a bias, and of the sinks if there are any.

        `of_grad`: the kind of grad_out, where all other tensors are what the forward was given and gave.
        """
        whole = [x for x in inputs if x is not None]
        of_tensors = kind_of_tensors(*whole, *given) if of_grad is None else of_grad
        kind = learned, inputs.grad_lse is None, of_tensors
        known = self.backward_steps.get(kind)
        if known is not None:
            if not torch.is_autocast_enabled(inputs.q.device.type):
                return known(*whole, *given)
            with WithoutAutocast(inputs.q):
                return known(*whole, *given)
        tape, call = Tape(*whole, *given), replace(self.call.with_tensors(given), learned=learned)
        (*grads, biases), sinks = backward_steps(tape, call, inputs)
        found = [*grads, *biases, *(() if sinks is None else (sinks,))]
        steps = tape.steps(*found)
        if steps is not None:
            self.backward_steps.find(kind, lambda: steps)
        return found


RECORDS: Recent[Kind, CallRecord] = Recent(MAX_RECORDS)


def record_of(
    q: Tensor, k: Tensor, v: Tensor, operator_call: OperatorCall, *, trains: bool | None = None
) -> tuple[CallRecord, list[Tensor]]:
    """Returns the record of a call, and its tensors besides q, k and v.

    `trains` says whether a backward pass may follow; by default it may where a tensor wants a gradient.
    """
    plain, tensors = operator_call.without_tensors(), operator_call.tensors
    trains = wants_gradient(q, k, v, *tensors) if trains is None else trains
    kind = plain, trains, kind_of_tensors(q, k, v, *tensors)
    known = RECORDS.get(kind)
    if known is None:
        call = replace(operator_call.attention_call(q), trains=trains)
        known = RECORDS.find(kind, lambda: CallRecord(plain, call))
    return known, tensors


def wants_gradient(*tensors: Tensor) -> bool:
    """Whether autograd would follow what is done to them."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


# Steps


def backward_steps(tape: Tape, call: AttentionCall, given: BackwardInputs) -> tuple[Gradients, Tensor | None]:
    """The gradients of q, k and v, which lie in memory as those do, of the bias, and of the sinks if any."""
    with WithoutAutocast(given.q):
        dq, dk, dv, biases = dispatch.backward(tape, call, given)
        sinks = None
        if call.sinks is not None:
            known = [x for x in given if x is not None]
            sinks = tape.do(partial(_sink_gradients, given.grad_lse is not None), call.sinks, *known)
    whole = zip((dq, dk, dv), (given.q, given.k, given.v), strict=True)
    dq, dk, dv = (_laid_out(tape, grad, x) for grad, x in whole)
    return (dq, dk, dv, biases), sinks


def _sink_gradients(with_lse: bool, sinks: Tensor, grad_out: Tensor, *others: Tensor) -> Tensor:
    grad_lse, whole = (others[0], others[1:]) if with_lse else (None, others)
    return sink_gradients(sinks, BackwardInputs(grad_out, grad_lse, *whole))


def _laid_out(tape: Tape, found: Tensor, like: Tensor) -> Tensor:
    order = strides(like, found.shape[-1])
    if found.stride() == order:
        return found
    room = tape.empty(found.shape, found.dtype, found.device, order)
    return tape.do(Tensor.copy_, room, found)


class WithoutAutocast:
    """Where a kernel's own products keep their dtype; q, k and v were cast before.

    As torch.autocast(…, enabled=False) does, in a third of its time.
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
