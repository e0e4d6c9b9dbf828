"""Decoding with a cache gives the rows of the full pass, and holds only what the rule can still reach."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf, nan
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import lattend as lt
from lattend.errors import DomainError, LattendError, NamingError, TensorError
from lattend.kernels import cache as module
from lattend.kernels.attention import attention
from lattend.kernels.cache import Cache, step
from lattend.plans import retention as analysis
from lattend.rules import Rule

Sequence = tuple[Tensor, Tensor, Tensor]
N = 41
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 2e-3}

RULES = {
    "causal": lt.rules.causal(),
    "strided": lt.rules.strided(t=5),
    "strided t=0": lt.rules.strided(t=0),
    "windowed": lt.rules.windowed(w=4),
    "dilated": lt.rules.dilated(t=2, step=3),
    "sparse_strided": lt.rules.sparse_strided(l=4),
    "sparse_fixed": lt.rules.sparse_fixed(l=5, c=2),
    "sinks": lt.rules.sinks(s=2, t=3),
    "longformer": lt.rules.longformer(t=2, g=3) & lt.rules.causal(),
    "chunks behind": lt.rules.chunked(w=3, t=1) & lt.rules.causal(),
    "strictly before": lt.rule("k < q and q - k <= 4"),
    "only even keys": lt.rule("k <= q and k % 2 == 0 and q - k <= 5"),
    "every third query": lt.rule("k <= q and q % 3 == 0 and q - k <= 7"),
    "a growing window": lt.rule("k <= q and q <= 2*k + 1"),
    "not affine": lt.rule("k <= q and k*k <= 9*q"),
    "with min and abs": lt.rule("k <= q and min(abs(q - k), k // 2) <= max(1, k % 3) and -k <= 0"),
    "heads": lt.rule("k <= q and q - k <= 2*head"),
    "none": lt.rule("false"),
}
BOUNDED = {
    "strided": (lt.rules.strided(t=5), 6),
    "windowed": (lt.rules.windowed(w=4), 4),
    "sinks": (lt.rules.sinks(s=2, t=3), 6),
    "dilated": (lt.rules.dilated(t=2, step=3), 7),
    "only even keys": (lt.rule("k <= q and k % 2 == 0 and q - k <= 5"), 3),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Steps are small: threads that wait for each other only slow them down."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def sequence(
    n: int = N, batch: int = 2, heads: int = 4, key_heads: int = 2, dtype: torch.dtype = torch.float64
) -> Sequence:
    """q, k and v; the size of a value is not that of a key."""
    draw = torch.Generator().manual_seed(n)
    sizes = ((heads, 8), (key_heads, 8), (key_heads, 6))
    q, k, v = (torch.randn(batch, h, n, d, generator=draw, dtype=torch.float64) for h, d in sizes)
    return q.to(dtype), k.to(dtype), v.to(dtype)


def reference(marked: np.ndarray, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The full pass, dense and in float64: outputs and log-sum-exp."""
    group = q.shape[1] // k.shape[1]
    wide_k, wide_v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    scores = (q.double() @ wide_k.mT / q.shape[3] ** 0.5).masked_fill(~torch.from_numpy(marked), -inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.masked_fill(lse == -inf, 0)[..., None]).exp()
    return weights @ wide_v, lse


def mask(rule: Rule, n: int = N, heads: int = 4) -> np.ndarray:
    known = {"n": n} | ({"heads": heads} if rule.has_heads else {})
    return rule.mask(**{name: value for name, value in known.items() if name in rule.free})


def made(rule: Rule, x: Sequence, **values: Any) -> Cache:
    """A cache whose room holds NaN, so that reading a slot no key was put into shows."""
    q, k, v = x
    batch, heads, _, size = k.shape
    given = {"query_heads": q.shape[1], "dtype": k.dtype, "value_size": v.shape[3]} | values
    cache = Cache(rule, batch=batch, heads=heads, head_size=size, **given)
    cache.keys.fill_(nan)
    cache.values.fill_(nan)
    return cache


def cut(x: Sequence, pieces: list[int]) -> Iterator[list[Tensor]]:
    ends = np.cumsum([0, *pieces]).tolist()
    for start, end in pairwise(ends):
        yield [part[:, :, start:end] for part in x]


