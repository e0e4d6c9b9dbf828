"""Keys of a query where a rule divides by a number: the letter that stands for it never shows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.counts.count import Count
from lattend.counts.counting import forget
from lattend.sets.guard import deadlines_missed

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


def test_a_letter_is_found_whatever_the_rule_calls_its_own() -> None:
    names = {"w": 3, "w_": 3}
    condition = " and ".join(f"{name} == 3" for name in names)
    count = lt.rule(f"{condition} and q // 64 == k // 64").count(per="query")
    assert count.at(n=200, q=3, **names) == 64


def test_an_attempt_that_has_another_way_misses_no_deadline() -> None:
    """On the page an answer is kept only where nothing was late."""
    missed = deadlines_missed()
    forget()
    assert lt.rule("q // 64 == k // 64").count(per="query").at(n=200, q=3) == 64
    assert deadlines_missed() == missed
