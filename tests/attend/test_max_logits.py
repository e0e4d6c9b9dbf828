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


# As a result of attention


BESIDE: dict[str, tuple[Any, dict[str, Any]]] = {
    "causal": ("causal", {}),
    "all options": ("strided(3)", {"softcap": 1.5, "scale": -0.7, "padding": torch.tensor([N, 4])}),
    "a bias": ("head == 0 and k < q", {"bias": lt.Bias("slope*(q - k)", slope=torch.tensor(0.3))}),
    "arrays": ("doc[q] == doc[k]", {"doc": torch.arange(N) // 5}),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", BESIDE)
def test_beside_the_output(name: str, compiled: bool) -> None:
    q, k, _ = inputs()
    rule, options = BESIDE[name]

    def run(q: Tensor, k: Tensor, **asked: bool) -> Any:
        return lt.attention(q, k, k, rule, **asked, **options)

    out, lse = run(q, k, return_lse=True)
    wanted = lt.max_logits(q, k, rule, **options)
    torch._dynamo.reset()
    ran = torch.compile(run, backend="aot_eager", fullgraph=True) if compiled else run
    for found, expected in (
        (ran(q, k, return_max_logit=True), (out, wanted)),
        (ran(q, k, return_lse=True, return_max_logit=True), (out, lse, wanted)),
    ):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one, other)


def test_beside_packed_sequences_and_images() -> None:
    q, k, _ = inputs()
    line, keys = (x[0].transpose(0, 1) for x in (q, k))
    cu = torch.tensor([0, 5, N])
    out, largest = lt.attention(line, keys, keys, "causal", cu_seqlens=cu, return_max_logit=True)
    assert largest.shape == out.shape[:2] == (N, 4)
    assert torch.equal(largest, lt.max_logits(line, keys, "causal", cu_seqlens=cu))
    q, k = (x[:, :, :12].unflatten(2, (3, 4)) for x in (q, k))
    found = lt.attention(q, k, k, "neighbourhood(1)", return_lse=True, return_max_logit=True)
    assert [x.shape[2:4] for x in found] == [(3, 4)] * 3
    assert torch.equal(found[2], lt.max_logits(q, k, "neighbourhood(1)"))


@pytest.mark.parametrize("kernel", ["reference", "dense", "cpu", "sdpa", None])
def test_gradients_do_not_change_beside_it(kernel: str | None) -> None:
    """Sinks and dropout are no part of the largest scores; torch's own kernel leaves them to another."""
    q, _, _ = inputs()
    k = q.flip(2)
    q.requires_grad_()
    how: dict[str, Any] = {"kernel": kernel, "sinks": None if kernel == "sdpa" else torch.ones(4)}
    out, largest = lt.attention(q, k, k, "causal", return_max_logit=True, **how)
    assert not largest.requires_grad
    torch.testing.assert_close(largest, lt.max_logits(q, k, "causal"))
    (found,) = torch.autograd.grad(out.square().sum(), q)
    (wanted,) = torch.autograd.grad(lt.attention(q, k, k, "causal", **how).square().sum(), q)
    assert torch.equal(found, wanted)


def test_beside_derivatives_by_torch_func() -> None:
    q, k, _ = inputs()

    def run(q: Tensor) -> tuple[Tensor, Tensor]:
        out, largest = lt.attention(q, k, k, "causal", kernel="dense", return_max_logit=True)
        return out.square().sum(), largest

    wanted = lt.max_logits(q, k, "causal", kernel="dense")
    grad, largest = torch.func.grad(run, has_aux=True)(q)
    assert torch.equal(largest, wanted)
    found: Any = torch.func.jvp(run, (q,), (torch.ones_like(q),))
    (_, same), (slope, none) = found
    torch.testing.assert_close(slope, grad.sum())
    assert torch.equal(same, wanted) and not none.any()
    each = torch.func.vmap(lambda q: lt.attention(q, k, k, "causal", return_max_logit=True)[1])(q[None])
    torch.testing.assert_close(each[0], wanted)


def test_a_cache_does_not_look_for_it() -> None:
    x = torch.ones(1, 1, 1, 4)
    cache = lt.KVCache("causal", batch=1, heads=1, head_dim=4)
    with pytest.raises(lt.errors.NamingError, match="return_max_logit: a cache does not look for"):
        lt.attention(x, x, x, "causal", cache=cache, return_max_logit=True)


@pytest.mark.parametrize("name", ["return_lse", "return_max_logit"])
def test_what_only_attention_takes(name: str) -> None:
    q, k, _ = inputs()
    for ask in (
        lambda **how: lt.max_logits(q, k, "causal", **how),
        lambda **how: lt.explain("causal", **how),
    ):
        with pytest.raises(
            lt.errors.NamingError, match=f"{name} is an argument of lt.attention, and has no part"
        ):
            ask(**{name: True})
