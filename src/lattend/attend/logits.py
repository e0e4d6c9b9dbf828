"""max_logits(q, k, rule): the largest score of each query, by a pass of its own over the attended pairs.

Training with QK-clip lowers the weights of a head whose largest score is above a limit. Attention itself does
not keep these scores, so it costs nothing where they are not asked for.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lattend.attend.bias import Bias
from lattend.attend.call.checked_call import rule_given
from lattend.attend.call.inputs import checked_inputs
from lattend.attend.call.options import KernelOptions, check_scoring
from lattend.attend.call.padding import padding_given
from lattend.attend.call.varlen import CuSeqlens, packed_inputs, unpacked
from lattend.attend.operators import attention_operator
from lattend.attend.operators.max_logits_operator import KERNELS, max_logits_of
from lattend.attend.operators.operator_arguments import OperatorCall
from lattend.errors import NamingError
from lattend.rules.reader import RuleLike


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
    options = KernelOptions(scale, softcap, kernel=kernel)
    check_scoring(options)
    if not torch.compiler.is_compiling():
        attention_operator.register_flop_formulas()
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
    q, k = given.q.flatten(2, -2), given.k.flatten(2, -2)
    scores = max_logits_of(q, k, OperatorCall(key, *given[3:], *real, options=options))
    scores = scores.reshape(scores.shape[:2] + shape)
    return scores if cu_seqlens is None else unpacked(scores)
