"""Positions that begin at 1: counts per query and per key, and claims about them, against enumeration."""

from __future__ import annotations

from itertools import product

import pytest

import lattend as lt
from lattend.errors import DomainError, NamingError
from lattend.rules.catalogue.names import CATALOGUE

LINES = ("full", "causal", "strided", "windowed", "band", "dilated", "prefix_lm", "sinks")


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("per", ["query", "key"])
def test_counts_from_one_are_those_of_the_mask(name: str, per: str) -> None:
    rule = CATALOGUE[name]()
    count = rule.count(per=per, first=1)
    position = "q" if per == "query" else "k"
    for n, number in product((1, 4, 5), (1, 2, 3)):
        values = dict.fromkeys(rule.parameters, number)
        counted = rule.mask(n=n, **values).sum(axis=1 if per == "query" else 0)
        found = [count.at(n=n, **values, **{position: place}) for place in range(1, n + 1)]
        assert found == counted.tolist(), (n, number)


def test_counts_from_one_on_an_image() -> None:
    rule = lt.rules.neighbourhood()
    count, mask = rule.count(per="query", first=1), rule.mask(rows=3, cols=4, r=1).sum(axis=(2, 3))
    for qy, qx in product(range(1, 4), range(1, 5)):
        assert count.at(rows=3, cols=4, r=1, qy=qy, qx=qx) == mask[qy - 1, qx - 1]


def test_positions_from_one_end_at_n() -> None:
    rule = lt.rules.causal()
    assert rule.count(per="query", first=1, n=5, q=5) == 5
    assert rule.count(per="query", first=1, n=5, q=5, method="enumerate") == 5
    for method in ("closed", "enumerate"):
        with pytest.raises(DomainError, match="q = 0 lies outside 1 … 5"):
            rule.count(per="query", first=1, n=5, q=0, method=method)
    with pytest.raises(NamingError, match='count per="query"'):
        rule.count(first=1)


def test_token_i_looks_at_i_keys() -> None:
    verdict = lt.rules.causal().count(per="query", first=1).claim("i")
    assert verdict
    assert verdict.readings == ("i read as q, the position of the query, from 1",)
    assert lt.rules.strided().count(per="query", first=1).claim("min(i, t + 1)")
    assert lt.rules.causal().count(per="key", first=1).claim("n - j + 1")


def test_a_claim_from_zero_says_that_it_holds_from_one() -> None:
    verdict = lt.rules.causal().count(per="query").claim("i")
    assert verdict.status == "fails"
    ((how, instead),) = verdict.instead
    assert "first=1" in how and instead
    assert lt.rules.causal().count(per="query").claim("2q").instead == ()


def test_only_one_letter_can_be_the_position() -> None:
    count = lt.rules.causal().count(per="query")
    with pytest.raises(lt.errors.UnknownName) as caught:
        count.claim("a + b")
    assert (caught.value.name, caught.value.known, caught.value.meant) == ("a", ["n", "q"], [])
    with pytest.raises(lt.errors.UnknownName, match="did you mean q"):
        count.claim("i + q")
    with pytest.raises(lt.errors.UnknownName):
        lt.rules.axial().count(per="query").claim("i")
