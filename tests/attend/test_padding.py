"""Padding: every kernel against the same rule on the real keys alone, one batch element at a time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend

import lattend as lt
from lattend.attend.attention import attention

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RULES = (
    "causal",
    "strided(5)",
    "full",
    "(q - k) % 3 == 0 and k <= q",
    "k % 4 == 0 or abs(q - k) <= 2",
    "k > n",
)
pytestmark = [  # of Triton's interpreter
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def tensors(batch: int, n: int, dtype: torch.dtype) -> list[Tensor]:
    made = torch.Generator().manual_seed(1)
    shapes = ((batch, 4, n, 16), (batch, 2, n, 16), (batch, 2, n, 16), (batch, 4, n, 16))
    return [torch.randn(shape, generator=made, dtype=dtype) for shape in shapes]


def alone(q: Tensor, k: Tensor, v: Tensor, text: str, real: Tensor) -> tuple[Tensor, Tensor]:
    """Each element with its real keys only: an explicit mask, and plain torch."""
    mask = torch.as_tensor(lt.rule(text).mask(n=q.shape[2]))
    share = q.shape[1] // k.shape[1]
    scores = 0.25 * q @ k.repeat_interleave(share, 1).mT
    scores = scores.masked_fill(~(mask & real[:, None, None, :]), -torch.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.masked_fill(lse == -torch.inf, 0)[..., None]).exp()
    return weights @ v.repeat_interleave(share, 1), lse


def compared(kernel: str, text: str, padding: Tensor, real: Tensor, n: int) -> None:
    exact, device = kernel != "triton", DEVICE if kernel in ("triton", "dense") else "cpu"
    batch = len(real)
    q, k, v, grad = (x.requires_grad_() for x in tensors(batch, n, torch.float64))
    wanted, sums = alone(q, k, v, text, real)
    filled = torch.where(sums == -torch.inf, 0, sums)
    slopes = torch.autograd.grad((wanted * grad).sum() + filled.sum(), (q, k, v))
    given_ = [x.detach().to(device, torch.float64 if exact else torch.float32) for x in (q, k, v)]
    hidden = ~real[:, None, :, None].to(device)
    given_[1:] = [x.masked_fill(hidden, 1e4) for x in given_[1:]]  # what stands in padding does not matter
    leaves = [x.requires_grad_() for x in given_]
    q, k, v = leaves
    at = padding.to(device)
    out, lse = attention(q, k, v, text, padding=at, kernel=kernel, scale=0.25, return_lse=True)
    assert torch.equal(lse.cpu() == -torch.inf, sums == -torch.inf)
    ends = (out * grad.to(device, out.dtype)).sum() + torch.where(lse == -torch.inf, 0, lse).sum()
    found = [out, torch.where(lse == -torch.inf, 0, lse), *torch.autograd.grad(ends, leaves)]
    limit = 1e-11 if exact else 2e-5
    for mine, right in zip(found, (wanted, filled, *slopes), strict=True):
        away = (mine.detach().cpu().double() - right).norm() / (1e-9 + right.norm())
        assert away < limit, f"{kernel} {text}: {away:.1e}"


@pytest.mark.parametrize("kernel", ["reference", "dense", "cpu", "triton"])
@pytest.mark.parametrize("text", RULES)
def test_lengths_and_masks_are_what_an_explicit_mask_gives(kernel: str, text: str) -> None:
    n, lengths = 37, torch.tensor([37, 20, 1, 0])
    places = torch.arange(n)
    compared(kernel, text, lengths, places < lengths[:, None], n)
    left = places >= torch.tensor([[0], [11], [36], [37]])
    compared(kernel, text, left, left, n)
    holes = torch.rand(4, n, generator=torch.Generator().manual_seed(2)) < 0.5
    compared(kernel, text, holes, holes, n)


@settings(max_examples=30)
@given(st.data(), st.sampled_from(["dense", "cpu"]), st.sampled_from(RULES), st.integers(1, 40))
def test_random_masks(data: st.DataObject, kernel: str, text: str, n: int) -> None:
    bits = data.draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=3))
    real = torch.tensor(bits)
    compared(kernel, text, real, real, n)


def test_an_image_takes_a_mask_of_its_flat_positions() -> None:
    q, k, v, _ = (x.unflatten(2, (6, 6)) for x in tensors(2, 36, torch.float64))
    real = torch.rand(2, 36, generator=torch.Generator().manual_seed(2)) < 0.7
    rule = lt.rule("neighbourhood(2)")
    found = attention(q, k, v, rule, padding=real)
    array = lt.rule("abs(qy - ky) <= 2 and abs(qx - kx) <= 2 and real[ky, kx]", data={"real": None})
    wanted = attention(q, k, v, array, real=real.unflatten(1, (6, 6)))
    torch.testing.assert_close(found, wanted)


def test_no_length_compiles_again() -> None:
    q, k, v, _ = tensors(2, 12, torch.float32)

    def run(padding: Tensor) -> Tensor:
        return attention(q, k, v, "causal", padding=padding)

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(run, backend=counter, fullgraph=True)
    for lengths in ([12, 3], [1, 5], [0, 12]):
        padding = torch.tensor(lengths)
        torch.testing.assert_close(compiled(padding), run(padding))
    assert counter.frame_count == 1


def test_vmap_maps_padding_too() -> None:
    q, k, v, _ = (torch.stack([x, 2 * x]) for x in tensors(2, 9, torch.float64))
    lengths = torch.tensor([[9, 4], [2, 0]])

    def run(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
        return attention(q, k, v, "causal", padding=lengths)

    found = torch.vmap(run)(q, k, v, lengths)
    torch.testing.assert_close(found, torch.stack([run(*x) for x in zip(q, k, v, lengths, strict=True)]))


@pytest.mark.parametrize(
    ("padding", "message"),
    [
        (torch.ones(2, 8, dtype=torch.bool), r"padding is a mask \(2, 9\) of bool, .*got \(2, 8\) of bool"),
        (torch.ones(2, 9), r"got \(2, 9\) of float32"),
        (torch.tensor([1, 2, 3]), r"\(2\) lengths; got \(3\) of int64"),
        (torch.tensor([1, 10]), "padding has a length of 10, and there are 9 keys"),
        (torch.tensor([-1, 3]), "padding has a length of -1"),
        ([1, 2], "padding must be a tensor of lengths or a mask, got list"),
    ],
)
def test_mistakes_are_told(padding: Any, message: str) -> None:
    q, k, v, _ = tensors(2, 9, torch.float32)
    with pytest.raises(lt.errors.LattendError, match=message):
        attention(q, k, v, "causal", padding=padding)
