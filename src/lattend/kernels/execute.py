"""Running one call of attention: by the kernel that is asked for, or the best there is."""

from __future__ import annotations

from torch import Tensor

from lattend.kernels.call import Call, Gradients
from lattend.kernels.selection import KERNELS, chosen, chosen_backward


def forward(call: Call, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The output [batch, heads, n, Dv], and each row's log-sum-exp of scores [batch, heads, n]."""
    return KERNELS[chosen(call, q, k, v)].forward(call, q, k, v)


def backward(
    call: Call,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
) -> Gradients:
    """The gradients of q, k and v, and of the tensors of the bias."""
    kernel = KERNELS[chosen_backward(call, q, k, v, grad_lse)]
    return kernel.backward(call, grad_out, grad_lse, q, k, v, out, lse)
