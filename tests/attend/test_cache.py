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
from lattend.attend import Bias
from lattend.attend.attention import attention
from lattend.attend.decode import dynamic as store
from lattend.attend.decode import step
from lattend.attend.decode.kv_cache import KVCache
from lattend.errors import DomainError, LattendError, NamingError, TensorError, TraceError
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
    n: int = N, batch: int = 2, heads: int = 4, kv_heads: int = 2, dtype: torch.dtype = torch.float64
) -> Sequence:
    """q, k and v; the size of a value is not that of a key."""
    draw = torch.Generator().manual_seed(n)
    sizes = ((heads, 8), (kv_heads, 8), (kv_heads, 6))
    q, k, v = (torch.randn(batch, h, n, d, generator=draw, dtype=torch.float64) for h, d in sizes)
    return q.to(dtype), k.to(dtype), v.to(dtype)


def reference(attended: np.ndarray, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The full pass, dense and in float64: outputs and log-sum-exp."""
    group = q.shape[1] // k.shape[1]
    wide_k, wide_v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    scores = (q.double() @ wide_k.mT / q.shape[3] ** 0.5).masked_fill(~torch.from_numpy(attended), -inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.masked_fill(lse == -inf, 0)[..., None]).exp()
    return weights @ wide_v, lse


def mask(rule: Rule, n: int = N, heads: int = 4) -> np.ndarray:
    known = {"n": n} | ({"heads": heads} if rule.has_heads else {})
    return rule.mask(**{name: value for name, value in known.items() if name in rule.free})


def made(rule: Rule, x: Sequence, **values: Any) -> KVCache:
    """A cache whose room holds NaN, so that reading a slot no key was put into shows."""
    q, k, v = x
    batch, kv_heads, _, size = k.shape
    given = {"heads": q.shape[1], "dtype": k.dtype, "value_dim": v.shape[3]} | values
    cache = KVCache(rule, batch=batch, kv_heads=kv_heads, head_dim=size, **given)
    cache.keys.fill_(nan)
    cache.values.fill_(nan)
    return cache


def cut(x: Sequence, pieces: list[int]) -> Iterator[Sequence]:
    ends = np.cumsum([0, *pieces]).tolist()
    for start, end in pairwise(ends):
        q, k, v = (part[:, :, start:end] for part in x)
        yield q, k, v


def fed(cache: KVCache, x: Sequence, pieces: list[int]) -> tuple[Tensor, Tensor]:
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
def test_pieces_of_any_size(name: str, pieces: list[int], heads: tuple[int, int], pairs: int) -> None:
    n = sum(pieces)
    x = sequence(n, 1, *heads)
    out, lse = reference(mask(RULES[name], n, heads[0]), *x)
    with pytest.MonkeyPatch.context() as patch:  # many small pieces rather than one
        patch.setattr(store, "PIECE", 4)
        patch.setattr(store, "MAX_PAIRS", pairs)
        found, found_lse = fed(made(RULES[name], x), x, pieces)
    torch.testing.assert_close(found, out, atol=1e-12, rtol=0)
    torch.testing.assert_close(found_lse, lse, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", RULES)
def test_what_it_keeps_is_what_queries_to_come_reach(name: str) -> None:
    rule, x = RULES[name], sequence()
    cache, late = made(rule, x), mask(rule, 3 * N)
    seen = late.max(0) if rule.has_heads else late
    for p, part in enumerate(cut(x, [1] * N)):
        cache.attend(*part)
        reached = np.flatnonzero(seen[p + 1 :, : p + 1].any(0)).tolist()
        kept = cache.positions.tolist()
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
    out, _ = reference(rule.at(n=10_000).mask_at({"q": rows, "k": keys}), x[0][:, :, 9_936:], *x[1:])
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
    assert len(cache.positions) == c * blocks and cache.capacity == 64  # 24 kept, of 96 seen


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
    there = step.StepMask.on_device

    def watched(self: Any, q: Any, k: Any, *given: Any) -> Tensor:
        looked.append(len(q) * len(k))
        return there(self, q, k, *given)

    monkeypatch.setattr(step.StepMask, "on_device", watched)
    x = sequence(3000, 1, 1, 1, torch.float32)
    cache = made(lt.rules.strided(t=63), x)
    fed(cache, x, [1, 2999])
    assert max(looked) <= 512 * (512 + cache.capacity) and cache.capacity == 64


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
        attended = rule.mask(rows=rows, cols=cols).reshape(rows * cols, rows * cols)
        torch.testing.assert_close(found, reference(attended, *x)[0], atol=1e-12, rtol=0)
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
    assert len(cache) == 0 and cache.positions.tolist() == [] and cache.capacity == 6
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
    assert lt.attention(q, k, v, lt.rules.strided(t=5), cache=cache).shape == (2, 4, 1, 6)
    with pytest.raises(NamingError, match='made for the rule "k <= q and q - k <= t with t = 5", not for'):
        lt.attention(q, k, v, lt.rules.strided(t=6), cache=cache)


# With a bias


def learned(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


BIASES = {
    "alibi": Bias.alibi(4),
    "relative": Bias.relative(learned(4, 15)),
    "quadratic": Bias.quadratic(learned(4).abs() / 8, learned(4, 1)),
    "entries of queries and keys": Bias(
        "row[head, q]*scale + column[k]", row=learned(4, N), column=learned(N), scale=0.5
    ),
    "a number": Bias("x*(q - k) - 2", x=0.25),
    "the same everywhere": Bias("3"),
}
STEPS = {"ones": [1] * N, "a prompt": [20] + [1] * 21, "pieces": [9] + [1] * 12 + [17, 1, 2], "whole": [N]}


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("name", ["causal", "strided", "sparse_fixed", "sinks", "dilated", "heads", "none"])
def test_with_a_bias_it_gives_the_rows_of_the_full_pass(name: str, bias: str) -> None:
    x, rule = sequence(), RULES[name]
    out, lse = attention(*x, rule, bias=BIASES[bias], return_lse=True, kernel="dense")
    for pieces in STEPS.values():
        cache, plain = made(rule, x), made(rule, x)
        found = [cache.attend(*part, bias=BIASES[bias], return_lse=True) for part in cut(x, pieces)]
        torch.testing.assert_close(torch.cat([part for part, _ in found], 2), out, atol=1e-12, rtol=0)
        torch.testing.assert_close(torch.cat([sums for _, sums in found], 2), lse, atol=1e-12, rtol=0)
        without_lse = [plain.attend(*part, bias=BIASES[bias]) for part in cut(x, pieces)]
        torch.testing.assert_close(torch.cat(without_lse, 2), out, atol=1e-12, rtol=0)


@pytest.mark.parametrize("heads", [(4, 4), (4, 1), (6, 2)])
def test_a_bias_and_heads_that_share_keys(heads: tuple[int, int]) -> None:
    x, rule, bias = sequence(N, 2, *heads), lt.rules.strided(t=5), Bias.alibi(heads[0])
    out = attention(*x, rule, bias=bias, kernel="dense")
    for pieces in STEPS.values():
        cache = made(rule, x)
        found = [cache.attend(*part, bias=bias) for part in cut(x, pieces)]
        torch.testing.assert_close(torch.cat(found, 2), out, atol=1e-12, rtol=0)


def test_a_bias_may_speak_of_the_rule() -> None:
    x, rule = sequence(), lt.rules.strided()
    bias = Bias("x[head]*(q - k - t)", x=learned(4))
    out = attention(*x, rule, t=5, bias=bias, kernel="dense")
    cache = made(rule, x, t=5)
    found = [attention(*part, rule, t=5, bias=bias, cache=cache) for part in cut(x, [9] + [1] * 32)]
    torch.testing.assert_close(torch.cat(found, 2), out, atol=1e-12, rtol=0)
    of_heads = Bias("x*(head - heads)*k", x=0.1)
    rule = RULES["heads"]
    out = attention(*x, rule, bias=of_heads, kernel="dense")
    cache = made(rule, x)
    found = [cache.attend(*part, bias=of_heads) for part in cut(x, STEPS["pieces"])]
    torch.testing.assert_close(torch.cat(found, 2), out, atol=1e-12, rtol=0)


@pytest.mark.parametrize("pieces", [[10] + [1] * 20 + [12], [1] * 42], ids=["pieces", "ones"])
def test_a_bias_on_an_image(pieces: list[int]) -> None:
    rows, cols = 6, 7
    x = sequence(rows * cols)
    rule = lt.rules.neighbourhood(r=1) & lt.rules.raster()
    biases = [
        Bias.relative(learned(4, 3, 3)),
        Bias("y[qy]*x[kx] + cols", y=learned(rows), x=learned(cols)),
    ]
    for bias in biases:
        out = attention(*x, rule, bias=bias, cols=cols, kernel="dense")
        cache = made(rule, x, cols=cols)
        found = [cache.attend(*part, bias=bias) for part in cut(x, pieces)]
        torch.testing.assert_close(torch.cat(found, 2), out, atol=1e-12, rtol=0)


@pytest.mark.parametrize("shape", [(N, N), (4, N, N)])
def test_a_known_length_takes_a_table_of_pairs(shape: tuple[int, ...]) -> None:
    x, table, rule = sequence(), learned(*shape), lt.rules.strided(t=5)
    out = attention(*x, rule, bias=table, kernel="dense")
    cache = made(rule, x, n=N)
    found = [cache.attend(*part, bias=table) for part in cut(x, STEPS["pieces"])]
    torch.testing.assert_close(torch.cat(found, 2), out, atol=1e-12, rtol=0)
    of_size = Bias("x*q*n", x=0.01)
    out = attention(*x, rule, bias=of_size, kernel="dense")
    cache.reset()
    found = [cache.attend(*part, bias=of_size) for part in cut(x, STEPS["pieces"])]
    torch.testing.assert_close(torch.cat(found, 2), out, atol=1e-12, rtol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_bias_is_not_rounded_to_narrow_numbers(dtype: torch.dtype) -> None:
    x = sequence(600, dtype=dtype)
    bias = Bias("x*(q - k)", x=1.03)  # 617 at the far end, which bfloat16 holds to 2 or 4
    q, k, v = (part.double() for part in x)
    out = attention(q, k, v, lt.rules.causal(), bias=bias)
    cache = made(lt.rules.causal(), x)
    found = torch.cat([cache.attend(*part, bias=bias) for part in cut(x, [590] + [1] * 10)], 2)
    torch.testing.assert_close(found.double(), out, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_what_a_bias_cannot_be() -> None:
    x = sequence()
    cache = made(lt.rules.strided(t=5), x)
    one = next(cut(x, [1]))
    with pytest.raises(
        LattendError, match=r"bias is a table of shape \(41, 41\) for all pairs, and how many"
    ):
        cache.attend(*one, bias=torch.zeros(N, N, dtype=torch.float64))
    with pytest.raises(LattendError, match='bias "x\\*n" names n, the size of the whole, which is not known'):
        cache.attend(*one, bias=Bias("x*n", x=0.5))
    with pytest.raises(NamingError, match="names tt, which this rule does not have; did you mean t"):
        cache.attend(*one, bias=Bias("x*tt", x=0.5))
    with pytest.raises(
        TensorError, match="bias: slope requires a gradient, and a cache keeps none: use torch"
    ):
        cache.attend(*one, bias=Bias("slope[head]*q", slope=learned(4).requires_grad_()))
    with pytest.raises(TensorError, match=r"slope\[head\] needs 4 places on axis 0, one for each head"):
        cache.attend(*one, bias=Bias("slope[head]*q", slope=learned(3)))
    assert len(cache) == 0
    row = Bias("row[q]", row=learned(2))
    cache.attend(*one, bias=row)
    cache.attend(*one, bias=row)
    with pytest.raises(TensorError, match=r"bias: row has shape \(2\); row\[q\] needs 3 places on axis 0"):
        cache.attend(*one, bias=row)
    assert len(cache) == 2
    known = made(lt.rules.strided(t=5), x, n=N)
    with pytest.raises(TensorError, match=r"bias has shape \(40, 41\), and a table has one number for each"):
        known.attend(*one, bias=torch.zeros(40, N, dtype=torch.float64))
    with torch.no_grad():
        cache.attend(*one, bias=Bias("slope[head]*q", slope=learned(4).requires_grad_()))


# As an argument of attention


def test_attention_takes_a_cache() -> None:
    x, rule = sequence(), lt.rules.strided()
    out, lse = attention(*x, rule, t=5, return_lse=True)
    for known in (rule.at(t=5), rule):  # t=5 beside the rule: test_a_bias_may_speak_of_the_rule
        cache = made(rule, x, t=5)
        found = [attention(*part, known, cache=cache, return_lse=True) for part in cut(x, STEPS["pieces"])]
        torch.testing.assert_close(torch.cat([part for part, _ in found], 2), out, atol=1e-12, rtol=0)
        torch.testing.assert_close(torch.cat([sums for _, sums in found], 2), lse, atol=1e-12, rtol=0)
    cache = made(rule, x, t=5, n=N)
    scaled = [attention(*part, rule, cache=cache, scale=0.1) for part in cut(x, STEPS["pieces"])]
    torch.testing.assert_close(torch.cat(scaled, 2), attention(*x, rule, t=5, scale=0.1))


def test_attention_with_a_cache_says_what_does_not_fit() -> None:
    x, rule = sequence(), lt.rules.strided()
    cache = made(rule, x, t=5)
    one = next(cut(x, [1]))
    with pytest.raises(
        NamingError, match='kernel="cpu": a cache answers its queries by itself; leave kernel'
    ):
        attention(*one, rule, cache=cache, kernel="cpu")
    with pytest.raises(NamingError, match=r"cache must be an lt\.KVCache, got dict"):
        attention(*one, rule, cache={})  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(NamingError, match='with t = 5", not for "k <= q and q - k <= t with t = 6"; make'):
        attention(*one, rule, cache=cache, t=6)
    with pytest.raises(NamingError, match='not for "k <= q"; make another'):
        attention(*one, lt.rules.causal(), cache=cache)
    with pytest.raises(NamingError, match='with t = 5", not for "k <= q and q - k <= t with n = 1"; make'):
        attention(*one, rule, cache=cache, n=1)
    with pytest.raises(NamingError, match="has no tt; it has n, t; did you mean t"):
        attention(*one, rule, cache=cache, tt=6)
    with pytest.raises(NamingError, match=r"has no past_key_values; it has n, t; write cache=lt\.KVCache"):
        attention(*one, rule, cache=cache, past_key_values=None)
    packed = made(lt.rules.documents([20, 21], causal=True), x)
    with pytest.raises(NamingError, match="gets doc when attention runs, and this cache has it from"):
        attention(*one, lt.rules.documents(causal=True), cache=packed)
    with pytest.raises(TensorError, match="k has batch 1 and q has 2"):
        attention(one[0], one[1][:1], one[2], rule, cache=cache)
    assert len(cache) == len(packed) == 0


def test_autocast_does_as_without_a_cache() -> None:
    x = sequence(dtype=torch.float32)
    rule = lt.rules.strided(t=5)
    cache = made(rule, x, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        out = attention(*x, rule)
        found = [attention(*part, rule, cache=cache) for part in cut(x, STEPS["pieces"])]
    assert found[0].dtype == out.dtype == torch.bfloat16
    torch.testing.assert_close(torch.cat(found, 2), out, atol=1e-2, rtol=1e-2)
    exact = made(rule, sequence())
    with torch.autocast("cpu", torch.bfloat16):  # its own sums stay as wide as its numbers
        _, lse = fed(exact, sequence(), STEPS["ones"])
    torch.testing.assert_close(lse, reference(mask(rule), *sequence())[1], atol=1e-12, rtol=0)


def test_torch_compile_leaves_it_to_python() -> None:
    x, rule = sequence(dtype=torch.float32), lt.rules.strided(t=5)
    cache = made(rule, x)

    def layer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return 2 * attention(q + 0, k + 0, v + 0, rule, cache=cache, bias=BIASES["alibi"])

    torch._dynamo.reset()
    compiled = torch.compile(layer, backend="eager")
    found = torch.cat([compiled(*part) for part in cut(x, STEPS["pieces"])], 2)
    torch.testing.assert_close(found, 2 * attention(*x, rule, bias=BIASES["alibi"]), atol=4e-6, rtol=0)


def test_it_says_what_it_keeps() -> None:
    x = sequence(9, 1, 2, 2, torch.float32)
    cache = made(lt.rules.strided(t=3), x)
    fed(cache, x, [1] * 9)
    assert cache.nbytes == 4 * 2 * (8 + 6) * 4  # slots, heads, numbers of a key and a value, bytes
    assert repr(cache) == (
        "<KVCache of k <= q and q - k <= t with t = 3: 3 of 9 keys in 4 slots, 448 bytes; "
        "key k is kept until query k + 3, the last that reaches it; at most 4 at once>"
    )


def test_a_long_reach_is_not_allocated_beforehand() -> None:
    cache = KVCache(lt.rules.strided(t=10**30), batch=1, heads=1, head_dim=4)
    assert cache.capacity == 64


def call(cache: KVCache, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Any:
    return cache.attend(*(torch.zeros(shape, dtype=dtype) for shape in shapes))


def test_refusals_say_why() -> None:
    sizes: dict[str, Any] = {"batch": 1, "heads": 2, "head_dim": 4}
    with pytest.raises(LattendError, match="has query 0 attend to key 1, which has not come yet"):
        KVCache(lt.rules.full(), **sizes)
    with pytest.raises(LattendError, match="speaks of n, the size of the whole"):
        KVCache(lt.rule("k <= q and k >= n - 9"), **sizes)
    aligned = KVCache(lt.rules.causal(align="bottom-right"), **sizes)  # with a key for each query, k <= q
    assert str(aligned.retention) == str(KVCache(lt.rules.causal(), **sizes).retention)
    with pytest.raises(TraceError, match="a rule is a text or a function of q and k, got 3"):
        KVCache(3, **sizes)  # pyright: ignore[reportArgumentType]
    with pytest.raises(NamingError, match="batch has the name of an option of KVCache; bind it first"):
        KVCache(lt.rule("k <= q and q - k <= batch"), **sizes)
    with pytest.raises(DomainError, match="head_dim = 0: it is at least 1"):
        KVCache(lt.rules.causal(), batch=1, heads=2, head_dim=0)
    with pytest.raises(DomainError, match="heads = 3 is not a multiple of kv_heads = 2"):
        KVCache(lt.rules.causal(), **{**sizes, "heads": 3}, kv_heads=2)
    cache = KVCache(lt.rules.causal(), **sizes)
    with pytest.raises(TensorError, match=r"takes k \(1, 2, s, 4\) and v \(1, 2, s, 4\), got q \(1, 2, 1"):
        call(cache, (1, 2, 1, 4), (1, 3, 1, 4), (1, 2, 1, 4))
    with pytest.raises(TensorError, match=r"it must be \(1, heads, 1, 4\), its heads a multiple of 2"):
        call(cache, (1, 3, 1, 4), (1, 2, 1, 4), (1, 2, 1, 4))
    with pytest.raises(TensorError, match=r"q is torch.float64 on cpu, and this cache torch.float32 on cpu"):
        call(cache, *[(1, 2, 1, 4)] * 3, dtype=torch.float64)
    x = torch.zeros(1, 2, 1, 4)
    with pytest.raises(TensorError, match=r"v requires a gradient, and a cache keeps none: use torch"):
        cache.attend(x, x, x.clone().requires_grad_())
    heads = KVCache(lt.rule("k <= q and q - k <= head"), **sizes)
    with pytest.raises(
        TensorError, match="q has 4 heads, and the cache was made for 2; make it with heads=4"
    ):
        call(heads, (1, 4, 1, 4), (1, 2, 1, 4), (1, 2, 1, 4))
    assert len(cache) == len(heads) == 0


def test_arrays_that_the_rule_leaves_open_come_with_the_cache() -> None:
    x, rule = sequence(), lt.rules.documents(causal=True)
    doc = torch.arange(x[0].shape[2]) // 4
    cache = made(rule, x, n=len(doc), doc=doc)
    fixed = lt.rule(rule.text, data={"doc": doc.numpy()})
    whole, _ = reference(mask(fixed, n=len(doc)), *x)
    pieces = [attention(*part, rule, cache=cache) for part in cut(x, STEPS["pieces"])]
    torch.testing.assert_close(torch.cat(pieces, 2), whole)
    one = next(iter(cut(x, STEPS["ones"])))
    with pytest.raises(NamingError, match="doc is the cache's, which has it from the start; leave it out"):
        attention(*one, rule, cache=cache, doc=doc)
    with pytest.raises(TensorError, match="doc must hold whole numbers, got float32"):
        made(rule, x, n=len(doc), doc=doc.float())
    with pytest.raises(TensorError, match=r"doc has shape \(1, 41\), and doc\[q\] takes 1 axes: in a cache"):
        made(rule, x, n=len(doc), doc=doc[None])


def test_the_heads_of_a_call_are_those_of_the_cache():
    cache = lt.KVCache("causal", batch=1, heads=8, kv_heads=2, head_dim=4)
    q, k = torch.randn(1, 4, 1, 4), torch.randn(1, 2, 1, 4)
    with pytest.raises(TensorError, match="q has 4 heads, and the cache was made for 8"):
        cache.attend(q, k, k)
    with pytest.raises(TensorError, match="make it with kv_heads=2"):
        lt.KVCache("causal", batch=1, heads=8, head_dim=4).attend(q, k, k)
