"""Keys of a query where a rule divides by a number: the letter that stands for it never shows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.counts.count import Count

BLOCKS = (
    "q // {0} == k // {0}",
    "k <= q and q // {0} - k // {0} <= 1",
    "k <= q and k % {0} == {1} or q == k",
)
BLOCKS += ("q // {0} == k // {0} and k % {0} != {1}", "w <= 3 and q // {0} == k // {0}")


@pytest.mark.parametrize("number", [64, 45])
def test_large_blocks_have_a_short_form(number: int) -> None:
    """Barvinok goes through every remainder of q and n: it gave no answer in a second."""
    count = lt.rule(f"q // {number} == k // {number}").count(per="query")
    assert isinstance(count, Count) and count.names == ["n", "q"]
    assert str(count).splitlines() == [
        f"{number}  when N > Q",
        "r   when N == Q and r > u",
        f"where N = n // {number}, Q = q // {number}, r = n % {number}, u = q % {number}",
    ]
    assert (count.at(n=200, q=3), count.at(n=200, q=199)) == (number, 200 % number)


@settings(max_examples=12)
@given(st.sampled_from(BLOCKS), st.integers(2, 40), st.sampled_from(["query", "key"]), st.integers(1, 90))
def test_it_is_what_enumeration_counts(text: str, number: int, per: str, n: int) -> None:
    rule = lt.rule(text.format(number, number - 1))
    given_ = {"w": 2} if "w" in rule.free else {}
    count = rule.count(per=per, deadline=10)
    position = "q" if per == "query" else "k"
    counted = np.array(rule.mask(n=n, **given_)).sum(axis=1 if per == "query" else 0)
    for place in {0, n // 2, n - 1, min(n - 1, number), min(n - 1, number - 1)}:
        assert count.at(n=n, **given_, **{position: place}) == counted[place]
