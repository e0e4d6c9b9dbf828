"""Plain calls: they run their record at once, without torch's operator in between.

The operator lattend::attention is for whoever traces or watches a call: torch.compile, torch.func, dispatch
modes. Its way through torch's dispatcher takes longer than a small kernel does. Around a plain call there is
torch.autograd and nothing else, and a call of a kind that is known is not checked again.
"""

# torch.autograd.Function has no types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._C._autograd import _top_saved_tensors_default_hooks

from lattend.attend.bias import Bias
from lattend.attend.call.attention_call import BackwardInputs, Kind
from lattend.attend.operators import attention_operator
from lattend.attend.replay.guards import GuardedCall, guarded
from lattend.attend.replay.prepared_call import MAX_RECORDS, CallRecord, record_of, wants_gradient
from lattend.attend.replay.recorder import Steps
from lattend.attend.replay.signature import PLAIN, is_plain, kind_of_plain
from lattend.recent import Recent
from lattend.rules.reader import RuleLike, read_rule

MAX_GUARDED = 8  # calls of one size that are known before their kind is made
MAX_SIZES = 32
GUARDED_AGAIN = 16  # calls by its kind after which one whose guard made room gets another


def forward(
    kind: Kind | None, values: Mapping[str, Any], with_lse: bool,
    q: Tensor, k: Tensor, v: Tensor, *how: Any,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """What the operator gives for these arguments; a call of this kind, if any, is not checked again."""
    record, given = record_of(q, k, v, *how)
    run = way(record, with_lse, q, k, v, *given)
    found = run(q, k, v, *given)
    if kind is not None:
        names = {id(x): name for name, x in values.items()}
        arrays = [names.get(id(x)) for x in given[: len(record.call.data)]]
        if None not in arrays:  # they reach the record as they were given
            run = way(record, with_lse, q, k, v, *given)  # now that its steps are known
            CHECKED.find(kind, lambda: Checked(run, tuple(map(str, arrays))))
    return found if with_lse else (found, None)


def way(record: CallRecord, with_lse: bool, *tensors: Tensor) -> Callable[..., Any]:
    """What gives the output, or a pair with the log-sum-exp, and a backward if a tensor wants a gradient."""
    if wants_gradient(*tensors):
        alone, both = _apply(_Output), _apply(_OutputAndLse)
        how = record, record.way_to_both(tensors[0])
        if with_lse:
            return partial(both, *how)
        if record.call.kernel in attention_operator.DIFFERENTIABLE:  # a second derivative goes through both
            return lambda *tensors: both(*how, *tensors)[0]
        if not record.differentiated_by_torch(*tensors[:3]):
            return partial(alone, *how)
    elif with_lse:
        return record.way_to_both(tensors[0])
    return record.way_to_output(tensors[0])


class _Output(torch.autograd.Function):
    """The output alone, for which autograd has less to keep."""

    @staticmethod
    def forward(ctx: Any, record: CallRecord, run: Steps, *tensors: Tensor) -> Tensor:
        return _noted(ctx, record, run, tensors)[0]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return _gradients(ctx, grads[0], None)


class _OutputAndLse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, record: CallRecord, run: Steps, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        return _noted(ctx, record, run, tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        return _gradients(ctx, *grads)


def _apply(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """Its apply without torch.func, which has no part in plain calls."""
    return super(torch.autograd.Function, function).apply  # pyright: ignore


def _noted(ctx: Any, record: CallRecord, run: Steps, tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp, kept for the backward."""
    found = run(*tensors)
    ctx.record = record
    ctx.save_for_backward(*tensors, *found)
    ctx.as_saved = _top_saved_tensors_default_hooks(True) is None  # pyright: ignore
    return found


def _gradients(ctx: Any, grad_out: Tensor | None, grad_lse: Tensor | None) -> tuple[Any, ...]:
    """The gradients of all that the forward was given, None for those that have none."""
    saved: tuple[Tensor, ...] = ctx.saved_tensors
    q, k, v, *given, out, lse = saved
    if grad_out is None:
        grad_out = torch.zeros_like(out)
    record: CallRecord = ctx.record
    inputs = BackwardInputs(grad_out, grad_lse, q, k, v, out, lse)
    data, biases = len(record.call.data), len(record.call.bias)
    learned = biases > 0 and any(ctx.needs_input_grad[5 + data : 5 + data + biases])
    kind = kind_of_plain((), grad_out)  # sooner than is_plain
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or (kind is None and not is_plain(grad_out)):
        found = _by_operator(record, inputs, given, learned)
    else:
        apart = all([grad_out is not x for x in saved])  # noqa: C419 (a list is faster)
        alone = ctx.as_saved and apart and grad_lse is None
        found = record.backward(inputs, given, learned, kind if alone else None)
    if not given:
        return None, None, *found
    dq, dk, dv, *others = found
    left: list[Any] = [*others[:biases]]
    if record.call.sinks is not None:
        left.append(others[-1])
    none = [None] * (len(given) - data - len(left))
    return None, None, dq, dk, dv, *([None] * data), *left, *none


def _by_operator(
    record: CallRecord, inputs: BackwardInputs, given: Sequence[Tensor], learned: bool
) -> list[Tensor]:
    """The gradients where somebody watches, or wants a second derivative."""
    call, how = record.call.with_tensors(given), record.how
    tensors = ([*call.bias.values()], call.key_range, call.key_mask, call.sinks, call.seed)
    whole = (how.rule, how.numbers, [*call.data.values()], how.term, *tensors, *how.options)
    *grads, others = attention_operator.gradients(inputs, learned, *whole)
    return [*grads, *others]


# Kinds


def kind_of_call(
    qkv: Sequence[Tensor], rule: RuleLike, values: Mapping[str, Any], options: tuple[Any, ...],
    bias: Bias | Tensor | None, sinks: Tensor | None,
) -> Kind | None:  # fmt: skip
    """The kind of a plain call; None of one that is not remembered."""
    written: Kind = rule
    if not isinstance(rule, str):
        found = read_rule(rule)
        written = found.key, tuple(found.values.items())
    if bias is None and sinks is None and all([type(x) is int for x in values.values()]):  # noqa: C419 (faster)
        tensors = kind_of_plain(options, *qkv)
        return None if tensors is None else (written, *values.items(), options, tensors)
    numbers: list[Any] = []
    arrays: list[Tensor] = []
    for name, x in values.items():
        if type(x) is int:
            numbers.append((name, x))
        elif type(x) in PLAIN:
            numbers.append((name, Tensor))
            arrays.append(x)
        else:
            return None
    text, given = (bias.key, bias.tensors.values()) if isinstance(bias, Bias) else (None, (bias,))
    others = [x for x in (*arrays, *given, sinks) if x is not None]
    tensors = kind_of_plain(options, *qkv, *others)
    if tensors is None:
        return None
    return written, tuple(numbers), text, bias is None, sinks is None, options, tensors


@dataclass(slots=True)
class Checked:
    """A kind of call that was checked: what runs it, and which of the rule's arrays that takes, in order."""

    run: Callable[..., Any]
    arrays: tuple[str, ...]
    found: int = 0  # how often, by its kind

    def tensors(
        self, values: Mapping[str, Any], bias: Bias | Tensor | None, sinks: Tensor | None
    ) -> Sequence[Tensor]:
        """What a call of the kind gives besides q, k and v."""
        if not self.arrays and bias is None and sinks is None:
            return ()
        found = [values[name] for name in self.arrays]
        if bias is not None:
            found += bias.tensors.values() if isinstance(bias, Bias) else (bias,)
        return found if sinks is None else [*found, sinks]


class CheckedCalls(Recent[Kind, Checked]):
    """The kinds of calls that were checked, and the guards of those that were found lately."""

    def __init__(self) -> None:
        super().__init__(MAX_RECORDS)
        self.guarded: Recent[int, list[GuardedCall]] = Recent(MAX_SIZES)  # by numbers in q, newest first

    def clear(self) -> None:
        """Forgets all."""
        super().clear()
        self.guarded.clear()

    def guard(self, known: Checked, run: Callable[..., Any], qkv: Sequence[Tensor], *given: Any) -> None:
        """Guards a call that was found by its kind, the first time, and every so often if it still is."""
        known.found += 1
        if known.found % GUARDED_AGAIN == 1 and (call := guarded(run, qkv, *given)) is not None:
            alike = self.guarded.find(qkv[0].numel(), list)
            alike.insert(0, call)
            del alike[MAX_GUARDED:]


CHECKED = CheckedCalls()
