"""What does not fit into 32 bits: rows far apart, large tables, numbers of a bias, entries of arrays."""

from __future__ import annotations

from typing import Any

import emulated_gpu
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import lattend as lt
from lattend.attend.kernels.tolerance import TOLERANCE

pytestmark = [  # of the interpreter: its NumPy warns of log 0, and of scalars in arrays
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BEYOND = (1 << 31) - 1  # the greatest number of 32 bits
SENTINELS = {
    "k <= q and q - begin[k] >= 5": "begin",
    "k >= begin[q] - 1 and k <= q": "begin",
    "abs(begin[q]) >= k and k <= q": "begin",
    "2*end[q] >= k and k <= q": "end",
    "k <= q and min(end[q], end[k]) + q >= 40": "end",
}


def drawn(n: int, seed: int = 0, heads: int = 2, head_dim: int = 16) -> list[Tensor]:
    """q, k, v and a gradient of the output."""
    source = torch.Generator().manual_seed(seed)
    return [torch.randn(1, heads, n, head_dim, generator=source).to(DEVICE) for _ in range(4)]


def off(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted).norm() / wanted.norm().clamp(min=1e-9))


def gradients(tensors: list[Tensor], grad: Tensor, rule: str, kernel: str, **how: Any) -> list[Tensor]:
    """The output and the gradients of q, k and v."""
    learned = [x.detach().requires_grad_() for x in tensors]
    attend: Any = lt.attention
    out = attend(*learned, rule, kernel=kernel, **how)
    return [out.detach(), *torch.autograd.grad(out, learned, grad)]


