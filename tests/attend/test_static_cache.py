"""A static cache: the rows of the whole text, and a step that is the same at every length."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from decode_oracle import (
    DOCUMENTS,
    HEAD_DIM,
    HEADS,
    KV_HEADS,
    ROLLBACK,
    RULES,
    VALUE_DIM,
    Texts,
    cache_of,
    cache_rule,
)
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils._python_dispatch import TorchDispatchMode

import lattend as lt
from lattend.attend.decode.step import Scoring, attend
from lattend.errors import DomainError, LattendError, NamingError, TensorError

CAPACITY = 128
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GROWING = ("causal", "columns", "documents")
TEXTS = {**RULES, "documents": DOCUMENTS}


def static(texts: Texts, name: str, **options: Any) -> lt.KVCache:
    room = {"capacity": CAPACITY} if name in GROWING else {}
    return cache_of(texts, static=True, **{"rollback": ROLLBACK, **room, **options})


FIXED: dict[str, tuple[str, dict[str, Any]]] = {
    "documents": ("k <= q and doc[q] == doc[k]", {"doc": np.repeat(np.arange(6), 4)}),
    "a window in documents": ("k <= q and q - k <= 5 and doc[q] == doc[k]", {"doc": np.arange(24) // 9}),
    "blocks": ("k <= q and layout[head, q // 8, k // 8]", {"layout": np.arange(36).reshape(4, 3, 3) % 5 > 1}),
    "reach": ("k <= q and q - k <= min(3, reach[other[k]])", {"reach": np.arange(24) % 5}),
}
FIXED["reach"][1]["other"] = np.arange(24)[::-1].copy()


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_of_a_fixed_length(name: str, compiled: bool) -> None:
    text, data = FIXED[name]
    rule = lt.rule(text, data=data)
    draw = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(2, 4, 24, 8, generator=draw, dtype=torch.float64) for _ in range(3))
    whole = lt.attention(q, k, v, rule, kernel="reference").to(DEVICE)
    q, k, v = (x.to(DEVICE) for x in (q, k, v))
    kind: dict[str, Any] = {"dtype": torch.float64, "device": DEVICE}
    cache = lt.KVCache(rule, batch=2, heads=4, head_dim=8, static=True, n=24, **kind)
    run = torch.compile(cache.attend, fullgraph=True, backend="eager") if compiled else cache.attend
    for i in range(24):
        with nullcontext() if compiled else NoWaiting():
            found = run(*(x[:, :, i : i + 1] for x in (q, k, v)))
        torch.testing.assert_close(found, whole[:, :, i : i + 1])
    assert run(*(x[:, :, :1] for x in (q, k, v))).isnan().all()  # beyond the arrays


@pytest.mark.parametrize("name", ["window", "sinks", "even keys"])
def test_prompts_longer_than_the_ring(name: str) -> None:
    texts = Texts(RULES[name], 2)
    cache = static(texts, name, rollback=0)
    real = np.arange(40) < np.array([[40], [23]])
    texts.feed(cache, [[texts.token() for _ in range(size)] for size in (40, 23)], real)
    for size in (1, 1, 30, 1):  # the third is a prompt after a past
        texts.feed(cache, [[texts.token() for _ in range(size)] for _ in range(2)])
    assert cache.capacity == {"window": 6, "sinks": 6, "even keys": 6}[name]


def test_rows_keep_paths_of_different_lengths_of_a_draft_longer_than_the_ring() -> None:
    texts = Texts("k <= q and q - k <= 2", 2)
    cache = cache_of(texts, static=True, rollback=3)
    drafts = [[texts.token() for _ in range(size)] for size in (9, 3)]
    texts.feed(cache, drafts, np.arange(9) < np.array([[9], [3]]))
    assert cache.capacity == 6
    cache.keep([list(range(9)), [2]])
    texts.keep(1, 3, [2])
    assert cache.positions_of(1).tolist() == [0]
    texts.feed(cache, [[texts.token()] for _ in range(2)])


# The same step at every length


def numbers(batch: int, s: int, draw: torch.Generator) -> list[Tensor]:
    sizes = ((HEADS, HEAD_DIM), (KV_HEADS, HEAD_DIM), (KV_HEADS, VALUE_DIM))
    return [torch.randn(batch, heads, s, size, generator=draw) for heads, size in sizes]


def step_of(name: str, cache: lt.KVCache, rule: lt.Rule) -> Callable[..., Tensor]:
    """One step of a layer; with entries for documents."""

    def step(q: Tensor, k: Tensor, v: Tensor, doc: Tensor) -> Tensor:
        given: dict[str, Any] = {"doc": doc} if name == "documents" else {}
        return 2 * lt.attention(q + 0, k, v, rule, cache=cache, **given)

    return step


@pytest.mark.parametrize("name", ["causal", "window", "sinks", "heads", "documents"])
def test_it_compiles_once_and_for_all_lengths(name: str) -> None:
    texts = Texts(TEXTS[name], 2, ("doc",) if name == "documents" else ())
    cache, plain = (static(texts, name, dtype=torch.float32) for _ in range(2))
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    rule = cache_rule(texts)
    compiled = torch.compile(step_of(name, cache, rule), backend=counter, fullgraph=True)
    eager, draw = step_of(name, plain, rule), torch.Generator().manual_seed(0)
    for i in range(20):
        given = (*numbers(2, 1, draw), torch.tensor([[i // 4], [i // 7]]))
        torch.testing.assert_close(compiled(*given), eager(*given), atol=1e-5, rtol=1e-5)
        if i % 6 == 5:  # what is done between steps does not compile again
            for one in (cache, plain):
                one.crop([-1, -2])
    assert counter.frame_count == 1
    assert cache.lengths.tolist() == plain.lengths.tolist() == [17, 14]


class NoWaiting(TorchDispatchMode):
    """Refuses what a GPU would have to be waited for, or whose shape depends on numbers."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name()
        if any(x in name for x in ("_local_scalar_dense", "nonzero", "masked_select", "unique")):
            raise AssertionError(f"{name} waits for the device")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("s", [1, 4])
