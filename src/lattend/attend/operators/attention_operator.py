"""The torch operators lattend::attention, lattend::attention_forward and lattend::attention_backward.

The first is what torch.compile and torch.export find in a program. It has gradients, and calls the other two,
which have none: they are what a compiled program runs. A rule travels as its key, within a text, with its
numbers beside it: sizes, then parameters. To torch.compile all are opaque, so plans and kernels are chosen
when they run, and no number is written into a compiled program.
"""

# torch.library and torch.autograd.Function have no types
# pyright: reportUnknownMemberType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from lattend.attend.bias import repeated_along_the_batch
from lattend.attend.call.attention_call import BackwardInputs, CallSignature, Gradients
from lattend.attend.call.rule_names import axes_looked_up
from lattend.attend.call.sinks import sink_gradients, with_sinks
from lattend.attend.call.tensors import empty_like
from lattend.attend.kernels import dense, dispatch
from lattend.attend.operators.operator_arguments import GIVEN, OperatorCall, long, short
from lattend.attend.operators.tracing import check_exportable
from lattend.attend.replay.compiled_call import MAX_CALLS, CompiledCall, WithoutAutocast, compiled_call_of
from lattend.attend.replay.signature import tensor_signature
from lattend.errors import LattendError
from lattend.recent import Recent

TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
_LIBRARY = torch.library.Library("lattend", "DEF")
for _name in ("attention", "attention_forward"):
    _LIBRARY.define(f"{_name}(Tensor q, Tensor k, Tensor v, {GIVEN}) -> (Tensor, Tensor)", tags=TAGS)
_LIBRARY.define(
    "attention_backward(Tensor grad_out, Tensor? grad_lse, Tensor q, Tensor k, Tensor v, Tensor out, "
    f"Tensor lse, bool learned, {GIVEN}) -> (Tensor, Tensor, Tensor, Tensor[])",
    tags=TAGS,
)
ATTENTION = torch.ops.lattend.attention.default
FORWARD, BACKWARD = torch.ops.lattend.attention_forward.default, torch.ops.lattend.attention_backward.default
DIFFERENTIABLE = (
    "dense"  # the kernel that is torch operations, which torch differentiates any number of times
)
_COMPILED_CALLS: Recent[CallSignature, CompiledCall] = Recent(MAX_CALLS)  # by the operators' arguments


# Running


def forward(q: Tensor, k: Tensor, v: Tensor, call: OperatorCall) -> tuple[Tensor, Tensor]:
    """Runs the operator: the output and the log-sum-exp."""
    return ATTENTION(q, k, v, *short(call))


@torch.library.impl(_LIBRARY, "attention", "CompositeExplicitAutograd")
@torch.library.impl(_LIBRARY, "attention_forward", "CompositeExplicitAutograd")
def _forward(
    q: Tensor, k: Tensor, v: Tensor, given: Sequence[Tensor] | None, call: str, numbers: Sequence[int]
) -> tuple[Tensor, Tensor]:
    tensors = (q, k, v, *given) if given else (q, k, v)
    return _record(tensors, call, numbers).forward(*tensors)


@torch.library.impl(_LIBRARY, "attention_backward", "CompositeExplicitAutograd")
def _backward(*args: Any) -> Gradients:
    inputs, learned, given, call, numbers = BackwardInputs(*args[:7]), args[7], args[8] or (), *args[9:]
    record = _record((inputs.q, inputs.k, inputs.v, *given), call, numbers)
    dq, dk, dv, *others = record.backward(inputs, given, learned)
    return dq, dk, dv, others


def _record(tensors: Sequence[Tensor], call: str, numbers: Sequence[int]) -> CompiledCall:
    """Finds the compiled call by its text, its numbers and the signature of its tensors."""
    signature = call, tuple(numbers), tensor_signature(*tensors)
    known = _COMPILED_CALLS.get(signature)
    if known is not None:
        return known
    q, k, v, *others = tensors
    record, _ = compiled_call_of(q, k, v, long(others, call, numbers), trains=True)  # autograd is above
    return _COMPILED_CALLS.find(signature, lambda: record)


