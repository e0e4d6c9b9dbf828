"""A rule as FlexAttention's mask_mod and BlockMask: the same pairs, the same blocks, the same output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_rules import affine, split

import lattend as lt
from lattend.draw.grid.samples import catalogue
from lattend.errors import NamingError

SMALL = {"n": 9, "m": 7, "rows": 4, "cols": 3, "depth": 2, "heads": 2, "shift": 1}
IDS = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2])
RULES = [
    *(made for name, made in catalogue().items() if name != "documents"),
    *(lt.rule(text) for text in ("true", "q == q and false", "min(q, t) < max(k, 2, q - t)", "m <= k + q")),
    *(lt.rule(text) for text in ("t > 2 or k <= q", "not (t > 3) and k <= q", "not (t < 1 or k > q)")),
    *(lt.rule(text) for text in ("q - k <= head and heads > 1", "kz <= qz and kx != qx", "qy == ky")),
    *(lt.rule(text) for text in ("-k % 3 == q % -(-3)", "abs(q - 2*k) // 3 == 1 or head == 1")),
    lt.rule("doc[q] == doc[k] and k <= q and doc[0] == 0", data={"doc": IDS}),
    lt.rule("torch[q] == torch[k]", data={"torch": IDS}),
    lt.rule("h[head, k] == 1 and k <= q", data={"h": np.stack([IDS, IDS[::-1]])}),
    lt.rule("c[q // 3, min(k, q) // 3]", data={"c": np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1]])}),
]


def numbers(chosen: lt.Rule) -> dict[str, int]:
    return {name: SMALL.get(name, 2) for name in chosen.free}


def flat_mask(chosen: lt.Rule, at: dict[str, int]) -> np.ndarray[Any, Any]:
    """The pairs [heads, queries, keys], an image row by row."""
    mask = chosen.mask(**at)
    heads = chosen.at(**at).values["heads"] if chosen.has_heads else 1
    per_head = mask.shape[1:] if chosen.has_heads else mask.shape
    queries = int(np.prod(per_head[: len(per_head) // 2]))
    return mask.reshape(heads, queries, -1)


def asked(mod: Any, heads: int, n: int, m: int) -> np.ndarray[Any, Any]:
    h, q, k = torch.arange(heads)[:, None, None], torch.arange(n)[:, None], torch.arange(m)
    found = mod(torch.tensor(0), h, q, k)
    assert found.dtype == torch.bool
    return np.broadcast_to(found.numpy(), (heads, n, m))


# mask_mod


@pytest.mark.parametrize("chosen", RULES, ids=str)
def test_a_mask_mod_attends_the_same_pairs(chosen: lt.Rule) -> None:
    at = numbers(chosen)
    wanted = flat_mask(chosen, at)
    assert np.array_equal(asked(chosen.mask_mod(**at), *wanted.shape), wanted)


@given(st.one_of(affine(), split()), st.integers(0, 4), st.integers(1, 4))
def test_random_rules_too(text: str, t: int, w: int) -> None:
    chosen = lt.rule(text)
    at = {name: {"n": 9, "t": t, "w": w}[name] for name in chosen.free}
    wanted = flat_mask(chosen, at)
    mod = chosen.mask_mod(**at)
    assert np.array_equal(asked(mod, *wanted.shape), wanted)
    assert np.array_equal(lt.rule(mod).mask(n=9), wanted[0])


@pytest.mark.parametrize("chosen", RULES, ids=str)
def test_read_back_it_is_the_same_rule(chosen: lt.Rule) -> None:
    at = numbers(chosen)
    wanted = flat_mask(chosen, at)
    back = lt.rule(chosen.mask_mod(**at), cross=True)
    heads = {"heads": len(wanted)} if back.has_heads else {}
    found = back.mask(n=wanted.shape[1], m=wanted.shape[2], **heads)
    assert np.array_equal(np.broadcast_to(found, wanted.shape), wanted)


def test_on_a_line_it_reads_as_it_was_written() -> None:
    band = lt.rules.strided(t=3)
    assert lt.rule(band.mask_mod()).condition == band.baked().condition
    assert lt.rule(band.mask_mod()).same_as(band)
    packed = lt.rule("documents([3, 5])")
    assert lt.rule(packed.mask_mod()).text == packed.text


@pytest.mark.parametrize("chosen", RULES[::3], ids=str)
def test_it_is_compiled_whole(chosen: lt.Rule) -> None:
    at = numbers(chosen)
    wanted = flat_mask(chosen, at)
    compiled = torch.compile(chosen.mask_mod(**at), backend="eager", fullgraph=True)
    assert np.array_equal(asked(compiled, *wanted.shape), wanted)


def test_sizes_are_asked_for_only_where_the_condition_has_them() -> None:
    assert lt.rules.causal().mask_mod()(None, None, torch.tensor(3), torch.tensor(2))
    with pytest.raises(NamingError, match=r'a mask_mod of ".* <= t" needs a value for t: give t=…'):
        lt.rules.strided().mask_mod()
    with pytest.raises(NamingError, match="needs a value for cols: give cols=…"):
        lt.rules.neighbourhood(r=1).mask_mod()
    with pytest.raises(NamingError, match="gets doc when attention runs"):
        lt.rule("doc[q] == doc[k]", data={"doc": None}).mask_mod()


def test_equal_rules_share_their_code() -> None:
    """Torch compiles again for another code object, and not for another function of the same."""
    first, again = (lt.rules.strided().mask_mod(t=5) for _ in range(2))
    assert first.__code__ is again.__code__  # pyright: ignore[reportFunctionMemberAccess]