def test_a_step_waits_for_nothing_and_its_tensors_stay(name: str, s: int) -> None:
    texts = Texts(TEXTS[name], 2, ("doc",) if name == "documents" else ())
    cache, draw = static(texts, name, dtype=torch.float32), torch.Generator().manual_seed(0)
    run = step_of(name, cache, cache_rule(texts))
    there = {key: x.data_ptr() for key, x in vars(cache._store).items() if isinstance(x, Tensor)}
    shapes = set[tuple[int, ...]]()
    given = [(*numbers(2, s, draw), torch.zeros(2, s, dtype=torch.int64)) for _ in range(5)]
    path, lengths = torch.tensor([[0], [-1]]), torch.tensor([-1, 0])
    lengths[1] = 1000
    with NoWaiting():
        for one in given:
            shapes.add(tuple(run(*one).shape))
            cache.keep(path)
            run(*one)
            cache.crop(lengths)
    assert there == {key: x.data_ptr() for key, x in vars(cache._store).items() if isinstance(x, Tensor)}
    assert len(shapes) == 1 and cache.lengths.tolist() == [5 * s, 5 * s]


def test_a_compiled_draft_is_kept_and_rolled_back_inside_the_program() -> None:
    rule = lt.rule("k <= q and q <= last[k]", data={"last": None})
    sizes: dict[str, Any] = {"batch": 1, "heads": 2, "head_dim": 8, "dtype": torch.float64}
    cache = lt.KVCache(rule, static=True, capacity=64, **sizes)
    plain = lt.KVCache("causal", **sizes)
    draw = torch.Generator().manual_seed(0)

    def verify(x: Tensor, last: Tensor, path: Tensor) -> Tensor:
        out = lt.attention(x, x, x, rule, cache=cache, last=last)
        cache.keep(path, last=2**31)
        return out

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(verify, backend=counter, fullgraph=True)
    for i in range(6):  # a root with two branches of one: 0 -> 1, 0 -> 2
        x = torch.randn(1, 2, 3, 8, generator=draw, dtype=torch.float64)
        start = 2 * i
        out = compiled(x, torch.tensor([start + 2, start + 1, start + 2]), torch.tensor([[0, 1 + i % 2]]))
        path = [0, 1 + i % 2]
        wanted = plain.attend(*[x[:, :, path]] * 3)
        torch.testing.assert_close(out[:, :, path], wanted, atol=1e-12, rtol=0)
    assert counter.frame_count == 1 and cache.lengths.tolist() == [12]


# What it cannot do


def test_beyond_its_room_outputs_are_not_numbers() -> None:
    x = torch.ones(1, 2, 1, 8)
    cache = lt.KVCache("causal", batch=1, heads=2, head_dim=8, static=True, capacity=4)
    outs = [lt.attention(x, x, x, "causal", cache=cache) for _ in range(6)]
    assert [bool(out.isnan().all()) for out in outs] == [False] * 4 + [True] * 2
    cache.reset()
    assert not lt.attention(x, x, x, "causal", cache=cache).isnan().any()
    window = lt.KVCache("strided(3)", batch=1, heads=2, head_dim=8, static=True, rollback=2)
    for _ in range(20):
        assert not lt.attention(x, x, x, "strided(3)", cache=window).isnan().any()
    window.crop(-3)  # the last key that query 17 reaches is still there
    assert not lt.attention(x, x, x, "strided(3)", cache=window).isnan().any()
    window.crop(-2)
    assert lt.attention(x, x, x, "strided(3)", cache=window).isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("s", [1, 2])