def by_torch(q: Tensor, k: Tensor, v: Tensor, operator_call: OperatorCall) -> Any:
    """Computes both with torch operations, for forward mode and torch.func."""
    call = operator_call.attention_call(q)
    dispatch.chosen(call, q, k, v)  # raises where dense cannot take the call
    with WithoutAutocast(q):
        output, lse = dense.forward(call, q, k, v)
        return (output, lse) if call.sinks is None else with_sinks(output, lse, call.sinks)


def _backward_by_torch(inputs: BackwardInputs, learned: bool, operator_call: OperatorCall) -> Gradients:
    """The gradients as torch operations: torch can differentiate them further."""
    q, call = inputs.q, replace(operator_call.attention_call(inputs.q), learned=learned)
    with WithoutAutocast(q):
        dq, dk, dv, biases = dense.backward(call, inputs)
        sinks = None if call.sinks is None else sink_gradients(call.sinks, inputs)
        return dq, dk, dv, [*biases, *(() if sinks is None else (sinks,))]


def register_flop_formulas() -> None:
    """Registers what attention costs with torch's counter of FLOPs, once that is loaded; it loads Triton."""
    if "torch.utils.flop_counter" in sys.modules:
        import_module("lattend.attend.operators.flop_formulas")


# Shapes alone


@torch.library.register_fake(ATTENTION, lib=_LIBRARY)
@torch.library.register_fake(FORWARD, lib=_LIBRARY)
def _forward_shapes(q: Tensor, k: Tensor, v: Tensor, *how: Any) -> tuple[Tensor, Tensor]:
    check_exportable()
    import_module(
        "lattend.attend.operators.flop_formulas"
    )  # a compiled program does not come by attention() again
    kind = torch.promote_types(q.dtype, torch.float32)
    return empty_like(q, v.shape[-1]), q.new_empty(q.shape[:-1], dtype=kind)


@torch.library.register_fake(BACKWARD, lib=_LIBRARY)
def _backward_shapes(*args: Any) -> Gradients:
    dq, dk, dv = (empty_like(x, x.shape[-1]) for x in args[2:5])
    call = long(*args[8:])
    others = (*call.bias, *(() if call.sinks is None else (call.sinks,)))
    return dq, dk, dv, [x.new_empty(x.shape) for x in others]


# Gradients


@torch.library.impl(_LIBRARY, "attention", "Autograd")
def _differentiable(
    q: Tensor, k: Tensor, v: Tensor, given: Sequence[Tensor] | None, call: str, numbers: Sequence[int]
) -> tuple[Tensor, Tensor]:
    tensors = (q, k, v, *(given or ()))
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return _Attention.apply(call, numbers, *tensors)  # pyright: ignore
    return FORWARD(q, k, v, given, call, numbers)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, call: str, numbers: Sequence[int], q: Tensor, k: Tensor, v: Tensor, *given: Tensor
    ) -> tuple[Tensor, Tensor]:
        out, lse = FORWARD(q, k, v, given, call, numbers)
        ctx.call, ctx.numbers = call, numbers
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(q, k, v, *given, out, lse)
        return out, lse

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        q, k, v, *given, out, lse = ctx.saved_tensors
        call, (grad_out, grad_lse) = long(given, ctx.call, ctx.numbers), grads
        arrays, biases = len(call.data), len(call.bias)
        learned = any(ctx.needs_input_grad[5 + arrays : 5 + arrays + biases])
        grad = torch.zeros_like(out) if grad_out is None else grad_out
        inputs = BackwardInputs(grad, grad_lse, q, k, v, out, lse)
        dq, dk, dv, others = gradients(inputs, learned, call)
        none = [None] * (len(given) - arrays - len(others))
        return None, None, dq, dk, dv, *([None] * arrays), *others, *none


