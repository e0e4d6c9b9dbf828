"""Steps of decoding that are taken at once, by compiled code, by launches or on views.

Each row is that of attention over the whole text, in float64 and without a cache.
"""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple, cast

import decode_oracle
import library_steps
import pytest
import random_rules
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import lattend as lt
from lattend.attend.call.tensor_terms import evaluate
from lattend.attend.decode import dynamic, static, step
from lattend.attend.decode.fused_step import LibraryStep, library_step
from lattend.attend.decode.step import Scoring, Slots
from lattend.attend.kernels.native import library
from lattend.attend.kernels.native.decode_step import native_step
from lattend.attend.kernels.native.program import MAX_DEPTH, NoProgram, program
from lattend.attend.kernels.triton.decode_step import TritonStep, is_for_cudnn, triton_step
from lattend.attend.kernels.triton.source import generated_step
from lattend.attend.replay import host
from lattend.errors import TensorError
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Compare, Condition, Name, Num
from lattend.rules.language.parser import parse, parse_term

BATCH, HEADS = 2, 4
# those for which every cache here has room: of `columns` ever more keys stay
RULES = {name: text for name, text in decode_oracle.RULES.items() if name != "columns"}
BIASES: dict[str, Callable[[torch.Generator], lt.Bias | None]] = {
    "none": lambda draw: None,
    "alibi": lambda draw: lt.Bias.alibi(HEADS),
    "relative": lambda draw: lt.Bias.relative(torch.randn(HEADS, 7, generator=draw)),
    "quadratic": lambda draw: lt.Bias.quadratic(torch.rand(HEADS), torch.randn(HEADS, 1, generator=draw)),
    "whole numbers": lambda draw: lt.Bias("min(q % 3, 2) - abs(k - 7) // 2"),
    "elements": lambda draw: lt.Bias(
        "a * b[batch, head] * (q - k)", a=torch.tensor(0.25), b=torch.randn(HEADS, BATCH, generator=draw).mT
    ),
    "half": lambda draw: lt.Bias("-slope[head]*(q - k)", slope=torch.rand(HEADS, generator=draw).bfloat16()),
}
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}
pytestmark = [  # of Triton's interpreter
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
INTERPRETED = "Triton's interpreter is for machines without a GPU"
interpreted = pytest.mark.skipif(torch.cuda.is_available(), reason=INTERPRETED)
built = pytest.mark.skipif(library.missing() is not None, reason="the native kernel was not built")


# Ways to take a step


def by_triton(q: Tensor, k: Tensor, v: Tensor, slots: Slots, how: Scoring) -> TritonStep:
    """The launches of a GPU, by Triton's interpreter."""
    found = triton_step(q, slots, how)
    assert found is not None
    return found


def by_library(
    q: Tensor, k: Tensor, v: Tensor, slots: Slots, how: Scoring
) -> LibraryStep | TritonStep | None:
    """Calls of torch's own attention, as library_steps makes them."""
    if slots.state:
        return triton_step(q, slots, how) if is_for_cudnn(q, slots, how) else None
    return library_step(q, v, slots, how)


# For a dynamic cache, "library" is FlashAttention and "cudnn" is cuDNN; for a static one both are cuDNN
WAYS = ["triton", "library", "cudnn", *library.NAMES]
FIXTURE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """How steps are taken: as on a GPU, or by the compiled code of one of its levels."""
    name: str = request.param
    if name in library.NAMES and (library.missing() is not None or name not in library.levels()):
        pytest.skip("it was not built, or this processor does not run it")
    if name not in library.NAMES and torch.cuda.is_available():
        pytest.skip(INTERPRETED)
    if name not in library.NAMES:
        run = by_triton if name == "triton" else by_library
        if name != "triton":
            library_steps.used(monkeypatch, cudnn_rows=0 if name == "cudnn" else inf)
        monkeypatch.setattr(dynamic, "at_once", run)
        monkeypatch.setattr(static, "at_once", run)
        copied = dynamic.DynamicStore._copied  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(dynamic.DynamicStore, "_where", copied)
    with library.at_level(name) if name in library.NAMES else nullcontext():
        yield name


# Sequences of steps


class Text(NamedTuple):
    """What is decoded: a rule and a bias, the kind of the cache, and what is asked of its scores."""

    rule: str
    bias: str
    dtype: torch.dtype
    kv_heads: int
    dims: tuple[int, int]
    made: dict[str, Any]
    options: dict[str, Any]


TEXTS = st.builds(
    Text,
    rule=st.sampled_from(sorted(RULES)),
    bias=st.sampled_from(sorted(BIASES)),
    dtype=st.sampled_from([torch.float32, torch.float32, torch.bfloat16, torch.float16]),
    kv_heads=st.sampled_from([1, 2, 4]),
    dims=st.sampled_from([(8, 8), (16, 16), (7, 5), (24, 40)]),
    made=st.sampled_from([{}, {"rollback": 3}, {"static": True}, {"static": True, "rollback": 3}]),
    options=st.sampled_from([{}, {}, {"softcap": 2.0}, {"scale": -0.5}, {"return_lse": True}]),
)
ACTIONS = st.lists(st.sampled_from(["step"] * 6 + ["other", "prompt", "back", "rows", "new"]), max_size=24)


def played(text: Text, actions: list[str], seed: int, device: str = "cpu") -> None:
    """Every output of a cache that is played with is that of attention over the whole texts."""
    draw = torch.Generator().manual_seed(seed)
    made = {**text.made, "capacity": 64} if text.made.get("static") and text.rule == "causal" else text.made
    cache = lt.KVCache(
        RULES[text.rule], batch=BATCH, heads=HEADS, kv_heads=text.kv_heads, head_dim=text.dims[0],
        value_dim=text.dims[1], dtype=text.dtype, device=device, **made,
    )  # fmt: skip
    sizes = (HEADS, text.dims[0]), (text.kv_heads, text.dims[0]), (text.kv_heads, text.dims[1])
    attend: Any = lt.attention
    past = [torch.zeros(BATCH, heads, 0, size, dtype=text.dtype) for heads, size in sizes]
    bias, back = BIASES[text.bias](draw), 0
    there = None if bias is None else lt.Bias(bias.text, **{n: x.to(device) for n, x in bias.tensors.items()})
    for action in actions:
        if action == "back":
            if text.made.get("rollback", 0) > back and past[0].shape[2]:
                cache.crop(-1)
                past, back = [x[:, :, :-1] for x in past], back + 1
            continue
        if action == "rows":
            cache.select([1, 0])
            past = [x[[1, 0]] for x in past]
            continue
        if action == "new":
            cache.reset()
            past, back = [x[:, :, :0] for x in past], 0
            continue
        s = 3 if action == "prompt" else 1
        new = [torch.randn(BATCH, h, s, size, generator=draw).to(text.dtype) for h, size in sizes]
        past = [torch.cat(pair, 2) for pair in zip(past, new, strict=True)]
        back = max(0, back - s)
        options = {**text.options, "return_lse": True} if action == "other" else text.options
        plain = action == "other"  # steps of several kinds, one after another
        given = [x.to(device) for x in new]
        with torch.no_grad():
            found = attend(*given, RULES[text.rule], cache=cache, bias=None if plain else there, **options)
        wanted = expected(text, past, None if plain else bias, options, s)
        close(found, wanted, TOLERANCE[text.dtype] * (1 if device == "cpu" else 3))


@lru_cache(maxsize=512)
def attended(rule: str, n: int) -> Tensor:
    """The attended pairs, [n, n] or [heads, n, n], by enumeration."""
    found = lt.rule(RULES[rule])
    return torch.from_numpy(found.mask(**{name: {"n": n, "heads": HEADS}[name] for name in found.free}))


def expected(
    text: Text, past: list[Tensor], bias: lt.Bias | None, options: dict[str, Any], s: int
) -> tuple[Tensor, Tensor]:
    """The last rows of attention over the whole text, all of it in float64."""
    (q, k, v), n = (x.double() for x in past), past[0].shape[2]
    q, k, v = q[:, :, n - s :], *(x.repeat_interleave(HEADS // text.kv_heads, 1) for x in (k, v))
    scores = q @ k.mT * options.get("scale", text.dims[0] ** -0.5)
    if "softcap" in options:
        scores = options["softcap"] * (scores / options["softcap"]).tanh()
    if bias is not None:
        at = {"q": torch.arange(n - s, n)[:, None], "k": torch.arange(n)}
        at |= {"head": torch.arange(HEADS)[:, None, None], "batch": torch.arange(BATCH)[:, None, None, None]}
        tensors = {name: x.float().double() for name, x in bias.tensors.items()}
        scores = scores + evaluate(bias.term, at, tensors)
    scores = scores.masked_fill(~attended(text.rule, n)[..., n - s :, :], -torch.inf)
    lse = scores.logsumexp(-1)
    return (scores - lse.masked_fill(lse == -torch.inf, 0)[..., None]).exp() @ v, lse


def close(found: Any, wanted: tuple[Tensor, Tensor], tolerance: float) -> None:
    for one, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=False):
        torch.testing.assert_close(one.double().cpu(), other, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "triton"], indirect=True)
@given(text=TEXTS, actions=ACTIONS, seed=st.integers(0, 2**20))
@settings(max_examples=40, deadline=None, suppress_health_check=FIXTURE)
def test_every_step_gives_the_rows_of_the_whole_text(
    way: str, text: Text, actions: list[str], seed: int
) -> None:
    played(text, [*actions, "step", "step"], seed)


@pytest.mark.parametrize("way", ["triton"], indirect=True)
@given(text=TEXTS, actions=ACTIONS, seed=st.integers(0, 2**20))
@settings(max_examples=15, deadline=None, suppress_health_check=FIXTURE)
def test_so_do_launches(way: str, text: Text, actions: list[str], seed: int) -> None:
    played(text, [*actions[:5], "step", "step"], seed)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("made", [{}, {"static": True}])
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_long_texts(way: str, rule: str, made: dict[str, Any]) -> None:
    steps = ["step"] * (5 if way == "triton" else 30)
    for bias in ("none", "alibi"):
        played(Text(rule, bias, torch.float32, 2, (16, 16), made, {}), ["prompt", *steps], 0)


# Conditions and terms of compiled code


@st.composite
def conditions(draw: st.DrawFn) -> str:
    gate = draw(st.sampled_from(["", "head % 2 == 0 or ", "q - k <= head and ", "batch == 1 or "]))
    return f"{gate}({draw(random_rules.affine())})"


@pytest.mark.parametrize(
    "run", [pytest.param(by_triton, marks=interpreted), pytest.param(native_step, marks=built)]
)
@given(
    text=conditions(), positions=st.lists(st.integers(-1, 99), min_size=1, max_size=40), q=st.integers(0, 99)
)
@settings(max_examples=40, deadline=None)
def test_conditions_at_any_positions(run: Any, text: str, positions: list[int], q: int) -> None:
    numbers = {"n": 64, "t": 3}
    tree = expr.replaced(parse(text), lambda x: Num(numbers[x.name]) if x.name in numbers else x)
    draw = torch.Generator().manual_seed(0)
    query = torch.randn(BATCH, HEADS, 1, 16, generator=draw)
    keys, values = (torch.randn(BATCH, 2, len(positions), 16, generator=draw) for _ in range(2))
    whole = torch.tensor([positions])
    given: Any = whole if run is by_triton else whole.numpy()
    how = Scoring(0.25, return_lse=True)
    found = run(query, keys, values, Slots(keys, values, given, tree), how)
    out, lse = found(query, keys[:, :, :1], values[:, :, :1], q, -1, len(positions))
    at = {"q": torch.tensor(q), "k": whole[0], "head": torch.arange(HEADS)[:, None, None]}
    at["batch"] = torch.arange(BATCH)[:, None, None, None]
    held = torch.as_tensor(evaluate(tree, at)) & (whole[0] >= 0)
    wanted = step.attend(query, keys, values, held.expand(BATCH, HEADS, 1, len(positions)), how)
    torch.testing.assert_close(out, wanted[0], atol=1e-5, rtol=0)
    torch.testing.assert_close(lse, wanted[1], atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "node",
    [
        parse("q % k <= 3"),
        parse("k <= other"),
        parse("doc[q] == 1"),
        Compare("<=", Name("k"), Num(1 << 63)),
        Compare("<=", Name("k"), Arith("//", (Name("q"), Num(0)))),
    ],
)
def test_what_has_no_program(node: Condition) -> None:
    with pytest.raises(NoProgram):
        program(node)
    with pytest.raises(LookupError):
        generated_step(node, None, (), ())


def test_a_stack_has_a_limit() -> None:
    nested = "q - (" * MAX_DEPTH + "k" + ")" * MAX_DEPTH
    with pytest.raises(NoProgram, match="a stack of 17"):
        program(parse_term(nested))
    assert len(program(parse_term(nested[len("q - (") : -1]))) == 2 * MAX_DEPTH - 1


@built
def test_keys_that_are_not_attended_are_not_read() -> None:
    rule, x = "k <= q and (q - k) % 2 == 0 and q - k <= 6", torch.ones(1, 2, 1, 16)
    cache = lt.KVCache(rule, batch=1, heads=2, head_dim=16)
    for i in range(9):
        out = cache.attend(x, x, x * (torch.nan if i % 2 else 1.0))
        assert torch.equal(out.isnan(), torch.full_like(out, i % 2, dtype=torch.bool))


# A bias from step to step


def alibi_cache(**made: Any) -> tuple[lt.KVCache, list[Tensor]]:
    cache = lt.KVCache("k <= q", batch=1, heads=HEADS, head_dim=16, **made)
    return cache, [torch.randn(1, HEADS, 1, 16) for _ in range(3)]


@pytest.mark.parametrize("made", [{}, {"static": True, "capacity": 32}])
def test_a_bias_is_read_at_every_step(made: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []
    check = step.check_step
    monkeypatch.setattr(step, "check_step", lambda *given: (checked.append(1), check(*given)))
    (cache, new), slope, attend = alibi_cache(**made), torch.ones(HEADS), cast("Any", lt.attention)
    for i in range(6):
        slope = (
            slope.mul_(0.5) if i % 2 else torch.full((HEADS,), 1.0 + i)
        )  # changed in place, or another one
        bias = lt.Bias("-slope[head]*(q - k)", slope=slope)
        found = attend(*new, "k <= q", cache=cache, bias=bias)
        texts = [torch.cat([x] * (i + 1), 2).double() for x in new]
        wanted = attend(*texts, "k <= q", bias=bias, kernel="reference")
        torch.testing.assert_close(found.double(), wanted[:, :, -1:], atol=1e-5, rtol=0)
    assert len(checked) == 1


def test_a_bias_that_ends_is_checked_at_every_step() -> None:
    (cache, new), table = alibi_cache(), torch.zeros(3)
    for _ in range(3):
        cache.attend(*new, bias=lt.Bias("table[k]", table=table))
    with pytest.raises(TensorError, match="needs 4 places"):
        cache.attend(*new, bias=lt.Bias("table[k]", table=table))


# Copies of a cache, and the host's twin


@pytest.mark.parametrize("made", [{}, {"static": True, "capacity": 32}])
def test_a_copy_goes_on_by_itself(made: dict[str, Any]) -> None:
    cache, new = alibi_cache(**made)
    for _ in range(3):
        cache.attend(*new)
    other = copy.deepcopy(cache) if made else pickle.loads(pickle.dumps(cache))
    kept = cache.keys.clone()
    for _ in range(2):
        other.attend(*(2 * x for x in new))
    assert torch.equal(cache.keys, kept) and len(cache) == 3 and len(other) == 5
    for _ in range(2):
        cache.attend(*(2 * x for x in new))
    assert torch.equal(other.attend(*new), cache.attend(*new))


@built
def test_numbers_and_addresses_are_handed_over_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    def outputs() -> list[Tensor]:
        torch.manual_seed(0)
        cache, new = alibi_cache()
        return [cache.attend(*new, bias=lt.Bias.alibi(HEADS)) for _ in range(4)]

    wanted = outputs()
    monkeypatch.setattr(host, "module", lambda: None)
    assert all(map(torch.equal, outputs(), wanted))


@pytest.mark.parametrize("way", ["triton"], indirect=True)
def test_positions_on_a_device_follow_the_table(way: str) -> None:
    """Steps with and without a bias, a growing room, and what changes slots between them."""
    text = Text("causal", "alibi", torch.float32, 2, (16, 16), {"rollback": 3}, {})
    done = ["step", "step", "other", "step", "back", "other", "back", "step", "prompt", "step"]
    played(text, [*done, "new", "step", "rows", "step"], 1)


# On a GPU

ON_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@ON_GPU
@given(text=TEXTS, actions=ACTIONS, seed=st.integers(0, 2**20))
@settings(max_examples=60, deadline=None, suppress_health_check=FIXTURE)
def test_steps_on_a_gpu(text: Text, actions: list[str], seed: int) -> None:
    played(text, [*actions, "step", "step"], seed, "cuda")


@ON_GPU
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dims", [(64, 64), (128, 128), (80, 96), (256, 256)])
@pytest.mark.parametrize("made", [{}, {"static": True}])
def test_long_texts_on_a_gpu(dtype: torch.dtype, dims: tuple[int, int], made: dict[str, Any]) -> None:
    for rule, bias in (("causal", "none"), ("causal", "alibi"), ("sinks", "relative"), ("heads", "alibi")):
        done = ["prompt", *["step"] * 58]  # a static one has room for 64
        played(Text(rule, bias, dtype, 2, dims, made, {}), done, 0, "cuda")


@ON_GPU
@pytest.mark.parametrize("rule", ["causal", "window", "heads"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [None, "alibi"])
def test_a_captured_step_gives_the_same_bits(rule: str, dtype: torch.dtype, bias: str | None) -> None:
    attend: Any = lt.attention
    room = {"capacity": 256} if rule == "causal" else {}
    kind: dict[str, Any] = {"dtype": dtype, "device": "cuda"}
    caches = [
        lt.KVCache(RULES[rule], batch=2, heads=HEADS, kv_heads=2, head_dim=64, static=True, **room, **kind)
        for _ in range(2)
    ]
    added = None if bias is None else lt.Bias.alibi(HEADS, device="cuda")
    new = [torch.randn(2, heads, 1, 64, **kind) for heads in (HEADS, 2, 2)]
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            attend(*new, RULES[rule], cache=caches[0], bias=added)
        torch.cuda.current_stream().wait_stream(side)
        caches[0].reset()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = attend(*new, RULES[rule], cache=caches[0], bias=added)
        for _ in range(20):
            for x in new:
                x.normal_()
            graph.replay()
            assert torch.equal(out, attend(*new, RULES[rule], cache=caches[1], bias=added))
    assert caches[0].lengths.tolist() == caches[1].lengths.tolist() == [20, 20]


@built
def test_keys_that_were_replaced_are_not_held() -> None:
    cache = lt.KVCache(lt.rules.causal(), batch=1, heads=2, head_dim=8)
    q, k, v = (torch.randn(1, 2, 1, 8) for _ in range(3))
    lt.attention(q, k, v, lt.rules.causal(), cache=cache)
    lt.attention(q, k, v, lt.rules.causal(), cache=cache, return_lse=True)  # a kind of its own
    old = weakref.ref(cache._store.keys)  # pyright: ignore
    for _ in range(200):
        lt.attention(q, k, v, lt.rules.causal(), cache=cache)
    gc.collect()
    assert old() is None