def test_where_a_key_is_gone_the_log_sum_exp_is_not_a_number_either(dtype: torch.dtype, s: int) -> None:
    x = torch.ones(1, 2, 5, 8, dtype=dtype)
    cache = lt.KVCache("strided(3)", batch=1, heads=2, head_dim=8, static=True, dtype=dtype)
    cache.attend(x, x, x)
    cache.crop(1)
    out, lse = cache.attend(*[x[:, :, :s]] * 3, return_lse=True)
    assert out.isnan().all() and lse.isnan().all()


def test_refusals_say_why() -> None:
    sizes: dict[str, Any] = {"batch": 2, "heads": 2, "head_dim": 8}
    with pytest.raises(LattendError, match="the number of keys grows with the text: give capacity=…, or n=…"):
        lt.KVCache("causal", static=True, **sizes)
    assert lt.KVCache("causal", static=True, n=20, **sizes).capacity == 20
    with pytest.raises(DomainError, match="capacity = 7: this rule, with rollback = 4, needs 8"):
        lt.KVCache("strided(3)", static=True, capacity=7, rollback=4, **sizes)
    with pytest.raises(
        NamingError, match="capacity is for static=True; without it a cache makes the room it"
    ):
        lt.KVCache("causal", capacity=7, **sizes)
    both = lt.rule("k <= q and near[q - k]", data={"near": np.ones(7, bool)})
    with pytest.raises(LattendError, match=r"near\[q - k\]. In a static cache an index is of q or of k, not"):
        lt.KVCache(both, static=True, n=7, **sizes)
    with pytest.raises(DomainError, match=r"doc\[q\] is read at q = 8, outside the doc given \(0 … 6\)"):
        doc = np.zeros(7, int)
        lt.KVCache(lt.rule("doc[q] == 0 and k <= q", data={"doc": doc}), static=True, n=9, **sizes)
    with pytest.raises(LattendError, match="has numbers that may pass 64 bits, or a divisor that may be 0"):
        lt.KVCache("k <= q and q % (k + 1) == 0", static=True, n=7, **sizes)
    cache = lt.KVCache("causal", static=True, capacity=7, **sizes)
    with pytest.raises(NamingError, match="static is True or False, not 'yes'"):
        lt.KVCache("causal", static="yes", **sizes)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TensorError, match=r"crop takes one length, or 2 for the rows, got shape \(3,\)"):
        cache.crop(torch.tensor([1, 2, 3]))
    with pytest.raises(
        TensorError, match=r"keep takes a tensor \(a\) or \(2, a\) of tokens, got shape \(3, 1\)"
    ):
        cache.keep(torch.zeros(3, 1, dtype=torch.int64))
    with pytest.raises(DomainError, match=r"numbered from 0, in order; got \[1, 0\]"):
        cache.keep([1, 0])
    with pytest.raises(TensorError, match="rows are a list of numbers, got 0"):
        cache.reset(0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DomainError, match="there is no row 2; rows are 0 to 1"):
        cache.select([0, 2])
    with pytest.raises(DomainError, match="a static cache keeps its batch of 2; got 3 rows"):
        cache.select([0, 1, 1])
    x = torch.zeros(2, 2, 8, 8)
    with pytest.raises(DomainError, match="8 new positions are more than the capacity of this cache, 7"):
        lt.attention(x, x, x, "causal", cache=cache)


# With a bias, a softcap and sinks


def test_scores_are_made_as_in_attention() -> None:
    draw = torch.Generator().manual_seed(3)
    rule, bias = lt.rule("k <= q and q - k <= 9"), lt.Bias.alibi(HEADS)
    x = [part.double() for part in numbers(2, 30, draw)]
    how: dict[str, Any] = {"bias": bias, "softcap": 2.0, "sinks": torch.ones(HEADS).double(), "scale": 0.3}
    wanted = lt.attention(x[0], x[1], x[2], rule, **how)
    sizes = {"kv_heads": KV_HEADS, "value_dim": VALUE_DIM, "dtype": torch.float64}
    cache = lt.KVCache(rule, batch=2, heads=HEADS, head_dim=HEAD_DIM, static=True, **sizes)  # pyright: ignore
    found = []
    for start, end in ((0, 18), (18, 19), (19, 20), (20, 29), (29, 30)):
        q, k, v = (part[:, :, start:end] for part in x)
        found.append(lt.attention(q, k, v, rule, cache=cache, **how))
    torch.testing.assert_close(torch.cat(found, 2), wanted, atol=1e-12, rtol=0)


