"""Claims as they stand on paper: chains of equations, sums with dots, sums that name no index."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lattend as lt
from lattend.counts.formula import BigO, value_at
from lattend.counts.formula_parser import parse_claim
from lattend.errors import TextError

CAUSAL = lt.rules.causal().count()
STRIDED = lt.rules.strided().count()


def value(text: str, **at: int) -> Fraction | None:
    (side,) = parse_claim(text, {"n", "t"}).sides
    assert not isinstance(side.node, BigO)
    return value_at(side.node, at)


# Chains


def test_every_equation_of_a_chain_is_judged() -> None:
    verdict = CAUSAL.claim(r"N = 1 + 2 + \dots + n = n(1+n)/2")
    assert verdict and [bool(link) for link in verdict.links] == [True, True]
    assert str(verdict).splitlines() == [
        r"N = 1 + 2 + \dots + n = n(1+n)/2: holds for n >= 0",
        r"  N = 1 + 2 + \dots + n: holds for n >= 0",
        r"  1 + 2 + \dots + n = n(1+n)/2: holds for n >= 0",
        r"N read as the count; 1 + 2 + \dots + n read as the sum of i for i = 1 to n",
    ]


def test_the_first_false_equation_is_named() -> None:
    verdict = CAUSAL.claim("n(n+1)/2 = (n^2 + n)/2 = n^2/2 = n*n/2")
    assert verdict.status == "fails"
    assert verdict.broken is verdict.links[2]
    assert str(verdict.broken) == (
        "(n^2 + n)/2 = n^2/2: fails; it agrees only where n == 0; "
        "at n = 1 the left side is 1, the right side is 1/2"
    )
    assert "equation 3 of 4 is the first that fails" in str(verdict)
    assert verdict.json()["links"][2]["counterexample"] == {"at": {"n": 1}, "claimed": "1/2", "exact": "1"}


def test_a_chain_holds_where_all_its_equations_do() -> None:
    verdict = STRIDED.claim(r"\sum_{i=n-t}^n i = (2n-t)(t+1)/2")
    assert (verdict.status, verdict.where) == ("holds only where", "t <= n")
    assert verdict.links[1].status == "holds"
    apart = lt.rule("q == 0 and k < t and t >= 0").count().claim("t = n", assuming="t >= 0, n >= 1")
    assert (apart.status, apart.where) == ("holds only where", "t == n")
    few = lt.rule("q == 0").count().claim("max(n, 5) = min(n, 9) + max(n - 7, 0)*0")
    assert (few.status, few.links[0].where, few.links[1].where) == ("fails", "n >= 5", "5 <= n <= 9")


def test_a_chain_may_end_in_an_order() -> None:
    assert CAUSAL.claim("N(n) = n(n+1)/2 = O(n^2)")
    verdict = CAUSAL.claim("N = n(n+1)/2 = O(n)")
    assert [link.status for link in verdict.links] == ["holds", "fails"]
    assert CAUSAL.claim("O(n^2) = O(n^3)").status == "holds"
    assert CAUSAL.claim(r"N = n(n+1)/2 \in \Theta(n^2)") and CAUSAL.claim("N ∈ Θ(n²)").holds
    with pytest.raises(TextError, match="after an order comes another order") as caught:
        CAUSAL.claim("N = O(n^2) = n^2")
    assert (caught.value.start, caught.value.end) == (13, 16)


def test_a_name_of_the_count_is_not_the_count() -> None:
    assert CAUSAL.claim("n = n(n+1)/2").status == "fails"
    assert lt.cost.rnn2d().claim("parameters", "P = hc + 2h^2 = h(c + 2h)")


@given(st.integers(-2, 2), st.integers(-2, 2))
def test_an_equation_holds_exactly_when_both_sides_are_equal(a: int, b: int) -> None:
    verdict = CAUSAL.claim(f"n(n+1)/2 = n(n+1)/2 + {a}*n + {b}")
    assert bool(verdict) == (a == b == 0)
    if verdict.broken is not None and verdict.broken.counterexample is not None:
        n = verdict.broken.counterexample.values["n"]
        assert a * n + b != 0


# Sums with dots


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("1 + 2 + … + n", lambda n, t: range(1, n + 1)),
        ("1 + 2 + ... + n", lambda n, t: range(1, n + 1)),
        (r"1 + 2 + 3 + \cdots + n", lambda n, t: range(1, n + 1)),
        (r"1 + \ldots + (n - 1) + n", lambda n, t: range(1, n + 1)),
        ("n + (n - 1) + … + 1", lambda n, t: range(1, n + 1)),
        ("(n - 1) + (n - 2) + … + (n - t)", lambda n, t: [n - i for i in range(1, t + 1)]),
        ("1 + 3 + … + (2n - 1)", lambda n, t: range(1, 2 * n, 2)),
        ("2 + 4 + … + 2n", lambda n, t: range(2, 2 * n + 1, 2)),
        ("1² + 2² + … + n²", lambda n, t: [i * i for i in range(1, n + 1)]),
        ("1*2 + 2*3 + … + n(n + 1)", lambda n, t: [i * (i + 1) for i in range(1, n + 1)]),
        ("1*n + 2(n - 1) + … + n*1", lambda n, t: [i * (n - i + 1) for i in range(1, n + 1)]),
        ("t + 2t + … + nt", lambda n, t: [i * t for i in range(1, n + 1)]),
        ("-1 - 2 - … - n", lambda n, t: [-i for i in range(1, n + 1)]),
        ("t + 1 + 2 + … + n + t", lambda n, t: [2 * t, *range(1, n + 1)]),
        ("1 + 2 + … + (t+1) + (t+1)(n-t-1)", lambda n, t: [*range(1, t + 2), (t + 1) * (n - t - 1)]),
    ],
)
def test_dots_mean_the_terms_between(text, terms) -> None:
    for n, t in ((2, 2), (5, 3), (9, 4)):
        assert value(text, n=n, t=t) == sum(terms(n, t)), (n, t)


@given(st.integers(-5, 5), st.integers(-4, 4).filter(bool), st.integers(2, 3), st.integers(3, 9))
def test_numbers_in_equal_steps(first: int, step: int, shown: int, count: int) -> None:
    terms = [first + step * place for place in range(count)]
    text = " + ".join(f"({term})" for term in terms[:shown]) + f" + … + ({terms[-1]})"
    assert value(text) == sum(terms)


@pytest.mark.parametrize(
    "text", ["1 + … + n", "1 + 2 + 4 + … + n", "1 + 3 + … + n", "t + t + … + t", "2 + 1 + … + 3"]
)
def test_dots_that_do_not_say_how_to_go_on(text: str) -> None:
    with pytest.raises(TextError, match="is not understood; write two terms that begin it"):
        parse_claim(text, {"n", "t"})


@pytest.mark.parametrize("text", ["1 + 2 + …", "1 * 2 * … * n", "1 + 2 + … n"])
def test_dots_stand_in_a_sum(text: str) -> None:
    with pytest.raises(TextError, match="dots stand between the terms of a sum"):
        parse_claim(text, {"n"})


def test_the_index_of_dots_is_a_new_name() -> None:
    claim = parse_claim("i(1 + 2 + … + n)", {"i", "n"})
    assert claim.readings == ("1 + 2 + … + n read as the sum of j for j = 1 to n",)


# Sums that name no index


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        (r"\sum_{1}^{n} i", lambda n, t: range(1, n + 1)),
        (r"\sum_1^n ni", lambda n, t: [n * i for i in range(1, n + 1)]),
        (r"\sum_{t+1}^{n} t", lambda n, t: [t] * (n - t)),
        (r"\sum_{1}^{n} j^2", lambda n, t: [j * j for j in range(1, n + 1)]),
    ],
)
def test_a_sum_runs_over_the_name_that_is_not_known(text, terms) -> None:
    for n, t in ((4, 2), (7, 3)):
        assert value(text, n=n, t=t) == sum(terms(n, t))


def test_a_sum_over_one_of_several_names_must_say_which() -> None:
    with pytest.raises(TextError, match="write which of a, b the sum runs over"):
        parse_claim(r"\sum_{1}^{n} a b", {"n"})


def test_a_bracket_that_was_left_out_is_offered() -> None:
    verdict = STRIDED.claim(r"\sum_{1}^{t+1} i + \sum_{t+2}^{n} t + 1")
    assert verdict.where == "t == n - 2"
    ((how, instead),) = verdict.instead
    assert how == "with a bracket"
    assert instead.claim == r"\sum_{1}^{t+1} i + \sum_{t+2}^{n} (t + 1)"
    assert (instead.status, instead.where) == ("holds only where", "t < n")
    assert verdict.json()["instead"][0]["where"] == "t < n"


def test_an_index_outside_of_its_sum_belongs_in_a_bracket() -> None:
    """n - i + 1 for i = 1 to n: n + (n - 1) + ... + 1; without the bracket i would be nothing."""
    causal = lt.rules.causal()
    verdict = causal.count().claim(r"\sum_{i=1}^{n} n - i + 1")
    assert verdict and verdict.readings == (r"read as \sum_{i=1}^{n} (n - i + 1)",)
    keys = causal.count(per="query").claim(r"\sum_{j=0}^{q} j - j + 1")
    assert keys and keys.readings == (r"read as \sum_{j=0}^{q} (j - j + 1)",)
    with pytest.raises(lt.errors.UnknownName, match="this count has no j"):
        causal.count().claim(r"\sum_{i=1}^{n} n - j + 1")


def test_no_bracket_is_offered_where_it_does_not_help() -> None:
    assert STRIDED.claim(r"\sum_{i=1}^{n} i + 5").instead == ()
    assert CAUSAL.claim(r"\sum_{i=1}^{n-1} i + n").instead == ()
