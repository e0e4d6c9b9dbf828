"""max_logits(q, k, rule): the largest score of each query, by a pass of its own over the attended pairs.

Training with QK-clip lowers the weights of a head whose largest score is above a limit. Attention itself does
not keep these scores, so it costs nothing where they are not asked for.
"""

# torch.library has no types
# pyright: reportUnknownMemberType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from lattend.attend import operator
from lattend.attend.attention import rule_given
from lattend.attend.bias import Bias
from lattend.attend.call import AttentionCall
from lattend.attend.inputs import check_scoring, checked_inputs
from lattend.attend.kernels import dense, reference
from lattend.attend.kernels.cpu import kernel as cpu
from lattend.attend.kernels.triton import kernel as triton
from lattend.attend.padding import check_lengths, padding_given
from lattend.attend.varlen import CuSeqlens, packed_inputs, unpacked
from lattend.errors import LattendError, NamingError
from lattend.rules.reader import RuleLike


class Kernel(Protocol):
    """What the modules of kernels/ have that serve this."""

    def why_not(self, call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None: ...

    def largest(self, call: AttentionCall, q: Tensor, k: Tensor) -> Tensor: ...


# In the order they are preferred
KERNELS: dict[str, Kernel] = {"triton": triton, "cpu": cpu, "dense": dense, "reference": reference}
_LIBRARY = torch.library.Library("lattend", "FRAGMENT")
_LIBRARY.define(f"max_logits(Tensor q, Tensor k, {operator.HOW}) -> Tensor", tags=operator.TAGS)
_OPERATOR = torch.ops.lattend.max_logits.default


def max_logits(
    q: Tensor,
    k: Tensor,
    rule: RuleLike,
    *,
    scale: float | None = None,
    bias: Bias | Tensor | None = None,
    padding: Tensor | None = None,
    cu_seqlens: CuSeqlens | None = None,
    softcap: float | None = None,
    kernel: str | None = None,
    **values: Any,
) -> Tensor:
    """The largest score of each query's attended pairs, [batch, heads, n]; -inf where a query has no key.

    With cu_seqlens it is [total, heads].

    The arguments are those of attention. Scores are scaled, bent by the softcap, and with the bias; sinks
    are none of them. It has no gradient. It costs one pass over the attended pairs, q k^T without the values:
    about half of attention's forward.

    >>> import torch
    >>> q = torch.tensor([1.0, -2.0, 3.0]).view(1, 1, 3, 1)
    >>> max_logits(q, q, "k <= q").tolist()
    [[[1.0, 4.0, 9.0]]]
    """
    key, bound = rule_given(rule, values)
    check_scoring(scale, softcap, 0)
    if not torch.compiler.is_compiling():
        operator.register_flop_formulas()
    if kernel is not None and kernel not in KERNELS:
        raise NamingError(f"kernel is one of {', '.join(KERNELS)}, not {kernel!r}; leave it out for the best")
    if cu_seqlens is not None:
        if padding is not None:
            raise NamingError("cu_seqlens are the lengths of sequences without padding; leave padding out")
        key, given, padding = packed_inputs((key, bound), values, (q, k, k), bias, cu_seqlens)
    else:
        given = checked_inputs((key, bound), values, (q, k, k), bias)
    real = padding_given(padding, given.q, given.k)
    shape = given.q.shape[2:-1]
    q, k = (x.detach().flatten(2, -2) for x in (given.q, given.k))
    tensors = [tensor.detach() for tensor in given.tensors]
    how = (*real, None, None, 0.0, softcap, scale, kernel, True)
    found = _OPERATOR(q, k, key, given.numbers, given.arrays, given.term, tensors, *how).unflatten(2, shape)
    return found if cu_seqlens is None else unpacked(found)


@torch.library.impl(_LIBRARY, "max_logits", "CompositeExplicitAutograd")
def _run(q: Tensor, k: Tensor, *how: Any) -> Tensor:
    call = operator.call_of(q, *how)
    if call.key_range is not None:
        check_lengths(call.key_range, k.shape[2])
    reasons = {name: one.why_not(call, q, k, k) for name, one in KERNELS.items()}
    if call.kernel is not None and reasons[call.kernel] is not None:
        raise LattendError(f'kernel="{call.kernel}" cannot run this: {reasons[call.kernel]}')
    names = [name for name, reason in reasons.items() if reason is None]
    if not names:
        why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise LattendError(f"no kernel can run this. {why}")
    with operator.exactly(q):
        return KERNELS[call.kernel or names[0]].largest(call, q, k)


@torch.library.register_fake(_OPERATOR, lib=_LIBRARY)
def _shape(q: Tensor, k: Tensor, *how: Any) -> Tensor:
    return q.new_empty(q.shape[:-1], dtype=torch.promote_types(q.dtype, torch.float32))


def _mapped(info: Any, in_dims: tuple[Any, ...], *given: Any) -> tuple[Tensor, int]:
    folded, how, batch = operator.joined_with_the_batch(info, in_dims, given, tensors=2)
    return _OPERATOR(*folded, *how).unflatten(0, (info.batch_size, batch)), 0


torch.library.register_vmap(_OPERATOR, _mapped, lib=_LIBRARY)