def gradients(inputs: BackwardInputs, learned: bool, call: OperatorCall) -> Gradients:
    """The gradients of q, k and v, and of a bias and sinks in a list; for a second derivative by torch.

    Where the kernel has no second derivative, whoever asks for one is told.
    """
    if torch.is_grad_enabled() and call.options.kernel == DIFFERENTIABLE:
        return _backward_by_torch(inputs, learned, call)
    given, text, numbers = short(call)
    with torch.no_grad():
        dq, dk, dv, others = BACKWARD(*inputs, learned, given, text, numbers)
    if not torch.is_grad_enabled():
        return dq, dk, dv, others
    behind = [x for x in (*inputs, *given) if x is not None]
    found: list[Tensor] = [*_FirstOnly.apply(3 + len(others), dq, dk, dv, *others, *behind)]  # pyright: ignore
    return found[0], found[1], found[2], found[3:]


class _FirstOnly(torch.autograd.Function):
    """Gradients as they are, with no derivative by the tensors behind them."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tensors[:count]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> None:
        raise LattendError(
            "this kernel of attention has first derivatives only, and a second one was asked for: "
            f'take the first without create_graph=True, or all of them with kernel="{DIFFERENTIABLE}"'
        )


# vmap: the mapped axis joins the batch


def _mapped(info: Any, in_dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
    folded, given, batch = joined_with_the_batch(info, in_dims, args, tensors=3)
    found = ATTENTION(*folded, *given)
    return tuple(x.unflatten(0, (info.batch_size, batch)) for x in found), (0, 0)


def joined_with_the_batch(
    info: Any, in_dims: tuple[Any, ...], args: tuple[Any, ...], *, tensors: int
) -> tuple[list[Tensor], Any, int]:
    """The first `tensors` arguments, all others, and the batch, where the mapped axis joins the batch."""
    size, (given, text, numbers) = info.batch_size, args[tensors:]
    call = long(given, text, numbers)
    mapped: Any = in_dims[tensors] or [None] * len(given or ())
    dims: Any = long(mapped, text, numbers)  # the mapped axis in place of each tensor
    for name, axes in (("bias", dims.bias), ("sinks", (dims.sinks,))):
        if any(dim is not None for dim in axes):
            raise LattendError(f"{name}: vmap maps the batch of q, k and v, and {name} has none")
    if call.seed is not None and info.randomness == "same":
        raise LattendError("dropout: vmap with randomness='same' would drop the same pairs; use 'different'")
    whole = [_mapped_first(x, dim, size) for x, dim in zip(args[:tensors], in_dims, strict=False)]
    batch = whole[0].shape[1]
    arrays: list[Tensor] = []
    for array, dim, axes in zip(call.data, dims.data, axes_looked_up(call.rule), strict=True):
        batched = array.dim() - (dim is not None) > axes
        if dim is None and not batched:
            arrays.append(array)  # one for all
            continue
        each = _mapped_first(array, dim, size)
        each = each if batched else each[:, None].expand(-1, batch, *each.shape[1:])
        arrays.append(each.flatten(0, 1))
    key_range, key_mask = (
        None if x is None else _mapped_first(x, dim, size).flatten(0, 1)
        for x, dim in ((call.key_range, dims.key_range), (call.key_mask, dims.key_mask))
    )
    seed = call.seed if call.seed is None or dims.seed is None else call.seed.movedim(dims.seed, 0)[0]
    term = None if call.term is None else repeated_along_the_batch(call.term, batch)
    joined = call._replace(data=arrays, term=term, key_range=key_range, key_mask=key_mask, seed=seed)
    return [x.flatten(0, 1) for x in whole], short(joined), batch


def _mapped_first(x: Tensor, dim: int | None, size: int) -> Tensor:
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


torch.library.register_vmap(ATTENTION, _mapped, lib=_LIBRARY)
