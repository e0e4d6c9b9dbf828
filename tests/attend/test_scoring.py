"""Softcap, sinks and dropout: every kernel against attention written out in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import lattend as lt
from lattend.attend.attention import attention
from lattend.attend.call import dropout as dropping

RULES = (
    "causal",
    "strided(3)",
    "q // 4 == k // 4",
    "k % 3 == 0 or abs(q - k) <= 1",
    "head == 0 and k < q",
    "k > n",
)
KERNELS = ("reference", "dense", "cpu")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def written_out(
    qkv: tuple[Tensor, Tensor, Tensor],
    mask: Tensor,
    *,
    scale: float,
    softcap: float | None = None,
    sinks: Tensor | None = None,
    bias: Tensor | None = None,
    kept: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention by the book, with a sink as one key more whose value is zero."""
    q, k, v = qkv
    share = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(share, 1) for x in (k, v))
    scores = scale * q @ k.mT
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    scores = scores.masked_fill(~mask, -torch.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks[None, :, None, None].expand(*scores.shape[:3], 1)], -1)
        v = torch.cat([v, v.new_zeros(*v.shape[:2], 1, v.shape[3])], 2)
    lse = scores.logsumexp(-1)
    empty = lse == -torch.inf
    weights = (scores - lse.masked_fill(empty, 0)[..., None]).exp()
    if kept is not None:
        weights = weights * torch.cat(
            [kept, kept.new_ones(*kept.shape[:3], weights.shape[3] - kept.shape[3])], -1
        )
    return weights @ v, lse


def inputs(
    heads: int = 4, kv_heads: int = 2, n: int = 13, dtype: torch.dtype = torch.float64
) -> list[Tensor]:
    made = torch.Generator().manual_seed(3)
    shapes = (
        (2, heads, n, 8),
        (2, kv_heads, n, 8),
        (2, kv_heads, n, 6),
        (heads,),
        (heads, n, n),
        (2, heads, n, 6),
    )
    return [torch.randn(shape, generator=made, dtype=dtype) for shape in shapes]


def mask_of(text: str, n: int, heads: int) -> Tensor:
    rule = lt.rule(text)
    given_ = {"heads": heads} if rule.has_heads else {}
    return torch.as_tensor(rule.mask(n=n, **given_)).reshape(-1, n, n)[None]


def compared(found: list[Tensor], wanted: list[Tensor], limit: float) -> None:
    for mine, right in zip(found, wanted, strict=True):
        assert torch.equal(mine == -torch.inf, right == -torch.inf)
        inside = right != -torch.inf
        away = (mine.double() - right)[inside].norm() / (right[inside].norm() + 1e-12)
        assert away < limit


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("with_lse", [False, True])
@pytest.mark.parametrize("options", ["softcap", "sinks", "dropout", "softcap sinks dropout bias"])
def test_kernels_do_what_is_written_out(kernel: str, text: str, with_lse: bool, options: str) -> None:
    q, k, v, sinks, table, grad = inputs()
    leaves = [x.requires_grad_() for x in (q, k, v, sinks, table)]
    asked: dict[str, Any] = {}
    if "softcap" in options:
        asked["softcap"] = 1.5
    if "sinks" in options:
        asked["sinks"] = sinks
    if "bias" in options:
        asked["bias"] = table
    plain = dict(asked)
    if "dropout" in options:
        asked["dropout"] = 0.4
        torch.manual_seed(11)
        seed = dropping.new_seed(q)
        members = torch.arange(8).view(2, 4, 1, 1)
        places = torch.arange(13)
        found = dropping.kept(seed, 0.4, members, places[:, None], places)
        plain["kept"] = found.double() * dropping.kept_share(0.4)
    torch.manual_seed(11)
    out, lse = attention(q, k, v, text, scale=0.7, kernel=kernel, return_lse=True, **asked)
    right, right_lse = written_out((q, k, v), mask_of(text, 13, 4), scale=0.7, **plain)
    slopes = torch.where(right_lse == -torch.inf, 0, torch.arange(13.0, dtype=torch.float64))
    ends = [(out * grad).sum(), (right * grad).sum()]
    if with_lse:
        ends[0] = ends[0] + (torch.where(lse == -torch.inf, 0, lse) * slopes).sum()
        ends[1] = ends[1] + (torch.where(right_lse == -torch.inf, 0, right_lse) * slopes).sum()
    mine, wanted = (torch.autograd.grad(end, leaves, allow_unused=True) for end in ends)
    compared([out, lse], [right, right_lse], 1e-12)
    pairs = [(a, b) for a, b in zip(mine, wanted, strict=True) if b is not None]
    compared(
        [torch.zeros_like(b) if a is None else a for a, b in pairs], [b.nan_to_num() for _, b in pairs], 1e-11
    )


