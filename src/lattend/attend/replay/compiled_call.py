"""CompiledCall: what was prepared for one signature, forward and backward.

The signature is all that the code which decides may look at: the rule, its numbers and the options, and of
each tensor its dtype, device, shape, strides and alignment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lattend.attend.call.attention_call import (
    AttentionCall,
    BackwardInputs,
    BackwardPass,
    CallSignature,
    ForwardPass,
)
from lattend.attend.call.padding import check_lengths
from lattend.attend.kernels import dispatch
from lattend.attend.operators.operator_arguments import OperatorCall
from lattend.attend.replay.signature import tensor_signature
from lattend.recent import Recent

MAX_CALLS = 256
MAX_GRADIENTS = 4  # signatures of gradients that are kept for one call


class CompiledCall:
    """What was prepared for one signature: a forward pass, and a backward pass for each kind of gradient."""

    def __init__(self, operator_call: OperatorCall, call: AttentionCall) -> None:
        self.operator_call, self.call = operator_call, call.without_tensors()
        self.forward_pass: ForwardPass | None = None
        self.backward_passes: Recent[CallSignature, BackwardPass] = Recent(MAX_GRADIENTS)
        self._differentiated: bool | None = None

    def forward_pass_for(self, q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> ForwardPass:
        """Returns the forward pass, which is prepared for the first of such tensors."""
        if self.forward_pass is None:
            self.forward_pass = dispatch.prepare(self.call.with_tensors(tensors), q, k, v)
        return self.forward_pass

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the output and the log-sum-exp."""
        self._check(k, tensors)
        with WithoutAutocast(q):
            return self.forward_pass_for(q, k, v, *tensors).run(q, k, v, *tensors)

    def output(self, q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> Tensor:
        """Returns the output alone, which torch's own attention on a GPU lays out in memory as it likes."""
        self._check(k, tensors)
        with WithoutAutocast(q):
            return self.forward_pass_for(q, k, v, *tensors).output(q, k, v, *tensors)

    def runner(self, *tensors: Tensor) -> Callable[..., tuple[Tensor, Tensor]]:
        """Returns `forward`, or the prepared pass itself if such calls need no checks."""
        return self.forward if self._needs_checks(tensors[0]) else self.forward_pass_for(*tensors).run

    def output_runner(self, *tensors: Tensor) -> Callable[..., Tensor]:
        """Returns `output`, or the prepared pass itself if such calls need no checks."""
        return self.output if self._needs_checks(tensors[0]) else self.forward_pass_for(*tensors).output

    def _needs_checks(self, q: Tensor) -> bool:
        return self.call.key_range is not None or torch.is_autocast_enabled(q.device.type)

    def _check(self, k: Tensor, tensors: Sequence[Tensor]) -> None:
        if self.call.key_range is not None:
            check_lengths(tensors[-1 if self.call.key_mask is None else -2], k.shape[2])

    def differentiated_by_torch(self, q: Tensor, k: Tensor, v: Tensor) -> bool:
        """Whether torch's own attention runs both passes, so that torch.autograd can tie them together."""
        if self._differentiated is None:
            self._differentiated = dispatch.differentiated_by_torch(self.call, q, k, v)
        return self._differentiated

    def backward(
        self, inputs: BackwardInputs, tensors: Sequence[Tensor], learned: bool,
        grad_signature: CallSignature | None = None,
    ) -> Sequence[Tensor]:  # fmt: skip
        """Returns the gradients of q, k and v, of the tensors of a bias, and of the sinks if there are any.

        `grad_signature` is that of grad_out, when all other tensors are the forward pass's own.
        """
        given = [*(x for x in inputs if x is not None), *tensors]
        of_tensors = tensor_signature(*given) if grad_signature is None else grad_signature
        signature = learned, inputs.grad_lse is None, of_tensors
        known = self.backward_passes.get(signature)
        if known is not None and not torch.is_autocast_enabled(inputs.q.device.type):
            return known(*given)
        with WithoutAutocast(inputs.q):
            if known is None:
                call = replace(self.call.with_tensors(tensors), learned=learned)
                prepared = dispatch.prepare_backward(call, inputs)
                known = self.backward_passes.find(signature, lambda: prepared)
            return known(*given)


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