def fed(cache: Cache, x: Sequence, pieces: list[int]) -> tuple[Tensor, Tensor]:
    found = [cache.attend(*part, return_lse=True) for part in cut(x, pieces)]
    return torch.cat([out for out, _ in found], 2), torch.cat([lse for _, lse in found], 2)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(
    "pieces", [[1] * N, [9] + [1] * 12 + [17, 1, 2], [N]], ids=["ones", "mixed", "whole"]
)
def test_it_gives_the_rows_of_the_full_pass(name: str, pieces: list[int]) -> None:
    x = sequence()
    out, lse = reference(mask(RULES[name]), *x)
    cache = made(RULES[name], x)
    found, found_lse = fed(cache, x, pieces)
    torch.testing.assert_close(found, out, atol=1e-12, rtol=0)
    torch.testing.assert_close(found_lse, lse, atol=1e-12, rtol=0)
    plain = made(RULES[name], x)
    without_lse = torch.cat([plain.attend(*part) for part in cut(x, pieces)], 2)
    torch.testing.assert_close(without_lse, out, atol=1e-12, rtol=0)
    assert len(cache) == N


@pytest.mark.parametrize("name", RULES)
def test_it_agrees_with_attention(name: str) -> None:
    x = sequence(dtype=torch.float32)
    found, _ = fed(made(RULES[name], x), x, [7] + [1] * 20 + [14])
    torch.testing.assert_close(found, attention(*x, RULES[name]), atol=2e-6, rtol=0)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(RULES)),
    st.lists(st.integers(0, 12), min_size=1, max_size=8),
    st.sampled_from([(1, 1), (2, 1), (4, 4), (6, 2)]),
    st.integers(1, 40),
)
def test_pieces_of_any_size(name: str, pieces: list[int], heads: tuple[int, int], squares: int) -> None:
    n = sum(pieces)
    x = sequence(n, 1, *heads)
    out, lse = reference(mask(RULES[name], n, heads[0]), *x)
    with pytest.MonkeyPatch.context() as patch:  # many small pieces rather than one
        patch.setattr(module, "PIECE", 4)
        patch.setattr(module, "MAX_SQUARES", squares)
        found, found_lse = fed(made(RULES[name], x), x, pieces)
    torch.testing.assert_close(found, out, atol=1e-12, rtol=0)
    torch.testing.assert_close(found_lse, lse, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", RULES)
def test_what_it_keeps_is_what_queries_to_come_reach(name: str) -> None:
    rule, x = RULES[name], sequence()
    cache, late = made(rule, x), mask(rule, 3 * N)
    squares = late.max(0) if rule.has_heads else late
    for p, part in enumerate(cut(x, [1] * N)):
        cache.attend(*part)
        reached = np.flatnonzero(squares[p + 1 :, : p + 1].any(0)).tolist()
        kept = cache.kept.tolist()
        if cache.retention.inexact:
            assert set(reached) <= set(kept)
        else:
            assert kept == reached
        assert len(kept) <= cache.capacity


@pytest.mark.parametrize("name", BOUNDED)
def test_memory_stays_the_same_over_ten_thousand_steps(name: str) -> None:
    rule, most = BOUNDED[name]
    x = sequence(10_000, 1, 2, 1, torch.float32)
    cache = made(rule, x)
    room, places = cache.nbytes, (cache.keys.data_ptr(), cache.values.data_ptr())
    assert cache.capacity == most == cache.retention.most
    assert room == most * (8 + 6) * 4
    last = [cache.attend(*part) for part in cut(x, [1] * 10_000)][-64:]
    assert cache.nbytes == room and cache.capacity == most
    assert (cache.keys.data_ptr(), cache.values.data_ptr()) == places
    rows, keys = np.arange(9_936, 10_000), np.arange(10_000)
    out, _ = reference(rule.at(n=10_000).marked({"q": rows, "k": keys}), x[0][:, :, 9_936:], *x[1:])
    torch.testing.assert_close(torch.cat(last, 2).double(), out, atol=2e-6, rtol=0)


def test_a_growing_past_doubles_its_room() -> None:
    x = sequence(1000, 1, 1, 1, torch.float32)
    cache, rooms = made(lt.rules.causal(), x), set[int]()
    for part in cut(x, [1] * 1000):
        cache.attend(*part)
        rooms.add(cache.capacity)
    assert sorted(rooms) == [64, 128, 256, 512, 1024]


def test_the_columns_of_sparse_fixed_grow_by_c_a_block() -> None:
    l, c, blocks = 8, 2, 12  # noqa: E741  (the paper's letter)
    x = sequence(l * blocks, 1, 1, 1)
    cache = made(lt.rules.sparse_fixed(l=l, c=c), x)
    fed(cache, x, [1] * (l * blocks))
    assert len(cache.kept) == c * blocks and cache.capacity == 64  # 24 kept, of 96 seen


def test_a_known_length_is_allocated_at_once() -> None:
    x = sequence()
    cache = made(lt.rules.causal(), x, n=N)
    assert cache.capacity == N
    found, _ = fed(cache, x, [1] * N)
    torch.testing.assert_close(found, reference(mask(lt.rules.causal()), *x)[0], atol=1e-12, rtol=0)
    with pytest.raises(DomainError, match="41 positions and 1 more are beyond the 41 that this cache"):
        cache.attend(*(part[:, :, :1] for part in x))


def test_pieces_look_at_few_squares_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    there = module.few.Marks.there

    def watched(self: Any, q: Any, k: Any, device: Any) -> Tensor:
        looked.append(len(q) * len(k))
        return there(self, q, k, device)

    monkeypatch.setattr(module.few.Marks, "there", watched)
    x = sequence(3000, 1, 1, 1, torch.float32)
    cache = made(lt.rules.strided(t=63), x)
    fed(cache, x, [1, 2999])
    assert max(looked) <= 512 * (512 + 63) and cache.capacity == 64


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_every_dtype(dtype: torch.dtype) -> None:
    x = sequence(dtype=dtype)
    for rule in (lt.rules.strided(t=5), lt.rules.dilated(t=2, step=3), lt.rules.causal()):
        cache = made(rule, x)
        assert cache.keys.dtype == dtype
        out, lse = reference(mask(rule), *x)
        found, found_lse = fed(cache, x, [1] * 20 + [11] + [1] * 10)
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), out, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
        torch.testing.assert_close(found_lse.double(), lse, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize(
    "name", ["causal", "strided", "windowed", "sinks", "sparse_fixed", "dilated", "heads"]
)
def test_without_isl_the_rows_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_set(*_: object) -> None:
        raise analysis._NoSet("islpy is not installed")

    monkeypatch.setattr(analysis, "_future", no_set)
    x = sequence()
    found, _ = fed(made(RULES[name], x), x, [1] * 12 + [17] + [1] * 12)
    torch.testing.assert_close(found, reference(mask(RULES[name]), *x)[0], atol=1e-12, rtol=0)


def test_packed_documents() -> None:
    x = sequence()
    rule = lt.rules.documents([7, 13, 1, 20], causal=True)
    found, _ = fed(made(rule, x), x, [5] + [1] * 16 + [20])
    torch.testing.assert_close(found, reference(rule.mask(), *x)[0], atol=1e-12, rtol=0)


def test_an_image_is_read_row_by_row() -> None:
    rows, cols = 6, 7
    x = sequence(rows * cols)
    near = lt.rules.neighbourhood(r=1) & lt.rules.raster()
    for rule, room in ((lt.rules.raster(), 64), (near, cols + 2)):
        cache = made(rule, x, cols=cols)
        found, _ = fed(cache, x, [10] + [1] * 20 + [12])
        marked = rule.mask(rows=rows, cols=cols).reshape(rows * cols, rows * cols)
        torch.testing.assert_close(found, reference(marked, *x)[0], atol=1e-12, rtol=0)
        assert cache.capacity == room


def test_scale_is_that_of_the_full_pass() -> None:
    q, k, v = sequence()
    out, _ = reference(mask(lt.rules.causal()), q * 3, k, v)
    cache = made(lt.rules.causal(), (q, k, v))
    found = [cache.attend(*part, scale=3 / 8**0.5) for part in cut((q, k, v), [5, 1, 1, 34])]
    torch.testing.assert_close(torch.cat(found, 2), out, atol=1e-12, rtol=0)


def test_beams_are_reordered_copied_and_dropped() -> None:
    x = sequence(batch=3)
    for rule in (lt.rules.strided(t=5), lt.rules.causal()):
        cache = made(rule, x)
        fed(cache, tuple(part[:, :, :20] for part in x), [20])  # pyright: ignore[reportArgumentType]
        beams = torch.tensor([2, 0])
        cache.select(beams)
        tail = tuple(part[:2, :, 20:] for part in x)
        joined = tuple(torch.cat([part[beams][:, :, :20], end], 2) for part, end in zip(x, tail, strict=True))
        out, _ = reference(mask(rule), *joined)
        found, _ = fed(cache, tail, [1] * 21)  # pyright: ignore[reportArgumentType]
        torch.testing.assert_close(found, out[:, :, 20:], atol=1e-12, rtol=0)
        cache.select([0, 0, 1, 1])
        assert cache.keys.shape[0] == 4 and len(cache) == N


def test_reset_forgets_everything_and_keeps_the_room() -> None:
    x = sequence()
    cache = made(lt.rules.sinks(s=2, t=3), x)
    first, _ = fed(cache, x, [1] * N)
    cache.reset()
    assert len(cache) == 0 and cache.kept.tolist() == [] and cache.capacity == 6
    again, _ = fed(cache, x, [1] * N)
    assert torch.equal(first, again)


def test_inference_mode_and_its_end() -> None:
    x = sequence()
    with torch.inference_mode():
        cache = made(lt.rules.causal(), x)
        first = [cache.attend(*part) for part in cut(x, [30])]
        cache.select([0, 1])
    parts = list(cut(x, [30] + [1] * 11))[1:]
    found = torch.cat([*first, *(cache.attend(*part) for part in parts)], 2)
    torch.testing.assert_close(found, reference(mask(lt.rules.causal()), *x)[0], atol=1e-12, rtol=0)


def test_step_takes_only_the_rule_of_the_cache() -> None:
    x = sequence()
    cache = made(lt.rules.strided(), x, t=5)
    q, k, v = next(cut(x, [1]))
    assert step(cache, q, k, v, rule=lt.rules.strided(t=5)).shape == (2, 4, 1, 6)
    with pytest.raises(NamingError, match='made for the rule "k <= q and q - k <= t with t = 5", not for'):
        step(cache, q, k, v, rule=lt.rules.strided(t=6))


def test_it_says_what_it_keeps() -> None:
    x = sequence(9, 1, 2, 2, torch.float32)
    cache = made(lt.rules.strided(t=3), x)
    fed(cache, x, [1] * 9)
    assert cache.nbytes == 4 * 2 * (8 + 6) * 4  # slots, heads, numbers of a key and a value, bytes
    assert repr(cache) == (
        "<Cache of k <= q and q - k <= t with t = 3: 3 of 9 keys kept in 4 slots, 448 bytes; "
        "key k is kept until query k + 3, the last that reaches it; at most 4 at once>"
    )


def test_a_long_reach_is_not_allocated_beforehand() -> None:
    cache = Cache(lt.rules.strided(t=10**30), batch=1, heads=1, head_size=4)
    assert cache.capacity == 64


def call(cache: Cache, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Any:
    return cache.attend(*(torch.zeros(shape, dtype=dtype) for shape in shapes))


def test_refusals_say_why() -> None:
    sizes: dict[str, Any] = {"batch": 1, "heads": 2, "head_size": 4}
    with pytest.raises(LattendError, match="marks key 1 for query 0: a key that has not come yet"):
        Cache(lt.rules.full(), **sizes)
    with pytest.raises(LattendError, match="speaks of m and n, the size of the whole"):
        Cache(lt.rules.causal(align="bottom-right"), **sizes)
    with pytest.raises(NamingError, match=r"rule must be a Rule, got str; make one with lt.rule\(...\)"):
        Cache("k <= q", **sizes)  # pyright: ignore[reportArgumentType]
    with pytest.raises(NamingError, match="batch has the name of an option of Cache; bind it first"):
        Cache(lt.rule("k <= q and q - k <= batch"), **sizes)
    with pytest.raises(DomainError, match="head_size = 0: it is at least 1"):
        Cache(lt.rules.causal(), batch=1, heads=2, head_size=0)
    with pytest.raises(DomainError, match="query_heads = 3 is not a multiple of heads = 2"):
        Cache(lt.rules.causal(), **sizes, query_heads=3)
    cache = Cache(lt.rules.causal(), **sizes)
    with pytest.raises(TensorError, match=r"takes k \(1, 2, s, 4\) and v \(1, 2, s, 4\), got q \(1, 2, 1"):
        call(cache, (1, 2, 1, 4), (1, 3, 1, 4), (1, 2, 1, 4))
    with pytest.raises(TensorError, match=r"it must be \(1, heads, 1, 4\), its heads a multiple of 2"):
        call(cache, (1, 3, 1, 4), (1, 2, 1, 4), (1, 2, 1, 4))
    with pytest.raises(TensorError, match=r"q is torch.float64 on cpu, and this cache torch.float32 on cpu"):
        call(cache, *[(1, 2, 1, 4)] * 3, dtype=torch.float64)
    x = torch.zeros(1, 2, 1, 4)
    with pytest.raises(TensorError, match=r"v requires a gradient, and a cache keeps none: use torch"):
        cache.attend(x, x, x.clone().requires_grad_())
    with pytest.raises(LattendError, match="bias: not there yet"):
        cache.attend(x, x, x, bias=x)  # pyright: ignore[reportArgumentType]
    heads = Cache(lt.rule("k <= q and q - k <= head"), **sizes)
    with pytest.raises(TensorError, match="q has 4 heads, and the rule was asked for 2; make the cache with"):
        call(heads, (1, 4, 1, 4), (1, 2, 1, 4), (1, 2, 1, 4))
    assert len(cache) == len(heads) == 0
