"""Signatures of tensors: everything about them but their numbers. Tensors that somebody watches have none.

Whatever may decide how a call runs is part of its signature. Both functions that make signatures also exist
in C++; see replay/host.
"""

# forward_ad has no types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import (  # pyright: ignore
    _get_cudnn_sdp_enabled,  # pyright: ignore
    _get_flash_sdp_enabled,  # pyright: ignore
    _get_mem_efficient_sdp_enabled,  # pyright: ignore
    _is_tracing,  # pyright: ignore
    _len_torch_dispatch_stack,
)
from torch._C._functorch import get_interpreter_stack
from torch.autograd import forward_ad

from lattend.attend.call.attention_call import OPTIONS, CallSignature
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.attend.replay import host

PLAIN = (Tensor, torch.nn.Parameter)
CAST = 3  # q, k and v, which autocast casts
# What torch is told of a GPU: what its own attention may take
TOLD = (_get_flash_sdp_enabled, _get_mem_efficient_sdp_enabled, _get_cudnn_sdp_enabled)


def is_plain(*tensors: Tensor) -> bool:
    """Whether these tensors hold numbers, and nobody traces or watches what is done to them."""
    if torch.compiler.is_compiling():  # first: Dynamo guards what it traces
        return False
    for x in tensors:
        if type(x) not in PLAIN or x.is_meta or x.layout != torch.strided:
            return False
        if x.is_neg():  # its memory holds -x
            return False
    return not is_watched()


def is_watched() -> bool:
    """Whether anybody traces or watches what is done to tensors."""
    return (
        bool(_len_torch_dispatch_stack() or get_interpreter_stack())
        or int(forward_ad._current_level) >= 0
        or _is_tracing()
    )


def tensor_signature_by_python(*tensors: Tensor) -> CallSignature:
    """Returns all of the tensors but their numbers, and which of them are the same one.

    On a GPU it holds torch's settings too: which attention it may run, and TF32 for float32.
    """
    first, ids = tensors[0], [*map(id, tensors)]
    told = [bool(said()) for said in TOLD] if first.is_cuda else []
    if first.is_cuda and any(x.dtype == torch.float32 for x in tensors):
        told.append(uses_tf32())
    same = None if len(set(ids)) == len(ids) else tuple(map(ids.index, ids))
    return same, *told, *[(x.dtype, x.device, x.shape, x.stride(), x.data_ptr() % 16) for x in tensors]


def plain_signature_by_python(options: tuple[Any, ...], *tensors: Tensor) -> CallSignature | None:
    """The same of a plain call, with the types of its options (1 is no True), and what torch is told to do.

    That is, whether a gradient is wanted and autocast on. None of a call that is not remembered: somebody
    watches, the options are refused, or the tensors are cast first or are no numbers in memory.
    """
    types = tuple(map(type, options))
    if not OPTIONS.issuperset(types) or not is_plain(*tensors):
        return None
    device = tensors[0].device.type
    if device not in ("cpu", "cuda") or any(x.device != tensors[0].device for x in tensors):
        return None
    autocast = torch.is_autocast_enabled(device)
    if autocast and any(x.dtype != torch.get_autocast_dtype(device) for x in tensors[:CAST]):
        return None
    gradient = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
    return types, autocast, gradient, tensor_signature_by_python(*tensors)


tensor_signature: Callable[..., CallSignature] = tensor_signature_by_python
plain_signature: Callable[..., CallSignature | None] = plain_signature_by_python
if (_host := host.module()) is not None:
    _host.know(
        *PLAIN, _len_torch_dispatch_stack, get_interpreter_stack, forward_ad, _is_tracing,
        torch.is_grad_enabled, torch.is_autocast_enabled, torch.get_autocast_dtype, TOLD, torch.float32,
        uses_tf32, OPTIONS, tensor_signature_by_python,
    )  # fmt: skip
    tensor_signature, plain_signature = _host.tensor_signature, _host.plain_signature
