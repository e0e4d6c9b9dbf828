"""Steps of decoding that are checked once: a step of another kind is never taken for one that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import lattend as lt
from lattend.attend.decode import step as decoding
from lattend.attend.decode.kv_cache import KVCache
from lattend.rules import causal, strided, windowed

BATCH, HEADS, D = 2, 2, 4
RULES = {
    "causal": causal(),
    "window": strided(3),
    "blocks": windowed(4),
    "dilated": "k <= q and (q - k) % 2 == 0 and q - k <= 6",
    "heads": "lambda head, q, k: k <= q and q - k <= 2 + head",
}
MADE = {
    "one kv head": {"kv_heads": 1},
    "rollback": {"rollback": 2},
    "static": {"static": True},
    "n": {"n": 12},
}
Outcome = tuple[Any, ...]


class Checked(KVCache):
    """A cache that knows no step: it checks all of them, and looks for slots in the long way."""

    def known(self, signature: Any) -> None:
        return None


def pair_of_caches(rule: Any, options: dict[str, Any]) -> tuple[KVCache, KVCache]:
    caches = [kind(rule, batch=BATCH, heads=HEADS, head_dim=D, **options) for kind in (KVCache, Checked)]
    table: Any = getattr(caches[1]._store, "table", None)
    if table is not None:
        table.step = lambda: None
    return caches[0], caches[1]


# What may be done with a cache

TENSORS = (
    "as they are",
    "float64",
    "one row",
    "other heads",
    "transposed",
    "needs a gradient",
    "5 axes",
    "no k",
)
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"scale": 0.5},
    {"scale": 1},
    {"scale": True},
    {"softcap": 2.0},
    {"return_lse": True},
    {"return_lse": 1},
    {"dropout": False},
    {"dropout": 0.5},
    {"kernel": "dense"},
    {"deterministic": 1},
    {"return_max_logit": True},
    {"scale": torch.tensor(0.5)},
    {"bias": "k - q"},
    {"sinks": torch.ones(HEADS)},
    {"t": 3},
    {"t": True},
    {"no_such": 1},
)
CHANGES: dict[str, Callable[[KVCache], Any]] = {
    "crop": lambda cache: cache.crop(-1),
    "crop two": lambda cache: cache.crop(-2),
    "crop one row": lambda cache: cache.crop([len(cache), max(len(cache) - 1, 0)]),
    "select": lambda cache: cache.select([1, 0]),
    "select one": lambda cache: cache.select([1]),
    "reset": lambda cache: cache.reset(),
    "reset a row": lambda cache: cache.reset([1]),
    "keep": lambda cache: cache.keep([0]),
}


class Call(NamedTuple):
    """One call; the next ones differ from it in one thing."""

    rule: str = "rule"
    s: int = 1
    tensors: str = TENSORS[0]
    options: dict[str, Any] = OPTIONS[0]
    padding: str = "none"
    mode: str = "no grad"


OTHERS: dict[str, Sequence[Any]] = {
    "rule": ("another", "attend"),
    "s": (2, 3, 0),
    "tensors": TENSORS,
    "options": OPTIONS,
    "padding": ("lengths", "mask"),
    "mode": ("grad", "inference", "autocast"),
}
USUAL = (Call(), Call(mode="grad"), Call(options={"scale": 1}), Call(rule="attend"))


@st.composite
def sequences(draw: st.DrawFn) -> list[Call | str]:
    """A usual step again and again, and between them others that differ in one thing, and changes."""
    usual = draw(st.sampled_from(USUAL))
    other = st.sampled_from(sorted(OTHERS)).flatmap(
        lambda field: st.sampled_from(OTHERS[field]).map(lambda value: usual._replace(**{field: value}))
    )
    between = draw(st.lists(st.one_of(other, other, st.sampled_from(sorted(CHANGES))), max_size=4))
    steps: list[Call | str] = [usual]
    for done in between:
        steps += [usual] * draw(st.sampled_from((1, 2, 5))) + [done]
    return [*steps, usual]


def tokens(seed: int, s: int, which: str, kv_heads: int) -> list[Tensor]:
    rows = 1 if which == "one row" else BATCH
    heads = (3, kv_heads, kv_heads) if which == "other heads" else (HEADS, kv_heads, kv_heads)
    numbers = torch.Generator().manual_seed(seed)
    found = [torch.randn(rows, h, s, D, generator=numbers) for h in heads]
    if which == "float64":
        return [x.double() for x in found]
    if which == "transposed":
        return [x.transpose(1, 2).contiguous().transpose(1, 2) for x in found]
    if which == "needs a gradient":
        return [x.requires_grad_() for x in found]
    if which == "5 axes":
        return [x[:, :, None] for x in found]
    return [found[0], None, found[2]] if which == "no k" else found  # pyright: ignore


def outcome(cache: KVCache, own: Any, seed: int, done: Call | str) -> Outcome:
    """What comes of it, and what the cache holds then."""
    try:
        found = CHANGES[done](cache) if isinstance(done, str) else call(cache, own, seed, done)
    except Exception as error:
        found = type(error).__name__, str(error)
    lengths = cache.lengths.tolist()
    return found, lengths, [cache.positions_of(row).tolist() for row in range(len(lengths))]


def call(cache: KVCache, own: Any, seed: int, asked: Call) -> Any:
    s, mode, options = asked.s, asked.mode, dict(asked.options)
    q, k, v = tokens(seed, s, asked.tensors, cache.keys.shape[1])
    if "bias" in options:
        options["bias"] = lt.Bias(options["bias"])
    if asked.padding == "lengths":
        options["padding"] = torch.tensor([s, max(s - 1, 0)])
    elif asked.padding == "mask":
        options["padding"] = torch.arange(s) >= torch.tensor([[0], [1]])
    how = {"inference": torch.inference_mode, "grad": torch.enable_grad}.get(mode, torch.no_grad)
    with how(), torch.autocast("cpu", torch.bfloat16, enabled=mode == "autocast"):
        if asked.rule == "attend":
            return cache.attend(q, k, v, **options)
        rule = own if asked.rule == "rule" else "k <= q and q - k <= 1"
        return lt.attention(q, k, v, rule, cache=cache, **options)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        alike = isinstance(b, Tensor) and (a.dtype, a.shape) == (b.dtype, b.shape)
        return alike and torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def check_alike(own: Any, made: dict[str, Any], steps: Sequence[Call | str]) -> None:
    """Results, errors and their texts are those of a cache that checks every step."""
    more = {"capacity": 64} if made.get("static") else {}
    known, checked = pair_of_caches(own, {**made, **more})
    for seed, done in enumerate(steps):
        assert same(outcome(known, own, seed, done), outcome(checked, own, seed, done)), (seed, done)


@pytest.mark.parametrize("usual", USUAL)
@pytest.mark.parametrize("field", OTHERS)
def test_a_call_that_differs_in_one_thing_is_another(usual: Call, field: str) -> None:
    for value in OTHERS[field]:
        other = usual._replace(**{field: value})
        check_alike(RULES["window"], {}, (usual, usual, other, usual, other, other))


@pytest.mark.parametrize("rule", ["window", "blocks", "dilated"])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_between_steps(rule: str, change: str) -> None:
    for before in (2, 5, 6, 9):
        check_alike(RULES[rule], {}, (*[Call()] * before, change, *[Call()] * 3, change, Call()))


@given(rule=st.sampled_from(sorted(RULES)), made=st.sampled_from([{}, {}, *MADE.values()]), steps=sequences())
@settings(max_examples=80, deadline=None)
def test_calls_of_different_kinds_are_never_confused(
    rule: str, made: dict[str, Any], steps: list[Call | str]
) -> None:
    check_alike(RULES[rule], made, steps)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("through_attention", [False, True])
def test_a_kind_of_step_is_checked_once(
    static: bool, through_attention: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    check = decoding.check_step
    monkeypatch.setattr(decoding, "check_step", lambda *given: (counted.append(1), check(*given)))
    rule = strided(5)
    cache = KVCache(rule, batch=BATCH, heads=HEADS, head_dim=D, static=static)
    x = torch.ones(BATCH, HEADS, 1, D)

    def step(x: Tensor, **options: Any) -> None:
        lt.attention(x, x, x, rule, cache=cache, **options) if through_attention else cache.attend(
            x, x, x, **options
        )

    for _ in range(4):
        step(x)
    assert len(counted) == 1
    cache.crop(-1)
    cache.reset()
    step(x)
    assert len(counted) == 1
    step(x, scale=0.5)
    step(x, scale=0.5)
    assert len(counted) == 2
    cache.select([1, 0])
    step(x, scale=0.5)
    assert len(counted) == 3
