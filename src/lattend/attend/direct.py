"""Plain calls: they run their record at once, without torch's operator in between.

The operator lattend::attention is for whoever traces or watches a call: torch.compile, torch.func, dispatch
modes. Its way through torch's dispatcher takes longer than a small kernel does. Around a plain call there is
torch.autograd and nothing else, and a call of a kind that is known is not checked again.
"""

# torch.autograd.Function and forward_ad have no types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack
from torch._C._functorch import get_interpreter_stack
from torch.autograd import forward_ad

from lattend.attend import operator
from lattend.attend.bias import Bias
from lattend.attend.call import OPTIONS, BackwardInputs, Kind
from lattend.attend.record import MAX_RECORDS, Record, kind_of_tensors, record_of
from lattend.recent import Recent
from lattend.rules.reader import RuleLike, read_rule

PLAIN = (Tensor, torch.nn.Parameter)
CHECKED: Recent[Kind, Record] = Recent(MAX_RECORDS)  # by kinds of calls that were checked


def forward(kind: Kind | None, q: Tensor, k: Tensor, v: Tensor, *how: Any) -> tuple[Tensor, Tensor]:
    """What the operator gives for these arguments; a call of this kind, if any, is not checked again."""
    record, given = record_of(q, k, v, *how)
    found = run(record, q, k, v, *given)
    if kind is not None:
        CHECKED.find(kind, lambda: record)
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
        found = (
            _by_operator(record, inputs, given, learned)
            if watched
            else record.backward(inputs, given, learned)
        )
        dq, dk, dv, *others = found
        left: list[Any] = [*others[:biases]]
        if record.call.sinks is not None:
            left.append(others[-1])
        none = [None] * (len(given) - data - len(left))
        return None, dq, dk, dv, *([None] * data), *left, *none


def _by_operator(
    record: Record, inputs: BackwardInputs, given: Sequence[Tensor], learned: bool
) -> list[Tensor]:
    """The gradients where somebody watches, or wants a second derivative."""
    call, how = record.call.with_tensors(given), record.how
    tensors = ([*call.bias.values()], call.key_range, call.key_mask, call.sinks, call.seed)
    whole = (how.rule, how.numbers, [*call.data.values()], how.term, *tensors, *how.options)
    *grads, others = operator.gradients(inputs, learned, *whole)
    return [*grads, *others]


# Kinds


def is_plain(*tensors: Tensor) -> bool:
    """Whether these tensors hold numbers, and nobody traces or watches what is done to them."""
    return (
        not torch.compiler.is_compiling()  # first: Dynamo guards what it traces
        and all(type(x) in PLAIN and not x.is_meta for x in tensors)
        and not _len_torch_dispatch_stack()
        and not get_interpreter_stack()
        and int(forward_ad._current_level) < 0
        and not torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    )


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
    if not OPTIONS.issuperset(map(type, options)):
        return None, ()  # it is refused
    written: Kind = rule
    if not isinstance(rule, str):
        found = read_rule(rule)
        written = found.key, tuple(found.values.items())
    return (
        written, tuple(values.items()), text, bias is None, sinks is None,
        tuple(options), tuple(map(type, options)),  # 1 is no True
        kind_of_tensors(*qkv, *given),
    ), given  # fmt: skip
