"""Running one call of attention: by the kernel that is asked for, or the best there is."""

from __future__ import annotations

from torch import Tensor

from lattend import amx
from lattend.attend.call import Call, Gradients, Passed
from lattend.attend.dispatch import KERNELS, chosen, chosen_backward


def forward(call: Call, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output [batch, heads, n, Dv], and each row's log-sum-exp of scores [batch, heads, n]."""
    amx.check(q)
    return KERNELS[chosen(call, q, k, v)].forward(call, q, k, v)


def backward(call: Call, given: Passed) -> Gradients:
    """The gradients of q, k and v, and of the tensors of the bias."""
    kernel = chosen_backward(call, given.q, given.k, given.v, given.grad_lse)
    return KERNELS[kernel].backward(call, given)
