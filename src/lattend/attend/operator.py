"""The torch operators lattend::attention and lattend::attention_backward.

A rule travels as its key, a string, with its numbers beside it: sizes, then parameters. To
torch.compile both operators are opaque, so plans and kernels are chosen when they run, and no number
is written into a compiled program.
"""

# torch.library has no types
# pyright: reportUnknownMemberType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from lattend.attend import dispatch, onnx
from lattend.attend.bias import repeated_along_the_batch
from lattend.attend.call import BackwardInputs
from lattend.attend.kernels import reference_by_torch
from lattend.attend.memory import empty_like
from lattend.attend.record import call_of, exactly, record_of
from lattend.attend.rule_names import axes_looked_up
from lattend.attend.sinks import sink_gradients
from lattend.attend.tape import Tape
from lattend.errors import LattendError

HOW = (  # AOTInductor passes an empty list of tensors as None
    "str rule, SymInt[] numbers, Tensor[]? data, str? term, Tensor[]? bias, Tensor? key_range, "
    "Tensor? key_mask, Tensor? sinks, Tensor? seed, "
    "float dropout, float? softcap, float? scale, str? kernel, bool deterministic"
)
TAGS = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
_LIBRARY = torch.library.Library("lattend", "DEF")
_LIBRARY.define(f"attention(Tensor q, Tensor k, Tensor v, {HOW}) -> (Tensor, Tensor)", tags=TAGS)
_LIBRARY.define(
    "attention_backward(Tensor grad_out, Tensor? grad_lse, Tensor q, Tensor k, Tensor v, Tensor out, "
    f"Tensor lse, bool learned, {HOW}) -> (Tensor, Tensor, Tensor, Tensor[], Tensor)",
    tags=TAGS,
)
DIFFERENTIABLE = ("dense", "reference")  # kernels that are torch operations too, which have all derivatives
ALL_DERIVATIVES = " or ".join(f'kernel="{name}"' for name in DIFFERENTIABLE)
OperatorGradients = tuple[Tensor, Tensor, Tensor, list[Tensor], Tensor]  # those of the sinks come last
forward, backward = torch.ops.lattend.attention.default, torch.ops.lattend.attention_backward.default


# Running


@torch.library.impl(_LIBRARY, "attention", "CompositeExplicitAutograd")
def _forward(q: Tensor, k: Tensor, v: Tensor, *how: Any) -> tuple[Tensor, Tensor]:
    record, given = record_of(q, k, v, *how)
    return record.forward(q, k, v, *given)


@torch.library.impl(_LIBRARY, "attention_backward", "CompositeExplicitAutograd")
def _backward(*given: Any) -> OperatorGradients:
    inputs, learned, how = BackwardInputs(*given[:7]), given[7], given[8:]
    record, others = record_of(inputs.q, inputs.k, inputs.v, *how)
    dq, dk, dv, *rest = record.backward(inputs, others, learned)
    biases, sinks = rest[: len(record.call.bias)], rest[len(record.call.bias) :]
    return dq, dk, dv, biases, sinks[0] if sinks else inputs.q.new_empty(0)


def by_torch(q: Tensor, k: Tensor, v: Tensor, *how: Any) -> Any:
    """The output and the log-sum-exp as torch operations, for forward mode, torch.func and ONNX."""
    call = call_of(q, *how)
    with exactly(q):
        if dispatch.chosen(call, q, k, v) == "reference":
            return reference_by_torch.forward(call, q, k, v)
        return dispatch.forward(Tape(), call, q, k, v)


def _backward_by_torch(inputs: BackwardInputs, learned: bool, *how: Any) -> OperatorGradients:
    """The gradients as torch operations: torch can differentiate them further."""
    q, call = inputs.q, replace(call_of(inputs.q, *how), learned=learned)
    with exactly(q):
        if call.kernel == "reference":
            grads, sinks = reference_by_torch.backward(call, inputs)
        else:
            grads = dispatch.backward(Tape(), call, inputs)
            sinks = None if call.sinks is None else sink_gradients(call.sinks, inputs)
        return *grads, q.new_empty(0) if sinks is None else sinks


def register_flop_formulas() -> None:
    """Registers what attention costs with torch's counter of FLOPs, once that is loaded; it loads Triton."""
    if "torch.utils.flop_counter" in sys.modules:
        import_module("lattend.attend.flop_formulas")


# Shapes alone


@torch.library.register_fake(forward, lib=_LIBRARY)
def _forward_shapes(q: Tensor, k: Tensor, v: Tensor, *how: Any) -> tuple[Tensor, Tensor]:
    onnx.check_not_exported()
    import_module("lattend.attend.flop_formulas")  # a compiled program does not come by attention() again
    kind = torch.promote_types(q.dtype, torch.float32)
    return empty_like(q, v.shape[-1]), q.new_empty(q.shape[:-1], dtype=kind)


