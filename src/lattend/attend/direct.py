"""Plain calls: they run their record at once, without torch's operator in between.

The operator lattend::attention is for whoever traces or watches a call: torch.compile, torch.func, dispatch
modes. Its way through torch's dispatcher takes longer than a small kernel does. Around a plain call there is
torch.autograd and nothing else, and a call of a kind that is known is not checked again.
"""

# torch.autograd.Function and forward_ad have no types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack
from torch._C._autograd import _top_saved_tensors_default_hooks
from torch._C._functorch import get_interpreter_stack
from torch.autograd import forward_ad

from lattend.attend import operator
from lattend.attend.bias import Bias
from lattend.attend.call import OPTIONS, BackwardInputs, Kind
from lattend.attend.record import MAX_RECORDS, Record, kind_of_tensors, record_of
from lattend.recent import Recent
from lattend.rules.reader import RuleLike, read_rule

PLAIN = (Tensor, torch.nn.Parameter)
CHECKED: Recent[Kind, Checked] = Recent(MAX_RECORDS)


def forward(
    kind: Kind | None, values: Mapping[str, Any], with_lse: bool,
    q: Tensor, k: Tensor, v: Tensor, *how: Any,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """What the operator gives for these arguments; a call of this kind, if any, is not checked again."""
    record, given = record_of(q, k, v, *how)
    found = run(record, with_lse, q, k, v, *given)
    if kind is not None:
        names = {id(x): name for name, x in values.items()}
        arrays = [names.get(id(x)) for x in given[: len(record.call.data)]]
        if None not in arrays:  # they reach the record as they were given
            CHECKED.find(kind, lambda: Checked(record, tuple(map(str, arrays))))
    return found


def run(record: Record, with_lse: bool, *tensors: Tensor) -> tuple[Tensor, Tensor | None]:
    """The output, and the log-sum-exp if it is wanted, with a backward if a tensor wants a gradient."""
    if torch.is_grad_enabled() and any([x.requires_grad for x in tensors]):  # noqa: C419 (a list is faster)
        if not with_lse and record.differentiated_by_torch(*tensors[:3]):
            return record.output(*tensors), None
        apply: Callable[..., tuple[Tensor, Tensor]] = _Attention.apply  # pyright: ignore
        out, lse = apply(record, *tensors)
        return out, lse if with_lse else None
    return record.forward(*tensors) if with_lse else (record.output(*tensors), None)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, record: Record, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        found = record.forward(*tensors)
        ctx.record = record
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *found)
        ctx.as_saved = _top_saved_tensors_default_hooks(True) is None  # pyright: ignore
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        saved: tuple[Tensor, ...] = ctx.saved_tensors
        q, k, v, *given, out, lse = saved
        grad_out, grad_lse = grads
        if grad_out is None:
            grad_out = torch.zeros_like(out)
        record: Record = ctx.record
        inputs = BackwardInputs(grad_out, grad_lse, q, k, v, out, lse)
        data, biases = len(record.call.data), len(record.call.bias)
        learned = biases > 0 and any(ctx.needs_input_grad[4 + data : 4 + data + biases])
        if torch.is_grad_enabled() or not is_plain(grad_out):
            found = _by_operator(record, inputs, given, learned)
        else:
            apart = all([grad_out is not x for x in saved])  # noqa: C419 (a list is faster)
            found = record.backward(inputs, given, learned, as_saved=ctx.as_saved and apart)
        if not given:
            return None, *found
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
    if torch.compiler.is_compiling():  # first: Dynamo guards what it traces
        return False
    for x in tensors:
        if type(x) not in PLAIN or x.is_meta:
            return False
    return (
        not _len_torch_dispatch_stack()
        and not get_interpreter_stack()
        and int(forward_ad._current_level) < 0
        and not torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    )


def kind_of_call(
    qkv: Sequence[Tensor], rule: RuleLike, values: Mapping[str, Any], options: tuple[Any, ...],
    bias: Bias | Tensor | None, sinks: Tensor | None,
) -> Kind | None:  # fmt: skip
    """The kind of a plain call; None of one that is not remembered."""
    q, device = qkv[0], qkv[0].device.type
    if device not in ("cpu", "cuda"):
        return None
    if torch.is_autocast_enabled(device) and q.dtype != torch.get_autocast_dtype(device):
        return None  # it is cast first
    types = tuple(map(type, options))
    if not OPTIONS.issuperset(types):
        return None  # it is refused
    written: Kind = rule
    if not isinstance(rule, str):
        found = read_rule(rule)
        written = found.key, tuple(found.values.items())
    numbers, arrays = tuple(values.items()), ()
    if values:
        for value in values.values():
            if type(value) is not int and type(value) not in PLAIN:
                return None
        numbers = tuple((name, x if type(x) is int else Tensor) for name, x in values.items())
        arrays = [x for x in values.values() if isinstance(x, Tensor)]
    text, tensors = None, qkv
    if bias is not None or sinks is not None or arrays:
        text, given = (bias.key, bias.tensors.values()) if isinstance(bias, Bias) else (None, (bias,))
        others = [x for x in (*arrays, *given, sinks) if x is not None]
        for x in others:
            if type(x) not in PLAIN or x.device != q.device:
                return None
        tensors = (*qkv, *others)
    # 1 is no True: options count with their types
    return written, numbers, text, bias is None, sinks is None, options, types, kind_of_tensors(*tensors)


class Checked(NamedTuple):
    """A kind of call that was checked: its record, and which of the rule's arrays that takes, in order."""

    record: Record
    arrays: tuple[str, ...]

    def tensors(
        self, values: Mapping[str, Any], bias: Bias | Tensor | None, sinks: Tensor | None
    ) -> list[Tensor]:
        """What a call of the kind gives its record besides q, k and v."""
        found = [values[name] for name in self.arrays] if self.arrays else []
        if bias is not None:
            found += bias.tensors.values() if isinstance(bias, Bias) else (bias,)
        return found if sinks is None else [*found, sinks]
