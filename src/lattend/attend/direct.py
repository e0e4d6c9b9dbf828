"""Plain calls run their kernel at once, and a call of a kind that is known repeats what was decided before.

The operator lattend::attention is for whoever traces or watches a call: torch.compile, torch.func, dispatch
modes. Its way through torch's dispatcher takes longer than a small kernel does. Around a plain call there is
torch.autograd and nothing else.

A Record holds the steps of one kind of call, noted on a Tape while the code that one reads ran. The kind is
all that this code may look at: the rule, its numbers and the options, and of each tensor its dtype, device,
shape, strides and alignment.
"""

# torch.autograd.Function and forward_ad have no types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack
from torch._C._functorch import get_interpreter_stack
from torch.autograd import forward_ad

from lattend.attend import operator
from lattend.attend.bias import Bias
from lattend.attend.call import AttentionCall, BackwardInputs
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.attend.tape import Steps, Tape
from lattend.recent import Recent
from lattend.rules.reader import RuleLike, read_rule

MAX_RECORDS = 512
MAX_GRADIENTS = 4  # kinds of gradients that one record is given
PLAIN = (Tensor, torch.nn.Parameter)
NUMBERS = (int, float, bool, str, NoneType)
Kind = Hashable


class Record:
    """One kind of call: its steps forward and backward, once they are known."""

    def __init__(self, how: Sequence[Any], call: AttentionCall) -> None:
        rule, numbers, _, term, *_ = how
        self.rule, self.numbers, self.term, self.options = rule, numbers, term, how[-5:]
        self.call = call.without_tensors()
        self.steps: Steps | None = None
        self.backward_steps: Recent[Kind, Steps] = Recent(MAX_GRADIENTS)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, *given: Tensor) -> tuple[Tensor, Tensor]:
        """The output and the log-sum-exp."""
        if self.steps is not None:
            with operator.exactly(q):
                out, lse = self.steps(q, k, v, *given)
            return out, lse
        tape = Tape(q, k, v, *given)
        out, lse = operator.forward_steps(tape, self.call.with_tensors(given), q, k, v)
        self.steps = tape.steps(out, lse)
        return out, lse

    def backward(self, inputs: BackwardInputs, given: Sequence[Tensor], learned: bool) -> list[Tensor]:
        """The gradients of q, k and v, of the tensors of a bias, and of the sinks if there are any."""
        whole = [x for x in inputs if x is not None]
        kind = (learned, *map(kind_of, whole[: len(whole) - 5]))
        known = self.backward_steps.get(kind)
        if known is not None:
            with operator.exactly(inputs.q):
                return known(*whole, *given)
        tape, call = Tape(*whole, *given), replace(self.call.with_tensors(given), learned=learned)
        (*grads, biases), sinks = operator.backward_steps(tape, call, inputs)
        found = [*grads, *biases, *(() if sinks is None else (sinks,))]
        steps = tape.steps(*found)
        if steps is not None:
            self.backward_steps.find(kind, lambda: steps)
        return found

    def by_operator(self, inputs: BackwardInputs, given: Sequence[Tensor], learned: bool) -> list[Tensor]:
        """The same where somebody watches, or wants a second derivative."""
        call = self.call.with_tensors(given)
        tensors = ([*call.bias.values()], call.key_range, call.key_mask, call.sinks, call.seed)
        how = (self.rule, self.numbers, [*call.data.values()], self.term, *tensors, *self.options)
        *grads, biases, sinks = operator.gradients(inputs, learned, *how)
        return [*grads, *biases, *(() if call.sinks is None else (sinks,))]


_RECORDS: Recent[Kind, Record] = Recent(MAX_RECORDS)


def known(kind: Kind | None) -> Record | None:
    """The record of this kind of call, if there is one that can be repeated."""
    return None if kind is None else _RECORDS.get(kind)


def forward(kind: Kind | None, q: Tensor, k: Tensor, v: Tensor, *how: Any) -> tuple[Tensor, Tensor]:
    """What the operator gives for these arguments; remembered as this kind, if it has one."""
    call = operator.call_of(q, *how)
    record = Record(how, call)
    found = run(record, q, k, v, *call.tensors)
    if kind is not None and record.steps is not None:
        _RECORDS.find(kind, lambda: record)
    return found


def run(record: Record, *tensors: Tensor) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp, with a backward if one of the tensors wants a gradient."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return _Attention.apply(record, *tensors)  # pyright: ignore
    return record.forward(*tensors)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, record: Record, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        found = record.forward(*tensors)
        ctx.record = record
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *found)
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        q, k, v, *given, out, lse = ctx.saved_tensors
        grad_out, grad_lse = grads
        inputs = BackwardInputs(
            torch.zeros_like(out) if grad_out is None else grad_out, grad_lse, q, k, v, out, lse
        )
        record: Record = ctx.record
        data, biases = len(record.call.data), len(record.call.bias)
        learned = any(ctx.needs_input_grad[4 + data : 4 + data + biases])
        watched = torch.is_grad_enabled() or not is_plain(inputs.grad_out)
        run = record.by_operator if watched else record.backward
        dq, dk, dv, *others = run(inputs, given, learned)
        left: list[Any] = [*others[:biases]]
        if record.call.sinks is not None:
            left.append(others[-1])
        none = [None] * (len(given) - data - len(left))
        return None, dq, dk, dv, *([None] * data), *left, *none


# Kinds


def is_plain(*tensors: Tensor) -> bool:
    """Whether these tensors hold numbers, and nobody traces or watches what is done to them."""
    return (
        all(type(x) in PLAIN and not x.is_meta for x in tensors)
        and not torch.compiler.is_compiling()
        and not _len_torch_dispatch_stack()
        and not get_interpreter_stack()
        and int(forward_ad._current_level) < 0
        and not torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    )


def kind_of(x: Tensor) -> Kind:
    """All of a tensor but its values."""
    return x.dtype, x.device, x.shape, x.stride(), x.data_ptr() % 16


def kind_of_call(
    qkv: Sequence[Tensor], rule: RuleLike, values: Mapping[str, Any], options: Sequence[Any],
    bias: Bias | Tensor | None, sinks: Tensor | None,
) -> tuple[Kind | None, Sequence[Tensor]]:  # fmt: skip
    """The kind of a plain call, None if it is not remembered, and its tensors besides q, k and v."""
    q, device = qkv[0], qkv[0].device.type
    if device not in ("cpu", "cuda") or any(type(value) is not int for value in values.values()):
        return None, ()
    if torch.is_autocast_enabled(device) and q.dtype != torch.get_autocast_dtype(device):
        return None, ()  # it is cast first
    text, given = (bias.key, tuple(bias.tensors.values())) if isinstance(bias, Bias) else (None, (bias,))
    given = [x for x in (*given, sinks) if x is not None]
    if not all(type(x) in PLAIN and x.device == q.device for x in given):
        return None, ()
    if not all(type(option) in NUMBERS for option in options):
        return None, ()  # it is refused, or read
    written: Kind = rule
    if not isinstance(rule, str):
        found = read_rule(rule)
        written = found.key, tuple(found.values.items())
    whole = (*qkv, *given)
    ids = [id(x) for x in whole]
    return (
        written, tuple(values.items()), text, bias is None, sinks is None,
        tuple(options), tuple(map(type, options)),  # 1 is no True
        tuple(map(kind_of, whole)), tuple(map(ids.index, ids)),  # and which of them are the same tensor
        device == "cuda" and q.dtype == torch.float32 and uses_tf32(),
    ), given  # fmt: skip