@torch.library.register_fake(backward, lib=_LIBRARY)
def _backward_shapes(*given: Any) -> OperatorGradients:
    dq, dk, dv = (empty_like(x, x.shape[-1]) for x in given[2:5])
    bias, _, _, sinks = given[12:16]
    empty = dq.new_empty(0) if sinks is None else sinks.new_empty(sinks.shape)
    return dq, dk, dv, [x.new_empty(x.shape) for x in bias or ()], empty


# Gradients


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, rule, numbers, data, term, bias, *others = inputs
    tensors, ctx.options = others[:4], others[4:]  # padding, sinks, seed
    ctx.set_materialize_grads(False)
    ctx.learned = any(x.requires_grad for x in bias)
    ctx.save_for_backward(q, k, v, *output, *tensors, *data, *bias)
    ctx.rule, ctx.numbers, ctx.term, ctx.arrays = rule, numbers, term, len(data)


def gradients(inputs: BackwardInputs, learned: bool, *how: Any) -> OperatorGradients:
    """The gradients by the operator; for a second derivative by torch, where the kernel has one."""
    if torch.is_grad_enabled() and how[-2] in DIFFERENTIABLE:
        return _backward_by_torch(inputs, learned, *how)
    return backward(*inputs, learned, *how)


def _differentiate(ctx: Any, grad_out: Tensor | None, grad_lse: Tensor | None) -> tuple[Any, ...]:
    q, k, v, out, lse, key_range, key_mask, sinks, seed, *rest = ctx.saved_tensors
    data, bias = rest[: ctx.arrays], rest[ctx.arrays :]
    grad = torch.zeros_like(out) if grad_out is None else grad_out
    how = (ctx.rule, ctx.numbers, data, ctx.term, bias, key_range, key_mask, sinks, seed, *ctx.options)
    inputs = BackwardInputs(grad, grad_lse, q, k, v, out, lse)
    *grads, biases, of_sinks = gradients(inputs, ctx.learned, *how)
    rest = (None, None, None if sinks is None else of_sinks, None, *(None for _ in ctx.options))
    return *grads, None, None, [None] * len(data), None, biases, *rest


def _refuse(ctx: Any, *grads: Tensor) -> None:
    raise LattendError(
        "this kernel of attention has first derivatives only, and a second one was asked for: "
        f"take the first without create_graph=True, or all of them with {ALL_DERIVATIVES}"
    )


torch.library.register_autograd(forward, _differentiate, setup_context=_save, lib=_LIBRARY)
torch.library.register_autograd(backward, _refuse, lib=_LIBRARY)


# vmap: the mapped axis joins the batch


def _mapped(info: Any, in_dims: tuple[Any, ...], *given: Any) -> tuple[Any, Any]:
    folded, how, batch = joined_with_the_batch(info, in_dims, given, tensors=3)
    found = forward(*folded, *how)
    return tuple(x.unflatten(0, (info.batch_size, batch)) for x in found), (0, 0)


def joined_with_the_batch(
    info: Any, in_dims: tuple[Any, ...], given: tuple[Any, ...], *, tensors: int
) -> tuple[list[Tensor], list[Any], int]:
    """The first `tensors` arguments, all others, and the batch, where the mapped axis joins the batch."""
    size, dims = info.batch_size, in_dims[tensors:]
    rule, numbers, data, term, bias, key_range, key_mask, sinks, seed, *others = given[tensors:]
    for name, mapped in (("bias", dims[4] or ()), ("sinks", dims[7:8])):
        if any(dim is not None for dim in mapped):
            raise LattendError(f"{name}: vmap maps the batch of q, k and v, and {name} has none")
    if seed is not None and info.randomness == "same":
        raise LattendError("dropout: vmap with randomness='same' would drop the same pairs; use 'different'")
    whole = [_mapped_first(x, dim, size) for x, dim in zip(given[:tensors], in_dims, strict=False)]
    batch = whole[0].shape[1]
    arrays: list[Tensor] = []
    for array, dim, axes in zip(data, dims[2], axes_looked_up(rule), strict=True):
        batched = array.dim() - (dim is not None) > axes
        if dim is None and not batched:
            arrays.append(array)  # one for all
            continue
        each = _mapped_first(array, dim, size)
        each = each if batched else each[:, None].expand(-1, batch, *each.shape[1:])
        arrays.append(each.flatten(0, 1))
    one = None if seed is None else seed if dims[8] is None else seed.movedim(dims[8], 0)[0]
    padding = [
        None if x is None else _mapped_first(x, dim, size).flatten(0, 1)
        for x, dim in zip((key_range, key_mask), dims[5:7], strict=True)
    ]
    term = None if term is None else repeated_along_the_batch(term, batch)
    how = [rule, numbers, arrays, term, bias, *padding, sinks, one, *others]
    return [x.flatten(0, 1) for x in whole], how, batch


def _mapped_first(x: Tensor, dim: int | None, size: int) -> Tensor:
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


torch.library.register_vmap(forward, _mapped, lib=_LIBRARY)
