"""Which operator runs a call that torch.func or forward-mode differentiation watches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack, is_batchedtensor
from torch.autograd import forward_ad

from lattend.attend.bias import Bias
from lattend.attend.call.checked_call import CheckedCall
from lattend.attend.call.options import AttentionOptions
from lattend.attend.operators import attention_operator
from lattend.errors import LattendError

Run = Callable[..., Any]  # of q, k, v and an OperatorCall


def operator_for(call: CheckedCall, options: AttentionOptions, values: Mapping[str, Any]) -> Run:
    """Returns the operator, or torch operations in forward mode and under torch.func.grad.

    Raises where forward-mode differentiation would find no tangent and take it for zero, and where torch.func
    would differentiate an operator that only torch.autograd can.
    """
    forward = int(forward_ad._current_level) >= 0  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportUnknownArgumentType]
    layers: list[Any] = get_interpreter_stack() or []
    qkv = call.q, call.k, call.v
    if layers and all(layer.key() == TransformType.Vmap for layer in layers):
        _check_mapped(options.bias, (options.cu_seqlens, *values.values()), qkv)
    reverse = any(layer.key() == TransformType.Grad for layer in layers)
    if not forward and not reverse:
        return attention_operator.forward
    if options.kernel == attention_operator.DIFFERENTIABLE:
        return attention_operator.by_torch
    unpack = forward_ad.unpack_dual  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    tensors = _tensors((options.bias, options.sinks, *qkv))
    if reverse and any(x.requires_grad for x in tensors):
        raise LattendError(
            "torch.func.grad, vjp and jacrev cannot differentiate this kernel of attention: use backward or "
            'torch.autograd.grad, or kernel="dense", which has all derivatives'
        )
    if forward and any(unpack(x).tangent is not None for x in tensors):
        raise LattendError(
            "this kernel of attention has no forward-mode derivative: use backward or torch.autograd.grad, "
            'or kernel="dense", which has all derivatives'
        )
    return attention_operator.forward


def _check_mapped(bias: object, arrays: Iterable[object], qkv: Iterable[object]) -> None:
    """Raises where vmap maps a bias or an array of the rule, but none of q, k and v."""
    if any(is_batchedtensor(x) for x in _tensors(qkv)):
        return
    if any(is_batchedtensor(x) for x in _tensors([bias])):
        raise LattendError("bias: vmap maps the batch of q, k and v, and bias has none")
    if any(is_batchedtensor(x) for x in _tensors(arrays)):
        raise LattendError(
            "vmap maps an array of the rule, or cu_seqlens, and none of q, k and v: map one of these too"
        )


def _tensors(arguments: Iterable[object]) -> list[Tensor]:
    """The tensors among these, and those of a bias and of pairs."""
    flat: list[object] = []
    for argument in arguments:
        if isinstance(argument, Bias):
            flat.extend(argument.tensors.values())
        elif isinstance(argument, tuple):
            flat.extend(cast(tuple[object, ...], argument))
        else:
            flat.append(argument)
    return [x for x in flat if isinstance(x, Tensor)]
