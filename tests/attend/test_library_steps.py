"""Decoding steps that torch's own attention takes on a GPU: which they are, and that they are right.

Its functions are written out on the CPU; outputs are those of enumeration over the whole texts in float64.
"""

from __future__ import annotations

from typing import Any

import decode_oracle
import library_steps
import numpy as np
import pytest
import torch
from decode_oracle import Texts, cache_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from library_steps import Call
from torch import Tensor

import lattend as lt
from lattend.attend.decode import dynamic, fused_step, static
from lattend.attend.decode.step import Scoring
from lattend.attend.kernels import gpu_crossovers
from lattend.attend.kernels.triton.decode_step import clear_freed, is_for_cudnn, triton_step

RULES = decode_oracle.RULES
pytestmark = [  # of Triton's interpreter
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
DRAFT = 3


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    return library_steps.used(monkeypatch)


def fed(texts: Texts, cache: lt.KVCache, s: int, **options: Any) -> None:
    texts.feed(cache, [[texts.token() for _ in range(s)] for _ in texts.rows], **options)


# The first numbers are those of the past, the last of the new tokens' own


def test_a_draft_is_one_call_on_the_past_and_one_on_its_own_keys(calls: list[Call]) -> None:
    texts = Texts("k <= q", 2)
    cache = cache_of(texts)
    fed(texts, cache, 7)
    for past in (7, 7 + DRAFT):
        calls.clear()
        fed(texts, cache, DRAFT)
        assert calls == [("flash", past, False), ("flash", DRAFT, True)]


@pytest.mark.parametrize("rollback", [0, 4])
def test_so_is_a_draft_after_tokens_were_taken_back(calls: list[Call], rollback: int) -> None:
    texts = Texts("k <= q", 2)
    cache = cache_of(texts, rollback=rollback)
    fed(texts, cache, 9)
    for kept in (1, 0, 3, 2):
        start = len(texts.rows[0])
        fed(texts, cache, DRAFT)
        cache.crop(start + kept)
        for row in range(2):
            texts.crop(row, start + kept)
        calls.clear()
        fed(texts, cache, DRAFT)
        assert calls == [("flash", start + kept, False), ("flash", DRAFT, True)]


def test_kept_branches_leave_a_past_in_any_order(calls: list[Call]) -> None:
    texts = Texts("k <= q", 1)
    cache = cache_of(texts)
    fed(texts, cache, 5)
    fed(texts, cache, 4)
    cache.keep([1, 3])
    texts.keep(0, 4, [1, 3])
    for _ in range(2):
        fed(texts, cache, DRAFT)
    past = [size for name, size, causal in calls if name == "flash" and not causal]
    assert past[-1] == 5 + 2 + DRAFT


def test_a_window_that_no_draft_leaves_is_a_past_too(calls: list[Call]) -> None:
    texts = Texts("k <= q and q - k <= 20", 2)
    cache = cache_of(texts)
    fed(texts, cache, 6)
    for past in (6, 9, 12, 15, 18):
        calls.clear()
        fed(texts, cache, DRAFT)
        reached = past + DRAFT - 1 <= 20  # the last token attends to key 0
        assert calls == ([("flash", past, False), ("flash", DRAFT, True)] if reached else [])


@pytest.fixture
def cudnn_calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Calls of steps that cuDNN takes; those of static caches go through Triton's interpreter."""
    found = library_steps.used(monkeypatch, cudnn_rows=0)

    def steps(q: Tensor, k: Tensor, v: Tensor, slots: Any, how: Scoring) -> Any:
        if slots.state:
            return triton_step(q, slots, how) if is_for_cudnn(q, slots, how) else None
        return fused_step.library_step(q, v, slots, how)

    monkeypatch.setattr(dynamic, "at_once", steps)
    monkeypatch.setattr(static, "at_once", steps)
    return found


def test_cudnn_reads_a_rounded_number_of_slots_and_all_of_a_full_window(cudnn_calls: list[Call]) -> None:
    texts = Texts("k <= q", 2)
    cache = cache_of(texts)
    fed(texts, cache, 60)
    for _ in range(8):
        cudnn_calls.clear()
        fed(texts, cache, 1)
        assert cudnn_calls == [("cudnn", 64 if len(cache) <= 64 else 128, True)]
    texts = Texts("k <= q and q - k <= 69", 2)
    cache = cache_of(texts)
    fed(texts, cache, 62)
    for past in range(62, 75):
        cudnn_calls.clear()
        fed(texts, cache, 1)
        count = min(past + 1, 70)
        assert cudnn_calls == [
            ("cudnn", 64, True)
            if count <= 64
            else ("flash", count, False)
            if count < 70
            else ("cudnn", 70, False)
        ]  # 128 slots are not there


def test_a_buffer_that_is_full_once_has_no_number_of_its_own(cudnn_calls: list[Call]) -> None:
    cache, x = lt.KVCache("k <= q", batch=2, heads=4, head_dim=8, n=64), torch.randn(2, 4, 1, 8)
    for _ in range(64):
        cache.attend(x, x, x)
    assert cudnn_calls == [("cudnn", 64, True)] * 64


@pytest.mark.parametrize("made", [{}, {"static": True, "capacity": 64}])
def test_a_key_that_was_taken_back_leaks_nothing(cudnn_calls: list[Call], made: dict[str, Any]) -> None:
    x = torch.randn(2, 4, 20, 8)
    cache = lt.KVCache("k <= q", batch=2, heads=4, head_dim=8, **made)
    nan = torch.full((2, 4, 3, 8), torch.nan)
    for n in range(12):
        cache.attend(*(x[:, :, n : n + 1],) * 3)
        cache.attend(*(nan[:, :, : 1 + n % 3],) * 3)
        cache.crop(n + 1)
    for n in range(12, 20):
        cudnn_calls.clear()
        found = cache.attend(*(x[:, :, n : n + 1],) * 3)
        assert cudnn_calls == [("cudnn", 64, True)]
        wanted = lt.attention(
            x[:, :, : n + 1], x[:, :, : n + 1], x[:, :, : n + 1], "k <= q", kernel="reference"
        )
        torch.testing.assert_close(found, wanted[:, :, -1:], atol=1e-5, rtol=0)


def test_slots_of_keys_that_were_taken_back_are_cleared() -> None:
    cache = lt.KVCache(
        "k <= q", batch=3, heads=4, kv_heads=2, head_dim=8, value_dim=6, static=True, capacity=200
    )
    x = torch.full((3, 4, 190, 8), torch.nan)
    with torch.no_grad():
        cache.attend(x, x[:, :2], x[:, :2, :, :6])
    left = [190, 3, 120]
    cache.crop(torch.tensor(left))
    store: Any = cache._store  # pyright: ignore[reportPrivateUsage]
    clear_freed(store.keys, store.values, store.positions)
    for row, length in enumerate(left):
        for held in (cache.keys[row], cache.values[row]):
            assert held[:, :length].isnan().all()
            assert (held[:, length:] == 0).all()
        assert (store.positions[row, length:] == -1).all()


@pytest.mark.parametrize("made", [{}, {"static": True, "capacity": 64}])
def test_steps_in_and_out_of_inference_mode(cudnn_calls: list[Call], made: dict[str, Any]) -> None:
    cache, x = lt.KVCache("k <= q", batch=2, heads=4, head_dim=8, **made), torch.randn(2, 4, 6, 8)
    wanted = lt.attention(x, x, x, "k <= q", kernel="reference")
    for n in range(6):
        with torch.inference_mode(n % 3 < 2), torch.no_grad():
            found = cache.attend(*(x[:, :, n : n + 1],) * 3)
            torch.testing.assert_close(found, wanted[:, :, n : n + 1], atol=1e-5, rtol=0)
    assert len(cudnn_calls) == 6


STATIC = {"k <= q": {"capacity": 64}, "k <= q and q - k <= 63": {}}


@pytest.mark.parametrize("rule", STATIC)
def test_a_static_cache_reads_all_slots(cudnn_calls: list[Call], rule: str) -> None:
    texts = Texts(rule, 2)
    cache = cache_of(texts, static=True, dtype=torch.float32, **STATIC[rule])
    tokens = [[texts.token() for _ in range(size)] for size in (61, 58)]
    texts.feed(cache, tokens, np.arange(61) < np.array([[61], [58]]))  # rows of different lengths
    for _ in range(3):
        cudnn_calls.clear()
        fed(texts, cache, 1)
        assert cudnn_calls == [("cudnn", 64, True)]
    lengths = [64, 61]
    assert cache.lengths.tolist() == lengths
    if rule == "k <= q":  # the first row is full: NaN says that its first key is gone
        x = torch.randn(2, 4, 1, 8)
        found = cache.attend(x, x[:, :2], x[:, :2, :, :6])
        assert found[0].isnan().all()
        assert found[1].isfinite().all()
    else:
        for _ in range(5):
            fed(texts, cache, 1)


@pytest.mark.parametrize(
    ("rule", "made"),
    [
        ("k <= q", {"capacity": 72}),  # a bias whose rows are not aligned
        ("k <= q and q - k <= 31", {"capacity": 64}),  # keys outside of the window stay in slots
        ("k <= q and q - k <= 59", {"rollback": 4}),
        ("k <= q and k % 2 == 0", {"capacity": 64}),
        ("k < q", {"capacity": 64}),  # query 0 has no key
    ],
)
def test_other_static_caches_stay_ours(cudnn_calls: list[Call], rule: str, made: dict[str, Any]) -> None:
    texts = Texts(rule, 2)
    cache = cache_of(texts, static=True, dtype=torch.float32, **made)
    for _ in range(4):
        fed(texts, cache, 1)
    assert not cudnn_calls


@pytest.mark.parametrize("made", [{"static": True, "capacity": 64}, {}])
def test_cudnn_takes_rows_of_different_lengths(cudnn_calls: list[Call], made: dict[str, Any]) -> None:
    x = torch.randn(3, 2, 40, 8)
    q = x.repeat_interleave(2, 1)
    cache = lt.KVCache("k <= q", batch=3, heads=4, kv_heads=2, head_dim=8, **made)
    lengths = torch.tensor([30, 7, 19])
    cache.attend(q[:, :, :30], x[:, :, :30], x[:, :, :30], padding=lengths)
    texts = [x[row : row + 1, :, :size] for row, size in enumerate(lengths)]
    for s in (1, 1, 3, 1):
        cudnn_calls.clear()
        new = torch.randn(3, 2, s, 8)
        found = cache.attend(new.repeat_interleave(2, 1), new, new)
        assert cudnn_calls == [("cudnn", 64, True)]
        texts = [torch.cat([text, new[row : row + 1]], 2) for row, text in enumerate(texts)]
        for row, text in enumerate(texts):
            keys = text.repeat_interleave(2, 1)
            wanted = lt.attention(keys, keys, keys, "k <= q", kernel="reference")[:, :, -s:]
            torch.testing.assert_close(found[row : row + 1], wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize("rule", ["sinks", "dilated", "even keys", "columns", "heads", "before"])
def test_other_rules_stay_ours(calls: list[Call], rule: str) -> None:
    texts = Texts(RULES[rule], 2)
    cache = cache_of(texts)
    fed(texts, cache, 9)
    for s in (DRAFT, 1, DRAFT):
        fed(texts, cache, s)
    assert not calls


def test_a_bias_a_softcap_and_a_negative_scale_stay_ours(calls: list[Call]) -> None:
    x = torch.randn(1, 4, DRAFT, 8)
    options: list[dict[str, Any]] = [
        {"bias": lt.Bias.alibi(4)}, {"softcap": 2.0}, {"scale": -1.0}, {"scale": 0.0}
    ]  # fmt: skip
    for how in options:
        cache = lt.KVCache("k <= q", batch=1, heads=4, head_dim=8)
        for _ in range(3):
            cache.attend(x, x, x, **how)
        assert not calls, how


def test_rows_of_different_lengths_and_padded_tokens_stay_ours(calls: list[Call]) -> None:
    texts = Texts("k <= q", 2)
    cache = cache_of(texts)
    fed(texts, cache, 5)
    texts.feed(
        cache, [[texts.token() for _ in range(size)] for size in (2, 2)], np.array([[1, 1, 0]] * 2, bool)
    )
    texts.feed(
        cache,
        [[texts.token() for _ in range(size)] for size in (3, 1)],
        np.array([[1, 1, 1], [1, 0, 0]], bool),
    )
    fed(texts, cache, DRAFT)
    assert not calls


def test_sinks_take_part(calls: list[Call]) -> None:
    x, sinks = [torch.randn(2, heads, 9, 8).double() for heads in (4, 2, 2)], torch.randn(4)
    attend: Any = lt.attention
    cache = lt.KVCache("k <= q", batch=2, heads=4, kv_heads=2, head_dim=8, dtype=torch.float64)
    parts = [
        attend(*(y[:, :, cut] for y in x), "k <= q", cache=cache, sinks=sinks)
        for cut in (slice(0, 5), slice(5, 9))
    ]
    wanted = attend(*x, "k <= q", sinks=sinks, kernel="reference")
    torch.testing.assert_close(torch.cat(parts, 2), wanted, atol=1e-12, rtol=0)
    assert [name for name, *_ in calls] == ["flash"] * 2


def test_below_the_crossover_all_stay_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = library_steps.used(monkeypatch, numbers=2 * 2 * 8 * 10)  # batch, kv heads, D, keys
    texts = Texts("k <= q", 2)
    cache = cache_of(texts)
    fed(texts, cache, 4)
    for past in (4, 7, 10):
        calls.clear()
        fed(texts, cache, DRAFT)
        assert bool(calls) == (past >= 10)


FIXTURE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@given(st.sampled_from(sorted(RULES)), st.lists(st.integers(-4, 6), max_size=12), st.sampled_from([0, 4]))
@settings(max_examples=60, deadline=None, suppress_health_check=FIXTURE)
def test_any_sequence_of_drafts(calls: list[Call], rule: str, sizes: list[int], rollback: int) -> None:
    """Tokens that come, and below 0 tokens that are taken back where the cache allows it."""
    texts = Texts(RULES[rule], 2)
    cache, back = cache_of(texts, rollback=rollback), 0
    for size in sizes:
        if size > 0:
            fed(texts, cache, size)
            back = max(0, back - size)
        elif size and back - size <= rollback:
            cache.crop(size)
            back -= size
            for row in range(2):
                texts.crop(row, size)


def test_crossovers_are_measured_numbers() -> None:
    keys = torch.empty(4, 8, 1, 128, device="meta")
    assert gpu_crossovers.cached_keys("token", keys) == (1 << 24) / (4 * 8 * 128)
    assert gpu_crossovers.cached_keys("draft", keys) == 0
    assert not gpu_crossovers.cudnn_decodes(torch.empty(16, 8, 1, 128, device="meta"))
    assert gpu_crossovers.cudnn_decodes(torch.empty(32, 8, 1, 128, device="meta"))


# The functions themselves


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets cuDNN take every step that it can on a GPU, however short the text."""
    known = gpu_crossovers.measured() | {"decoding": {"token": 0, "draft": 0, "cudnn rows": 0}}
    monkeypatch.setattr(gpu_crossovers, "measured", lambda: known)


gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch's functions for GPUs run on one")
CACHES: dict[str, tuple[str, dict[str, Any]]] = {
    "dynamic": ("k <= q", {}),
    "dynamic window": ("k <= q and q - k <= 63", {}),
    "static": ("k <= q", {"static": True, "capacity": 192}),
    "static window": ("k <= q and q - k <= 63", {"static": True}),
}


def rows_of(rule: str, x: Tensor, s: int) -> Tensor:
    """The last s outputs of attention over the whole text, [batch, 8, s, D], in float64."""
    q, x = x.double().cpu(), x.double().cpu()[:, ::4].repeat_interleave(4, 1)
    return lt.attention(q, x, x, rule, kernel="reference")[:, :, -s:]


@gpu
@pytest.mark.parametrize("name", CACHES)
@pytest.mark.parametrize("width", [64, 128])
def test_on_a_gpu_each_step_is_a_row_of_the_whole_text(always: None, name: str, width: int) -> None:
    rule, made = CACHES[name]
    kind: dict[str, Any] = {"dtype": torch.bfloat16, "device": "cuda"}
    x = torch.randn(2, 8, 150, width, **kind)
    cache = lt.KVCache(rule, batch=2, heads=8, kv_heads=2, head_dim=width, **kind, **made)
    nan, done = torch.full_like(x[:, :, :3], torch.nan), 0
    for index, s in enumerate([40, *[1] * 20, 4, 1, 1, 16, *[1] * 30, 3, *[1] * 30]):
        new = x[:, :, done : done + s]
        with torch.no_grad():
            found = cache.attend(new, new[:, ::4], new[:, ::4])
            done += s
            torch.testing.assert_close(
                found.double().cpu(), rows_of(rule, x[:, :, :done], s), atol=3e-2, rtol=0
            )
            if index % 4 == 1 and "window" not in name:  # tokens that are taken back
                cache.attend(nan, nan[:, ::4], nan[:, ::4])
                cache.crop(done)


@gpu
@pytest.mark.parametrize("name", ["static", "static window"])
def test_on_a_gpu_a_captured_step_repeats(always: None, name: str) -> None:
    rule, made = CACHES[name]
    kind: dict[str, Any] = {"dtype": torch.bfloat16, "device": "cuda"}
    x = torch.randn(2, 8, 192, 128, **kind)
    cache = lt.KVCache(rule, batch=2, heads=8, kv_heads=2, head_dim=128, **kind, **made)
    given = torch.empty(2, 8, 1, 128, **kind)

    def step() -> Tensor:
        return cache.attend(given, given[:, ::4], given[:, ::4])

    with torch.no_grad():
        cache.attend(x[:, :, :90], x[:, ::4, :90], x[:, ::4, :90])
        for n in range(90, 93):
            given.copy_(x[:, :, n : n + 1])
            step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = step()
        for n in range(93, 192):
            given.copy_(x[:, :, n : n + 1])
            graph.replay()
            wanted = rows_of(rule, x[:, :, : n + 1], 1)
            torch.testing.assert_close(found.double().cpu(), wanted, atol=3e-2, rtol=0)
        graph.replay()
    full = rule == "k <= q"  # its first key is gone
    assert found.isnan().all() if full else found.isfinite().all()


@gpu
@pytest.mark.parametrize("name", ["dynamic", "static"])
def test_on_a_gpu_rows_have_lengths_of_their_own(always: None, name: str) -> None:
    rule, made = CACHES[name]
    kind: dict[str, Any] = {"dtype": torch.bfloat16, "device": "cuda"}
    x = torch.randn(3, 8, 60, 128, **kind)
    cache = lt.KVCache(rule, batch=3, heads=8, kv_heads=2, head_dim=128, **kind, **made)
    sizes = [60, 7, 33]
    with torch.no_grad():
        cache.attend(x, x[:, ::4], x[:, ::4], padding=torch.tensor(sizes))
        texts = [x[row : row + 1, :, :size] for row, size in enumerate(sizes)]
        for s in (1, 1, 1, 4, 1, 1):
            new = torch.randn(3, 8, s, 128, **kind)
            found = cache.attend(new, new[:, ::4], new[:, ::4])
            texts = [torch.cat([text, new[row : row + 1]], 2) for row, text in enumerate(texts)]
            for row, text in enumerate(texts):
                wanted = rows_of(rule, text, s)
                torch.testing.assert_close(found[row : row + 1].double().cpu(), wanted, atol=3e-2, rtol=0)
