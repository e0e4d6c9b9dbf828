"""Cases that were wrong once: odd strides, scales that are not positive, numbers beyond 64 bits, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import inf, nan
from typing import Any

import pytest
import torch
from given_tensors import each, qkv
from torch import Tensor

import lattend as lt
from lattend.plans.plan import MAX_KNOWN, plan

CAUSAL = lt.rules.causal()
Three = tuple[Tensor, Tensor, Tensor]
LAYOUTS = {
    "transposed": lambda x: x.mT.contiguous().mT,
    "every other": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "expanded rows": lambda x: x[:, :, :1].expand(x.shape),
    "a slice": lambda x: torch.cat([x, x], -1)[..., : x.shape[-1]],
}


@pytest.mark.parametrize("rule", [CAUSAL, lt.rules.full(), lt.rules.strided(t=3)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_strides(rule: lt.Rule, layout: str) -> None:
    given = qkv(11, kv_heads=4, value_width=8, grad=True)
    odd = each(LAYOUTS[layout], given)
    plain = each(lambda x: LAYOUTS[layout](x).contiguous(), given)
    for run in (odd, plain):
        lt.attention(*run, rule).square().sum().backward()
    for a, b in zip(odd, plain, strict=True):
        assert a.grad is not None and b.grad is not None
        torch.testing.assert_close(a.grad, b.grad)


def on_triton(given: Three) -> Three:
    """The tensors where Triton runs: on the GPU, or here under its interpreter."""
    return each(lambda x: x.cuda() if torch.cuda.is_available() else x, given)


@pytest.mark.parametrize("rule", [CAUSAL, lt.rules.windowed(w=4), lt.rules.strided(t=3)], ids=str)
@pytest.mark.parametrize("scale", [-1.0, 0.0, 5.0])
@pytest.mark.parametrize("kernel", [None, "cpu", "dense"])
def test_any_scale(rule: lt.Rule, scale: float, kernel: str | None) -> None:
    q, k, v = qkv(12, kv_heads=4, value_width=8)
    found = lt.attention(q, k, v, rule, scale=scale, kernel=kernel)
    torch.testing.assert_close(found, lt.attention(q, k, v, rule, scale=scale, kernel="reference"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("scale", [-1.0, 0.0])
def test_any_scale_on_triton(scale: float) -> None:
    q, k, v = on_triton(qkv(12, width=16, value_width=16))
    found = lt.attention(q, k, v, lt.rules.strided(t=3), scale=scale, kernel="triton")
    expected = lt.attention(q, k, v, lt.rules.strided(t=3), scale=scale, kernel="reference")
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("scale", [nan, inf, 1e300])
def test_a_scale_is_finite(scale: float) -> None:
    with pytest.raises(lt.errors.LattendError, match="scale must be a finite number of at most 1e\\+18"):
        lt.attention(*qkv(), CAUSAL, scale=scale)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("q // s - k // s <= 1000000000000000000", {"s": 2147483647}),
        ("k // l <= t", {"l": 10**9, "t": 10**12}),
        ("(q - k) // w <= t", {"w": 2**20, "t": 2**43}),
        ("q - k <= 1000000000000", {}),
    ],
)
def test_numbers_beyond_64_bits(text: str, values: dict[str, Any]) -> None:
    rule, given = lt.rule(text), qkv(9)
    found = lt.attention(*given, rule, **values)
    torch.testing.assert_close(found, lt.attention(*given, rule, kernel="reference", **values))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_large_number_in_the_text_on_triton() -> None:
    rule = lt.rule("k <= q and q - k <= 1000000000000")
    given = on_triton(qkv(9, width=16, value_width=16))
    torch.testing.assert_close(lt.attention(*given, rule, kernel="triton"), lt.attention(*given, CAUSAL))


def test_a_kernel_says_that_its_numbers_do_not_suffice() -> None:
    rule = lt.rule("a*k <= b*q").at(a=3 * 10**18 + 1, b=3 * 10**18)
    with pytest.raises(lt.errors.LattendError, match=r"cpu.*the rule's numbers lead beyond 64 bits"):
        lt.attention(*qkv(), rule, kernel="cpu")


@pytest.mark.parametrize("kernel", ["reference", "dense", "cpu"])
def test_a_bias_of_minus_infinity_takes_a_mark_away(kernel: str) -> None:
    bias = torch.zeros(7, 7)
    bias[:, 0] = -inf
    out, lse = lt.attention(*qkv(), CAUSAL, bias=bias, kernel=kernel, return_lse=True)
    assert (out[:, :, 0] == 0).all()
    assert (lse[:, :, 0] == -inf).all()
    expected = lt.attention(*qkv(), lt.rule("0 < k <= q"), kernel=kernel)
    torch.testing.assert_close(out, expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, inside jvp
def test_forward_mode_is_refused() -> None:
    q, k, v = qkv()
    with pytest.raises(
        lt.errors.LattendError, match="this kernel of attention has no forward-mode derivative"
    ):
        torch.func.jvp(lambda x: lt.attention(x, k, v, CAUSAL), (q,), (q,))


def test_plans_from_many_threads() -> None:
    rule = lt.rules.strided(t=3)

    def work(start: int) -> int:
        return sum(len(plan(rule, n=(start * 7 + i) % (2 * MAX_KNOWN) + 1).parts) for i in range(300))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [300] * 8


EMPTY = {
    "batch": (0, 4, 2, 200, 200, 5),
    "batch, one head": (0, 1, 1, 200, 200, 5),
    "heads of q": (2, 0, 2, 30, 30, 5),
    "queries": (2, 4, 2, 0, 30, 5),
    "keys": (2, 4, 2, 30, 0, 5),
    "queries and keys": (2, 4, 2, 0, 0, 5),
    "values": (2, 4, 2, 30, 30, 0),
}


@pytest.mark.parametrize("size", EMPTY)
@pytest.mark.parametrize("kernel", [None, "native", "cpu", "dense", "reference"])
@pytest.mark.parametrize("text", ["k <= q", "k < 4 or k <= q and q - k <= 5", "(q - k) % (head + 2) == 0"])
def test_empty_axes_forward_and_backward(size: str, kernel: str | None, text: str) -> None:
    batch, heads, kv_heads, n, m, width = EMPTY[size]
    shapes = ((batch, heads, n, 8), (batch, kv_heads, m, 8), (batch, kv_heads, m, width))
    given = [torch.randn(shape, requires_grad=True) for shape in shapes]
    options: dict[str, Any] = {"m": m} if n != m else {}
    attend: Any = lt.attention
    for more in ({}, {"padding": torch.full((batch,), m // 2)}):
        out, lse = attend(*given, text, kernel=kernel, return_lse=True, **options, **more)
        assert out.shape == (batch, heads, n, width)
        grads = torch.autograd.grad(out.sum() + lse.masked_fill(lse == -inf, 0).sum(), given)
        assert all(bool(x.isfinite().all()) for x in (out, *grads))
        if not heads or not n:
            assert not any(bool(x.any()) for x in grads)


@pytest.mark.parametrize("n", [8, 600])  # one call of torch's own attention, and tiles
def test_ids_of_bool(n: int) -> None:
    q, k, v = qkv(n)
    ids = torch.rand(n, generator=torch.Generator().manual_seed(1)) > 0.5
    wanted = lt.attention(q, k, v, "doc[q] == doc[k]", doc=ids.long())
    rules: list[Any] = [
        lambda b, h, q, kv: ids[q] == ids[kv],  # torch's own test_seq_masking
        lt.rule("doc[q] == doc[k]", data={"doc": ids.numpy()}),
        lt.rules.documents(ids=ids.tolist()),
    ]
    found = [lt.attention(q, k, v, rule) for rule in rules]
    found += [lt.attention(q, k, v, lt.rules.documents(), doc=ids)]
    for out in found:
        torch.testing.assert_close(out, wanted)


@pytest.mark.parametrize("kernel", ["native", "sdpa", "cpu", "dense", "reference"])
def test_the_largest_scores_with_any_kernel(kernel: str) -> None:
    q, k, v = qkv(value_width=8)
    _, found = lt.attention(q, k, v, CAUSAL, kernel=kernel, return_max_logit=True)
    torch.testing.assert_close(found, lt.max_logits(q, k, CAUSAL))


def test_a_bias_that_names_m_where_there_are_as_many_keys_as_queries() -> None:
    q, k, v = qkv()
    bias = lt.Bias("slope*(m - k)", slope=torch.tensor(0.1))
    wanted = lt.attention(q, k, v, CAUSAL, bias=lt.Bias("slope*(7 - k)", slope=torch.tensor(0.1)))
    torch.testing.assert_close(lt.attention(q, k, v, CAUSAL, bias=bias), wanted)
    torch.testing.assert_close(lt.attention(q, k, v, CAUSAL, bias=bias, m=7), wanted)
    with pytest.raises(lt.errors.TensorError, match="give m=7"):
        lt.attention(q[:, :, :3], k, v, CAUSAL, bias=bias)
