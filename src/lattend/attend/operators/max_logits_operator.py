"""The torch operator lattend::max_logits: the largest score of each query, and which kernel finds it."""

# torch.library has no types
# pyright: reportUnknownMemberType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.call.padding import check_lengths
from lattend.attend.kernels import dense, reference
from lattend.attend.kernels.cpu import kernel as cpu
from lattend.attend.kernels.triton import kernel as triton
from lattend.attend.operators import attention_operator
from lattend.attend.operators.operator_arguments import GIVEN, OperatorCall, long, short
from lattend.attend.operators.tracing import check_exportable
from lattend.attend.replay.compiled_call import WithoutAutocast
from lattend.errors import LattendError


class LargestKernel(Protocol):
    """What the modules of kernels/ have that serve this."""

    def why_not(self, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None: ...

    def largest(self, call: AttentionCall, q: Tensor, k: Tensor) -> Tensor: ...


# In the order they are preferred
KERNELS: dict[str, LargestKernel] = {"triton": triton, "cpu": cpu, "dense": dense, "reference": reference}
_LIBRARY = torch.library.Library("lattend", "FRAGMENT")
_LIBRARY.define(f"max_logits(Tensor q, Tensor k, {GIVEN}) -> Tensor", tags=attention_operator.TAGS)
_OPERATOR = torch.ops.lattend.max_logits.default


def max_logits_of(q: Tensor, k: Tensor, call: OperatorCall) -> Tensor:
    """Computes the largest score of each query, [batch, heads, n], without a gradient."""
    kernel = call.options.kernel if call.options.kernel in KERNELS else None  # the others have no such pass
    options = call.options._replace(dropout=0.0, kernel=kernel, deterministic=True)
    bias = [x.detach() for x in call.bias]
    call = call._replace(bias=bias, sinks=None, seed=None, options=options)
    return _OPERATOR(q.detach(), k.detach(), *short(call))


@torch.library.impl(_LIBRARY, "max_logits", "CompositeExplicitAutograd")
def _run(q: Tensor, k: Tensor, *given: Any) -> Tensor:
    call = long(*given).attention_call(q)
    if call.key_range is not None:
        check_lengths(call.key_range, k.shape[2])
    reasons = {name: one.why_not(call, q, k, k) for name, one in KERNELS.items()}
    if call.kernel is not None and reasons[call.kernel] is not None:
        raise LattendError(f'kernel="{call.kernel}" cannot run this: {reasons[call.kernel]}')
    names = [name for name, reason in reasons.items() if reason is None]
    if not names:
        why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise LattendError(f"no kernel can run this. {why}")
    with WithoutAutocast(q):
        return KERNELS[call.kernel or names[0]].largest(call, q, k)


@torch.library.register_fake(_OPERATOR, lib=_LIBRARY)
def _shape(q: Tensor, k: Tensor, *how: Any) -> Tensor:
    check_exportable()
    return q.new_empty(q.shape[:-1], dtype=torch.promote_types(q.dtype, torch.float32))


def _mapped(info: Any, in_dims: tuple[Any, ...], *given: Any) -> tuple[Tensor, int]:
    folded, how, batch = attention_operator.joined_with_the_batch(info, in_dims, given, tensors=2)
    return _OPERATOR(*folded, *how).unflatten(0, (info.batch_size, batch)), 0


torch.library.register_vmap(_OPERATOR, _mapped, lib=_LIBRARY)
