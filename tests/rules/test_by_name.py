"""Numbers of a rule without a name: what to write is said."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import lattend as lt

BAND = lt.rule("k <= q and q - k <= t")


@pytest.mark.parametrize("method", ["count", "total", "mask", "draw", "reach", "block_mask", "mask_mod"])
def test_a_number_without_a_name_is_told_one(method: str) -> None:
    with pytest.raises(lt.errors.NamingError) as caught:
        getattr(BAND, method)(256)
    said = f"{method}(256): numbers are given by name, as in {method}(n=256)"
    assert str(caught.value) == said


def test_the_name_is_one_that_is_open() -> None:
    bound: Any = BAND.at(n=8)
    with pytest.raises(lt.errors.NamingError, match=r"as in mask\(t=2\)"):
        bound.mask(2)


def test_signatures_stay_what_they_are() -> None:
    assert [*inspect.signature(lt.Rule.block_mask).parameters] == ["self", "device", "block_size", "values"]
    assert (lt.Rule.reach.__doc__ or "").startswith("The attention span")


def test_the_reach_at_numbers() -> None:
    assert str(BAND.reach(t=2)) == str(BAND.at(t=2).reach())
    with pytest.raises(lt.errors.NamingError, match="has no w; it has n, t"):
        BAND.reach(w=3)


@pytest.mark.parametrize(
    "score_mod",
    [
        lambda score, b, h, q_idx, kv_idx: score - (q_idx - kv_idx),
        lambda score, batch, head, q, k: score,
        lambda s, b, h, i, j: 20 * (s / 20),
        "def relative(score, b, h, q_idx, kv_idx):\n    return score + (q_idx - kv_idx)",
    ],
)
def test_a_score_mod_is_told_from_a_mask_mod(score_mod: Any) -> None:
    with pytest.raises(
        lt.errors.LattendError, match=r"is a score_mod, which changes scores, .* bias=lt\.Bias"
    ):
        lt.rule(score_mod)


def test_five_letters_are_no_score_mod() -> None:
    found = lt.rule(lambda q, k, a, b, c: (k <= q) & (q - k <= a + b + c))
    assert found.parameters == ["a", "b", "c"]