# Triton


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the interpreter's NumPy
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("text", ["strided(3)", "(q - k) % 3 == 0 and k <= q", RULES[3]])
@pytest.mark.parametrize("options", ["softcap", "sinks", "dropout", "softcap sinks dropout bias"])
def test_triton_does_what_the_dense_kernel_does(text: str, options: str) -> None:
    q, k, v, sinks, table, grad = (x.to(DEVICE) for x in inputs(dtype=torch.float32))
    leaves = [x.requires_grad_() for x in (q, k, v, sinks, table)]
    asked: dict[str, Any] = {"scale": -0.7}
    asked |= {"softcap": 1.5} if "softcap" in options else {}
    asked |= {"sinks": sinks} if "sinks" in options else {}
    asked |= {"bias": table} if "bias" in options else {}
    asked |= {"dropout": 0.4} if "dropout" in options else {}
    found: list[list[Tensor]] = []
    for kernel in ("triton", "dense"):
        torch.manual_seed(5)
        out, lse = attention(q, k, v, text, kernel=kernel, return_lse=True, **asked)
        end = (out * grad).sum() + torch.where(lse == -torch.inf, 0, lse).sum()
        grads = torch.autograd.grad(end, leaves, allow_unused=True)
        found.append([out, lse, *(x for x in grads if x is not None)])
    compared([x.detach().cpu() for x in found[0]], [x.detach().double().cpu() for x in found[1]], 1e-5)


# Dropout


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropped_pairs_are_as_many_as_asked_and_independent(rate: float) -> None:
    """Of a million pairs: the share dropped, and that of neighbours both dropped, along each direction."""
    members, queries, keys = torch.arange(4)[:, None, None], torch.arange(512)[:, None], torch.arange(512)
    lost = ~dropping.kept(torch.tensor([2**61 + 7]), rate, members, queries, keys)
    pairs = lost.numel()
    within = 5 * (rate * (1 - rate) / pairs) ** 0.5
    assert abs(float(lost.float().mean()) - rate) < within
    for axis in range(3):
        for step in (1, 2, 3):
            both = lost & lost.roll(step, axis)
            assert abs(float(both.float().mean()) - rate**2) < 2 * within
    for axis in (0, 1, 2):  # no row, column or head has more or fewer than chance gives it
        others = [other for other in range(3) if other != axis]
        share = lost.float().mean(others)
        most = 6 * (rate * (1 - rate) / (pairs / len(share))) ** 0.5
        assert float((share - rate).abs().max()) < most


def test_other_seeds_drop_other_pairs() -> None:
    places = torch.arange(64)
    one, other, high = (
        dropping.kept(torch.tensor([seed]), 0.5, torch.tensor(0), places[:, None], places)
        for seed in (1, 2, 1 + 2**40)
    )
    for a, b in ((one, other), (one, high)):
        assert 0.4 < float((a == b).float().mean()) < 0.6


