"""Head dimensions up to 512 on the Triton kernel, against the reference in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import lattend as lt
from lattend.attend.attention import attention
from lattend.attend.kernels.triton.shapes import candidates

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHARED = 227 * 1024  # bytes that one program may hold on an H200
pytestmark = [  # of Triton's interpreter
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.mark.parametrize("text", ["causal", "(q - k) % 3 == 0 and k <= q", "neighbourhood(1)"])
@pytest.mark.parametrize(("head_dim", "value_dim"), [(512, 512), (320, 64), (64, 288)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_results_and_gradients(text: str, head_dim: int, value_dim: int, dtype: torch.dtype) -> None:
    made = torch.Generator().manual_seed(1)
    shapes = ((1, 2, 36, head_dim), (1, 1, 36, head_dim), (1, 1, 36, value_dim), (1, 2, 36, value_dim))
    q, k, v, grad = (torch.randn(shape, generator=made).to(DEVICE, dtype) for shape in shapes)
    sizes: dict[str, Any] = {"rows": 6} if text.startswith("neighbourhood") else {}
    found: list[list[Tensor]] = []
    for kernel, wide in (("triton", dtype), ("dense", torch.float64)):
        leaves = [x.detach().to(wide).requires_grad_() for x in (q, k, v)]
        a, b, c = leaves
        out, lse = attention(a, b, c, text, kernel=kernel, return_lse=True, **sizes)
        grads = torch.autograd.grad((out * grad.to(wide)).sum() + lse.sum(), leaves)
        found.append([x.detach().double() for x in (out, lse, *grads)])
    limit = 2e-2 if dtype == torch.bfloat16 else 1e-5
    for mine, right in zip(*found, strict=True):
        assert (mine - right).norm() < limit * right.norm()


@pytest.mark.parametrize("kernel", ["forward", "backward_dq", "backward_dkdv"])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_tiles_fit_the_shared_memory(kernel: str, axes: int, dtype: torch.dtype) -> None:
    """The rows of q and of dO, or of k and v, and the same two of a step."""
    size = 4 if dtype == torch.float32 else 2
    for cost in candidates(kernel, 512, axes, dtype, apart=False):
        rows, step = cost.shape.rows, cost.shape.step
        held = (1 if kernel == "forward" else 2) * rows + 2 * step * cost.shape.stages
        assert held * 512 * size + rows * step * size <= SHARED
        assert not cost.shape.tma and not cost.measured


def test_larger_ones_are_refused() -> None:
    x = torch.zeros(1, 1, 4, 513, device=DEVICE)
    with pytest.raises(lt.errors.LattendError, match="a head dimension of 512 at most, and this is 513"):
        attention(x, x, x, "causal", kernel="triton")