@pytest.mark.parametrize("how", [{}, {"softcap": 20.0}], ids=["plain", "softcap"])
def test_rows_of_a_gradient_that_lie_far_apart(how: dict[str, Any]) -> None:
    """As behind out.transpose(1, 2) on long texts of many heads: 2**31 numbers from the first to the last."""
    n, stride = 70, -(-(1 << 31) // 69) + 16
    *qkv, grad = (x[:, :1].bfloat16() for x in drawn(n, head_dim=64))
    far = torch.empty((n - 1) * stride + 64, dtype=grad.dtype, device=DEVICE).as_strided(
        grad.shape, (0, 0, stride, 1)
    )
    far.copy_(grad)
    wanted = gradients([x.double() for x in qkv], grad.double(), "k <= q", "dense", **how)
    found = gradients(qkv, far, "k <= q", "triton", **how)
    for a, b in zip(found, wanted, strict=True):
        assert off(a, b) <= TOLERANCE[torch.bfloat16]


def test_a_mask_of_more_than_two_thousand_million_entries() -> None:
    """Of which few are looked up, so that few pages of it are there."""
    n, apart = 60, 600_000
    mask = torch.zeros(n * apart, 60, dtype=torch.bool, device=DEVICE)
    assert mask.numel() > 1 << 31
    attended = (torch.rand(n, n, generator=torch.Generator().manual_seed(1)) < 0.4).to(DEVICE)
    mask[::apart] = attended
    *qkv, grad = drawn(n)
    wanted = gradients([x.double() for x in qkv], grad.double(), "near[q, k]", "dense", near=attended)
    found = gradients(qkv, grad, f"mask[{apart}*q, k]", "triton", mask=mask)
    for a, b in zip(found, wanted, strict=True):
        assert off(a, b) <= TOLERANCE[torch.float32]


@settings(max_examples=30, deadline=None)
@given(
    a=st.integers(-BEYOND, BEYOND), b=st.integers(-(1 << 16), 1 << 16),
    text=st.sampled_from(
        [
            "w[head]*(A*(q - k))", "w[head]*(B*(q - k))*(B*q)", "-w[head]*((B*(q - k))*(B*k))",
            "w[head]*abs(A*q - B*k)", "w[head]*max(A*q, k)", "w[head]*(A*k % 7) + w[head]*q",
        ]
    ),
)  # fmt: skip
def test_whole_numbers_of_a_bias(a: int, b: int, text: str) -> None:
    n = 40
    written = text.replace("A", str(a)).replace("B", str(b)).replace("*-", "*(0 - 1)*")
    largest = max(abs(a), b * b, abs(b), 1) * n * n
    weights = torch.tensor([1.0, -2.0], device=DEVICE) / largest
    *qkv, grad = drawn(n)

    def run(kernel: str, dtype: torch.dtype) -> list[Tensor]:
        learned = [x.to(dtype).requires_grad_() for x in (*qkv, weights)]
        q, k, v, w = learned
        out = lt.attention(q, k, v, "k <= q", bias=lt.Bias(written, w=w), kernel=kernel)
        return [out.detach(), *torch.autograd.grad(out, learned, grad.to(dtype))]

    (*found, slope), (*wanted, exact) = run("triton", torch.float32), run("dense", torch.float64)
    for x, y in zip(found, wanted, strict=True):
        assert off(x, y) <= 1e-5
    assert float((slope.double() - exact).abs().max()) <= 1e-6 * largest  # it may cancel


@pytest.mark.parametrize("text", ["w[head]*(q // (n - k))", "w[head]*(q % (40 - k))", "t[q // (n - k)]"])
def test_a_bias_that_divides_by_what_is_never_0(text: str) -> None:
    *qkv, _ = drawn(40)
    given = {"w": torch.tensor([0.1, -0.2])} if "w" in text else {"t": torch.randn(41)}
    given = {name: x.to(DEVICE) for name, x in given.items()}
    bias = lt.Bias(text, **given)
    exact = lt.Bias(text, **{name: x.double() for name, x in given.items()})
    attend: Any = lt.attention
    wanted = attend(*(x.double() for x in qkv), "k <= q", bias=exact, kernel="dense")
    assert off(attend(*qkv, "k <= q", bias=bias, kernel="triton"), wanted) <= 1e-5


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("rule", SENTINELS)
def test_entries_that_are_added_to(rule: str, dtype: torch.dtype) -> None:
    """Sentinels near the ends of 32 bits do not wrap."""
    n, name = 100, SENTINELS[rule]
    entries = torch.randint(0, n, (n,), generator=torch.Generator().manual_seed(2))
    entries[::3] = BEYOND if name == "end" else -BEYOND - 1
    entries = entries.to(DEVICE)
    *qkv, grad = drawn(n)
    wanted = gradients([x.double() for x in qkv], grad.double(), rule, "dense", **{name: entries})
    found = gradients(qkv, grad, rule, "triton", **{name: entries.to(dtype)})
    for a, b in zip(found, wanted, strict=True):
        assert off(a, b) <= TOLERANCE[torch.float32]


@pytest.mark.skipif(DEVICE.type == "cuda", reason="the emulator stands in for a GPU where there is none")
@pytest.mark.parametrize("rule", SENTINELS)
def test_entries_that_are_added_to_in_kernels_for_hopper(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n, name = 420, SENTINELS[rule]
    entries = torch.randint(0, n, (n,), generator=torch.Generator().manual_seed(3))
    entries[::3] = BEYOND if name == "end" else -BEYOND - 1
    *qkv, grad = (x.bfloat16() for x in drawn(n, head_dim=128))
    wanted = gradients([x.double() for x in qkv], grad.double(), rule, "dense", **{name: entries})
    ran = emulated_gpu.install(4, monkeypatch.setattr)
    found = gradients(qkv, grad, rule, "triton", **{name: entries.int()})
    assert ran["attention_fwd_hopper_kernel"]
    for a, b in zip(found, wanted, strict=True):
        assert off(a, b) <= TOLERANCE[torch.bfloat16]


@pytest.mark.parametrize("cap", [5.0, 1e3, 1e6])
def test_a_softcap_that_hardly_bends(cap: float) -> None:
    *qkv, grad = drawn(90)
    wanted = gradients([x.double() for x in qkv], grad.double(), "k <= q", "dense", softcap=cap)
    found = gradients(qkv, grad, "k <= q", "triton", softcap=cap)
    for a, b in zip(found, wanted, strict=True):
        assert off(a, b) <= TOLERANCE[torch.float32]


def test_a_row_whose_bias_is_a_large_finite_number_is_an_average() -> None:
    """As torch has it: what is masked by -1e9 everywhere is masked nowhere."""
    q, k, v, grad = (x.requires_grad_() for x in drawn(20))
    bias = torch.zeros(20, 20, device=DEVICE)
    bias[7] = -1e9
    found = lt.attention(q, k, v, "full", bias=bias, kernel="dense")
    with sdpa_kernel(SDPBackend.MATH):  # its flash kernel has gradients of weights that do not add up to 1
        wanted = scaled_dot_product_attention(q, k, v, attn_mask=bias)
        slopes = [torch.autograd.grad(out, (q, k, v), grad) for out in (found, wanted)]
    for a, b in zip((found, *slopes[0]), (wanted, *slopes[1]), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