def test_a_seed_reproduces_and_the_mean_stays() -> None:
    q, k, v, *_ = inputs(dtype=torch.float32)

    def once(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return attention(q, k, v, "causal", dropout=0.3)

    assert torch.equal(once(4), once(4))
    assert not torch.equal(once(4), once(5))
    mean = torch.stack([once(seed) for seed in range(400)]).mean(0)
    assert (mean - attention(q, k, v, "causal")).norm() / mean.norm() < 0.1


# Among torch's tools


def test_compiled_and_checked() -> None:
    q, k, v, sinks, _, grad = inputs(dtype=torch.float32)
    leaves = [x.requires_grad_() for x in (q, k, v, sinks)]

    def run(q: Tensor, k: Tensor, v: Tensor, sinks: Tensor) -> Tensor:
        return attention(q, k, v, "strided(3)", sinks=sinks, softcap=2.0)

    torch._dynamo.reset()
    found, wanted = torch.compile(run, backend="aot_eager", fullgraph=True)(*leaves), run(*leaves)
    torch.testing.assert_close(found, wanted)
    for mine, right in zip(
        *(torch.autograd.grad((x * grad).sum(), leaves) for x in (found, wanted)), strict=True
    ):
        torch.testing.assert_close(mine, right)

    def drops(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, "strided(3)", dropout=0.5)

    compiled = torch.compile(drops, backend="aot_eager", fullgraph=True)
    out = compiled(q, k, v)
    (out * grad).sum().backward()
    assert q.grad is not None and bool(q.grad.isfinite().all())
    assert not torch.equal(out, compiled(q, k, v))


def test_autograd_agrees_with_differences() -> None:
    q, k, v, sinks, *_ = inputs(n=5)
    leaves = [x.requires_grad_() for x in (q, k, v, sinks)]

    def run(q: Tensor, k: Tensor, v: Tensor, sinks: Tensor) -> tuple[Tensor, Tensor]:
        torch.manual_seed(2)
        return attention(q, k, v, "causal", sinks=sinks, softcap=1.2, dropout=0.3, return_lse=True)

    assert torch.autograd.gradcheck(run, leaves)


@pytest.mark.parametrize("text", ["causal", "strided(3)", "k % 3 == 0 and k <= q or q == k"])
def test_a_cache_gives_the_rows_of_the_whole(text: str) -> None:
    q, k, v, sinks, *_ = inputs()
    whole, lse = attention(q, k, v, text, sinks=sinks, softcap=1.5, return_lse=True)
    cache = lt.KVCache(text, batch=2, heads=4, kv_heads=2, head_dim=8, value_dim=6, dtype=torch.float64)
    rows: list[tuple[Tensor, Tensor]] = []
    for first, end in ((0, 5), (5, 6), (6, 9), (9, 10), (10, 13)):
        at = slice(first, end)
        some = (q[:, :, at], k[:, :, at], v[:, :, at])
        rows.append(attention(*some, text, cache=cache, sinks=sinks, softcap=1.5, return_lse=True))
    torch.testing.assert_close(torch.cat([out for out, _ in rows], 2), whole)
    torch.testing.assert_close(torch.cat([sums for _, sums in rows], 2), lse)


@settings(max_examples=25)
@given(st.floats(0.05, 40), st.lists(st.floats(-60, 60), min_size=2, max_size=2), st.floats(0, 30))
def test_large_scores_stay_finite(softcap: float, sinks: list[float], size: float) -> None:
    q, k, v, *_ = inputs(heads=2, n=7, dtype=torch.float32)
    logits = torch.tensor(sinks, requires_grad=True)
    q = (q * size).requires_grad_()
    out = attention(q, k, v, "strided(3)", softcap=softcap, sinks=logits)
    right, _ = written_out(
        (q.double(), k.double(), v.double()), mask_of("strided(3)", 7, 2), scale=8**-0.5, softcap=softcap,
        sinks=logits.double(),
    )  # fmt: skip
    assert (out - right).abs().max() < 1e-4
    slopes = torch.autograd.grad(out.square().sum(), (q, logits))
    wanted = torch.autograd.grad(right.square().sum(), (q, logits))
    for mine, exact in zip(slopes, wanted, strict=True):
        assert (mine - exact).abs().max() <= 1e-3 * (1 + exact.abs().max())


# Mistakes


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"softcap": 0}, "a number above 0; got 0"),
        ({"softcap": -3.0}, "a number above 0"),
        ({"softcap": "30"}, "softcap must be a number, got str"),
        ({"dropout": 1.0}, "from 0 to below 1; got 1.0"),
        ({"dropout": -0.1}, "from 0 to below 1"),
        ({"dropout": True}, "dropout must be a number, got bool"),
        ({"sinks": torch.zeros(3)}, r"sinks has shape \(3\), and q has 4 heads: one logit for each"),
        ({"sinks": torch.zeros(4, dtype=torch.int64)}, "sinks holds int64"),
        ({"sinks": [0.0] * 4}, "sinks must be a tensor with one logit a head, got list"),
    ],
)
def test_mistakes_are_told(given_: dict[str, Any], message: str) -> None:
    q, k, v, *_ = inputs()
    with pytest.raises(lt.errors.LattendError, match=message):
        attention(q, k, v, "causal", **given_)


def test_a_cache_takes_no_dropout() -> None:
    q, k, v, *_ = inputs()
    cache = lt.KVCache("causal", batch=2, heads=4, kv_heads=2, head_dim=8, value_dim=6, dtype=torch.float64)
    with pytest.raises(lt.errors.NamingError, match="dropout is for training, and a cache for decoding"):
        attention(q, k, v, "causal", cache=cache, dropout=0.1)
