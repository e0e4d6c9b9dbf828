"""The largest scores: every kernel against scores written out in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import lattend as lt

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RULES = ("causal", "strided(3)", "k % 3 == 0 or abs(q - k) <= 1", "head == 0 and k < q", "k > n")
N = 13
pytestmark = [  # of Triton's interpreter
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """q, k and a bias."""
    made = torch.Generator().manual_seed(3)
    shapes = ((2, 4, N, 16), (2, 2, N, 16), (2, 4, N, N))
    q, k, bias = (torch.randn(shape, generator=made, dtype=torch.float64) for shape in shapes)
    return q, k, bias


@pytest.mark.parametrize("kernel", ["reference", "dense", "cpu", "triton"])
@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("options", ["", "softcap bias padding"])
def test_kernels_do_what_is_written_out(kernel: str, text: str, options: str) -> None:
    q, k, bias = inputs()
    rule = lt.rule(text)
    mask = torch.as_tensor(rule.mask(n=N, **({"heads": 4} if rule.has_heads else {}))).reshape(-1, N, N)[None]
    scores = -0.7 * q @ k.repeat_interleave(2, 1).mT
    asked: dict[str, Any] = {}
    dtype = torch.float32 if kernel == "triton" else torch.float64
    device = DEVICE if kernel == "triton" else "cpu"
    if options:
        bias[:, :, 3] = -torch.inf  # a query whose pairs are all taken off
        scores = 1.5 * torch.tanh(scores / 1.5) + bias
        mask = mask & (torch.arange(N) < torch.tensor([[N], [4]]))[:, None, None]
        asked = {
            "softcap": 1.5,
            "bias": bias.to(device, dtype),
            "padding": torch.tensor([N, 4], device=device),
        }
    wanted = scores.masked_fill(~mask, -torch.inf).amax(-1)
    found = lt.max_logits(q.to(device, dtype), k.to(device, dtype), text, scale=-0.7, kernel=kernel, **asked)
    assert found.dtype == dtype
    torch.testing.assert_close(found.cpu().double(), wanted, rtol=1e-5, atol=1e-6)


def test_no_gradient_and_compiled() -> None:
    q, k, bias = inputs()
    leaves = [x.requires_grad_() for x in (q, k, bias)]

    def run(q: Tensor, k: Tensor, bias: Tensor) -> Tensor:
        return lt.max_logits(q, k, "strided(3)", bias=bias)

    torch._dynamo.reset()
    found = torch.compile(run, backend="aot_eager", fullgraph=True)(*leaves)
    torch.testing.assert_close(found, run(*leaves))
    assert not found.requires_grad and not run(*leaves).requires_grad


def test_an_image() -> None:
    q, k, _ = inputs()
    q, k = (x[:, :, :12].unflatten(2, (3, 4)) for x in (q, k))
    found = lt.max_logits(q, k, "neighbourhood(1)")
    assert found.shape == (2, 4, 3, 4)
    flat = lt.max_logits(q.flatten(2, 3), k.flatten(2, 3), "neighbourhood(1)", rows=3)
    torch.testing.assert_close(found.flatten(2), flat)


def test_no_positions() -> None:
    q = torch.zeros(1, 2, 0, 4)
    assert lt.max_logits(q, q, "causal").shape == (1, 2, 0)
    keys = torch.zeros(1, 2, 3, 4)
    for kernel in ("cpu", "dense", "reference"):
        assert bool((lt.max_logits(keys, q, "k < m", kernel=kernel) == -torch.inf).all())


def test_mistakes_are_told() -> None:
    q, k, _ = inputs()
    with pytest.raises(
        lt.errors.NamingError, match="kernel is one of triton, cpu, dense, reference, not 'sdpa'"
    ):
        lt.max_logits(q, k, "causal", kernel="sdpa")
    with pytest.raises(lt.errors.LattendError, match='kernel="triton" cannot run this: it'):
        lt.max_logits(q, k, "causal", kernel="triton")