OPTIONS: dict[str, dict[str, Any]] = {
    "bias": {"bias": lt.Bias.alibi(HEADS)},
    "bias of rows": {
        "bias": lt.Bias("x[batch, head]*(q - k)", x=torch.linspace(-1, 1, 2 * HEADS).view(2, -1))
    },
    "softcap and sinks": {"softcap": 2.0, "sinks": torch.ones(HEADS)},
    "padding": {"padding": torch.tensor([1, 0])},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_scores_are_made_so_in_one_program(name: str) -> None:
    rule, draw = lt.rule("k <= q and q - k <= 9"), torch.Generator().manual_seed(3)
    sizes: dict[str, Any] = {"kv_heads": KV_HEADS, "value_dim": VALUE_DIM, "head_dim": HEAD_DIM}
    cache, plain = (lt.KVCache(rule, batch=2, heads=HEADS, static=x, **sizes) for x in (True, False))

    def step(q: Tensor, k: Tensor, v: Tensor, cache: lt.KVCache) -> Tensor:
        return lt.attention(q, k, v, rule, cache=cache, **OPTIONS[name])

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(step, backend=counter, fullgraph=True)
    for _ in range(13):
        q, k, v = numbers(2, 1, draw)
        torch.testing.assert_close(compiled(q, k, v, cache), step(q, k, v, plain), atol=1e-5, rtol=1e-5)
    assert counter.frame_count == 1


# On a GPU

ON_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
KINDS = {torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 5e-3}


def both(name: str, dtype: torch.dtype) -> tuple[lt.KVCache, lt.KVCache, lt.Rule]:
    """A static cache, and another, on the GPU."""
    texts = Texts(TEXTS[name], 2)
    options: dict[str, Any] = {"dtype": dtype, "device": "cuda"}
    return static(texts, name, **options), cache_of(texts, rollback=ROLLBACK, **options), cache_rule(texts)


@ON_GPU
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ["causal", "window", "sinks", "heads"])
def test_a_cuda_graph_runs_every_step(name: str, dtype: torch.dtype) -> None:
    cache, plain, rule = both(name, dtype)
    draw = torch.Generator().manual_seed(0)
    q, k, v = (x.to("cuda", dtype) for x in numbers(2, 1, draw))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            lt.attention(q, k, v, rule, cache=cache)
    torch.cuda.current_stream().wait_stream(side)
    cache.reset()
    prompt = [x.to("cuda", dtype) for x in numbers(2, 20, draw)]
    for one in (cache, plain):
        lt.attention(prompt[0], prompt[1], prompt[2], rule, cache=one)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = lt.attention(q, k, v, rule, cache=cache)
    for i in range(40):
        given = [x.to("cuda", dtype) for x in numbers(2, 1, draw)]
        for into, x in zip((q, k, v), given, strict=True):
            into.copy_(x)
        graph.replay()
        wanted = lt.attention(given[0], given[1], given[2], rule, cache=plain)
        torch.testing.assert_close(out, wanted, atol=KINDS[dtype], rtol=KINDS[dtype])
        if i % 10 == 9:  # between steps, the same graph goes on
            for one in (cache, plain):
                one.crop(-2)
    assert cache.lengths.tolist() == plain.lengths.tolist() == [52, 52]


@ON_GPU
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")  # the first one, which torch itself makes
@pytest.mark.parametrize("name", ["causal", "window"])
def test_reduce_overhead_runs_every_step(name: str) -> None:
    cache, plain, rule = both(name, torch.bfloat16)
    torch._dynamo.reset()
    step = torch.compile(step_of(name, cache, rule), mode="reduce-overhead", fullgraph=True)
    draw, doc = torch.Generator().manual_seed(0), torch.zeros(2, 1, device="cuda")
    with torch.no_grad():
        for _ in range(30):
            q, k, v = (x.to("cuda", torch.bfloat16) for x in numbers(2, 1, draw))
            found = step(q, k, v, doc).clone()
            wanted = 2 * lt.attention(q, k, v, rule, cache=plain)
            torch.testing.assert_close(found, wanted, atol=6e-2, rtol=3e-2)
    assert cache.lengths.tolist() == [30, 30]


@ON_GPU
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("s", [1, 5, 16, 17])
def test_few_masked_queries_on_a_gpu(s: int, dtype: torch.dtype) -> None:
    draw = torch.Generator().manual_seed(s)
    q, k, v = (
        torch.randn(2, heads, size, 64, generator=draw) for heads, size in ((8, s), (2, 300), (2, 300))
    )
    mask = torch.rand(2, 1, s, 300, generator=draw) < 0.5
    mask[1, 0, 0] = False
    given = [x.to("cuda", dtype) for x in (q, k, v)]
    out, _ = attend(given[0], given[1], given[2], mask.cuda(), Scoring(0.125))
    exact = [x.double().cpu() for x in given]
    wanted, _ = attend(exact[0], exact[1], exact[2], mask, Scoring(0.125))
    torch.testing.assert_close(out.double().cpu(), wanted, atol=KINDS[dtype], rtol=KINDS[dtype])
