"""Code that is written out for elsewhere says what the rule says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_rules import affine, split

from lattend.draw.grid.samples import catalogue
from lattend.rules.code import mask_mod, numpy_mask
from lattend.rules.reader import rule
from lattend.rules.rule import Rule

SMALL = {"n": 9, "m": 7, "rows": 4, "cols": 3, "depth": 2, "heads": 2, "shift": 1}
RULES = [
    *(made for name, made in catalogue().items() if name != "documents"),
    *(rule(text) for text in ("true", "q == q and false", "min(q, t) < max(k, 2, q - t)", "t > 2 or k <= q")),
    *(rule(text) for text in ("q - k <= head and heads > 1", "kz <= qz and kx != qx", "min(t, 3) + k > q")),
    *(rule(text) for text in ("not (k > q or k == 3)", "not k == 3", "k <= q < n", "-k % 3 == q % -(-3)")),
]


def numbers(chosen: Rule) -> dict[str, int]:
    return {name: SMALL.get(name, 2) for name in chosen.free}


def run(code: str, **names: Any) -> dict[str, Any]:
    exec(compile(code, "code", "exec"), names)
    return names


@pytest.mark.parametrize("chosen", RULES, ids=str)
def test_numpy_makes_the_same_mask(chosen: Rule) -> None:
    at = numbers(chosen)
    assert np.array_equal(run(numpy_mask(chosen, **at))["mask"], chosen.mask(**at))


@pytest.mark.parametrize("chosen", RULES, ids=str)
def test_a_mask_mod_makes_the_same_mask(chosen: Rule) -> None:
    torch = pytest.importorskip("torch")
    at = numbers(chosen)
    lines = mask_mod(chosen, **at).splitlines()
    end = next(place for place, line in enumerate(lines) if line.startswith("block_mask"))
    made = run("\n".join(line for line in lines[:end] if "import create" not in line), torch=torch)
    mask = chosen.mask(**at)
    heads = at.get("heads", 1)
    flat = mask.reshape(heads, int(np.prod([at[axis.queries] for axis in chosen.axes])), -1)
    found = made["mask_mod"](
        None,
        torch.arange(heads)[:, None, None],
        torch.arange(flat.shape[1])[:, None],
        torch.arange(flat.shape[2]),
    )
    assert np.array_equal(np.broadcast_to(found.numpy(), flat.shape), flat)


@given(st.one_of(affine(), split()))
def test_code_of_any_condition_says_the_same(text: str) -> None:
    chosen = rule(text)
    at = numbers(chosen)
    bound = chosen.at(**at)
    assert np.array_equal(run(numpy_mask(bound))["mask"], bound.mask())
