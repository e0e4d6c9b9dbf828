"""Claims made at random from true formulas: rewritten they hold, changed they fail at a true counterexample.

The oracle is enumeration: Python computes the claim at small numbers, and the mask of the rule its pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.counts import Count
from lattend.counts.formula import value_at
from lattend.counts.formula_parser import parse_claim

ALWAYS, NEVER = 1, 0
Numbers = dict[str, int]
Value = Callable[[Numbers], Fraction]


@dataclass(frozen=True)
class Claim:
    """A formula as text, and what it is at numbers, computed apart from Lattend."""

    text: str
    at: Value


@dataclass(frozen=True)
class Known:
    """A rule whose count is known by hand, with the ranges of its names."""

    rule: lt.Rule
    count: Count
    true: Claim
    names: dict[str, range]

    def points(self) -> list[Numbers]:
        return [
            dict(zip(self.names, numbers, strict=True)) for numbers in itertools.product(*self.names.values())
        ]


def known(rule: lt.Rule, text: str, at: Value, **names: range) -> Known:
    return Known(rule, rule.count(), Claim(text, at), names)


def blocks(v: Numbers) -> Fraction:
    full, rest = divmod(v["n"], v["w"])
    return Fraction(full * v["w"] * (v["w"] + 1) + rest * (rest + 1), 2)


def band(v: Numbers) -> Fraction:
    return Fraction(sum(min(q, v["t"]) + 1 for q in range(v["n"])))


RULES = {
    "causal": known(
        lt.rules.causal(), "n(n + 1)/2", lambda v: Fraction(v["n"] * (v["n"] + 1), 2), n=range(13)
    ),
    "strided": known(
        lt.rules.strided(),
        "min(n, t + 1)*(2n - min(n, t + 1) + 1)/2",
        band,
        n=range(8),
        t=range(8),
    ),
    "windowed": known(
        lt.rules.windowed(), "(n//w)*w(w + 1)/2 + (n%w)(n%w + 1)/2", blocks, n=range(9), w=range(1, 6)
    ),
    "every other": known(
        lt.rule("k <= q and (q - k) % 2 == 0"),
        "(n + 1)^2 // 4",
        lambda v: Fraction((v["n"] + 1) ** 2 // 4),
        n=range(13),
    ),
}


@st.composite
def rewritten(draw: st.DrawFn, start: Known) -> Claim:
    """The true formula written in another way, up to three times."""
    claim = start.true
    small = st.integers(1, 4)
    name = draw(st.sampled_from([*start.names]))
    for _ in range(draw(st.integers(1, 3))):
        text, at = claim.text, claim.at
        a, b = draw(small), draw(small)
        step = draw(
            st.sampled_from(["floor", "ceil", "//", "sum", "telescope", "extremes", "expand", "frac"])
        )
        if step == "floor":
            claim = Claim(
                f"⌊{text} + {a}/{a + b}⌋",
                lambda v, f=at, a=a, b=b: Fraction(floor(f(v) + Fraction(a, a + b))),
            )
        if step == "ceil":
            claim = Claim(
                f"ceil({text} - {a}/{a + b})",
                lambda v, f=at, a=a, b=b: Fraction(ceil(f(v) - Fraction(a, a + b))),
            )
        if step == "//":
            claim = Claim(
                f"({a + b}({text}) + {b}) // {a + b}",
                lambda v, f=at, a=a, b=b: Fraction(((a + b) * f(v) + b) // (a + b)),
            )
        if step == "sum":
            claim = Claim(f"{text} + sum({a}, i, 1, n) - {a}n", lambda v, f=at: f(v))
        if step == "telescope":
            claim = Claim(rf"{text} + \sum_{{j=1}}^{{n}} (j^2 - (j - 1)^2) - n^2", lambda v, f=at: f(v))
        if step == "extremes":
            claim = Claim(
                f"{text} + max({name}, {a}) + min({name}, {a}) - {name} - {a}"
                f" + abs({name} - {b}) - max({name} - {b}, {b} - {name})",
                lambda v, f=at: f(v),
            )
        if step == "expand":
            claim = Claim(
                f"{text} + ({name} + {a})({name} - {b}) - {name}^2 - {a - b}*{name} + {a * b}",
                lambda v, f=at: f(v),
            )
        if step == "frac":
            claim = Claim(rf"\frac{{{a}({text})}}{{{a}}}", lambda v, f=at: f(v))
    return claim


@pytest.mark.parametrize("name", RULES)
def test_the_oracle_is_right(name: str) -> None:
    start = RULES[name]
    for values in start.points():
        assert start.true.at(values) == start.rule.mask(**values).sum()
    assert start.count.claim(start.true.text)


@pytest.mark.parametrize("name", RULES)
def test_a_rewritten_formula_holds(name: str) -> None:
    start = RULES[name]

    @settings(max_examples=15, deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        claim = data.draw(rewritten(start))
        verdict = start.count.claim(claim.text)
        assert verdict.status == "holds", str(verdict)

    check()


@pytest.mark.parametrize("name", RULES)
def test_a_changed_formula_fails_with_a_true_counterexample(name: str) -> None:
    start = RULES[name]

    @settings(max_examples=15, deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        claim = data.draw(rewritten(start))
        change = data.draw(st.sampled_from([-2, -1, 1, 3]))
        if data.draw(st.booleans()):
            wrong = Claim(f"{claim.text} + {change}", lambda v: claim.at(v) + change)
        else:
            factor = Fraction(change + 5, 5)
            wrong = Claim(
                f"{factor.numerator}*({claim.text})/{factor.denominator}", lambda v: claim.at(v) * factor
            )
        verdict = start.count.claim(wrong.text)
        assert verdict.status in ("fails", "holds only where"), str(verdict)
        found = verdict.counterexample
        assert found is not None
        exact = int(start.rule.mask(**found.values).sum())
        assert found.exact == exact
        assert found.claimed == wrong.at(found.values) != exact
        assert all(value >= 1 for value in found.values.values())  # there is one with n >= 1 and t >= 1

    check()


@pytest.mark.parametrize("name", ["strided", "windowed", "every other"])
def test_where_a_claim_holds_is_where_it_does(name: str) -> None:
    start = RULES[name]
    parts = [f"min({x}, {y})" for x, y in itertools.permutations([*start.names, "3"], 2)]
    parts += ["n // 2", "n % 3", "n", "1", *(f"n // {x}" for x in start.count.rule.moduli)]

    @settings(max_examples=20, deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        one, other = (data.draw(st.sampled_from(parts)) for _ in range(2))
        verdict = start.count.claim(f"{start.true.text} + {one} - {other}")
        places = [place for place in (verdict.where, verdict.remaining) if place not in ("", "nowhere")]
        if any(word in place for word in ("longer", "perhaps", "anywhere") for place in places):
            return  # not all of it is said
        condition: Any = ALWAYS if verdict else NEVER
        if places and not verdict:
            said = " or ".join(f"({place})" for place in places)
            condition = parse_claim(f"1 when {said}; 0", {*start.names}).sides[0].node
        gap = parse_claim(f"{one} - ({other})", {*start.names}).sides[0].node
        for values in start.points():
            held = condition if isinstance(condition, int) else value_at(condition, values)
            assert bool(held) == (value_at(cast(Any, gap), values) == 0), (str(verdict), values)

    check()


# Families that were undecided


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("strided", r"\sum_{i=1}^n \min(i, t+1)"),
        ("strided", r"\sum_{q=0}^{n-1} (q + 1 - \max(q - t, 0))"),
        ("strided", r"\sum_{q=0}^{n-1} \sum_{k=\max(q-t,0)}^{q} 1"),
        ("windowed", r"\sum_{q=0}^{n-1} (q % w + 1)"),
        ("windowed", r"\sum_{q=0}^{n-1} (q - w*(q // w) + 1)"),
        ("windowed", r"\sum_{j=1}^{\lfloor n/w \rfloor}\sum_{i=1}^w i + \sum_{i=1}^{n % w} i"),
        ("windowed", r"\sum_{q=0}^{n-1} \sum_{k=w \lfloor q/w \rfloor}^{q} 1"),
        ("causal", "n(n+1)//2"),
        ("causal", "⌊n(n+1)/2⌋"),
        ("causal", r"\sum_{i=1}^{n} \lfloor (2i + 1)/2 \rfloor"),
        ("windowed", "⌊(n//w)*w(w + 1)/2 + (n%w)(n%w + 1)/2 + 3/7⌋"),
        ("causal", "⌊(n(n + 1)(n + 2)/6 + n(n + 1)/2)/1⌋ - n(n + 1)(n + 2)/6"),
        ("every other", "(n+1)^2 // 4"),
        ("every other", r"\sum_{q=0}^{n-1} (q // 2 + 1)"),
        ("every other", r"\lfloor n/2 \rfloor \lceil n/2 \rceil + \lceil n/2 \rceil"),
        ("every other", "n(n + 2)/4 when 2 divides n; (n + 1)^2/4 otherwise"),
    ],
)
def test_sums_and_floors_that_hold(name: str, formula: str) -> None:
    verdict = RULES[name].count.claim(formula)
    assert verdict.status == "holds", str(verdict)
    wrong = RULES[name].count.claim(
        f"{formula} + 1" if " when " not in formula else formula.replace("+ 2", "+ 6")
    )
    assert wrong.status in ("fails", "holds only where") and wrong.counterexample is not None
    found = wrong.counterexample
    assert found.exact == RULES[name].rule.mask(**found.values).sum() != found.claimed


def test_a_sum_of_whole_blocks_holds_where_they_fill_the_sequence() -> None:
    formula = r"\sum_{j=1}^{n/w}\sum_{i=1}^w i"
    verdict = RULES["windowed"].count.claim(formula)
    assert (verdict.status, verdict.where) == ("holds only where", "w divides n")
    assert RULES["windowed"].count.claim(formula, assuming="w | n")


def test_a_division_by_zero_is_left_out_of_a_condition() -> None:
    verdict = RULES["strided"].count.claim("n^2/t")
    assert verdict.where == "(n == 0 and t >= 1) or (2n^2 - t(2n - t)(t + 1) == 0 and 1 <= t <= n)"


@pytest.mark.parametrize(
    ("name", "formula", "status"),
    [
        ("windowed", "Theta(n*min(n,w))", "holds"),
        ("windowed", "Theta(n*w)", "fails"),
        ("windowed", "O(max(n, w)^2)", "holds"),
        ("strided", "Theta(n*min(n,t+1))", "holds"),
    ],
)
def test_orders_with_extremes(name: str, formula: str, status: str) -> None:
    assert RULES[name].count.claim(formula).status == status


# Orders are not counts


def test_an_order_has_no_truth_value() -> None:
    verdict = lt.rule("strided(7)").count().claim("O(n)")
    assert verdict.holds and str(verdict) == "O(n): holds as n grows"
    with pytest.raises(
        lt.errors.NamingError, match=r'"O\(n\)" is about growth.* ask for \.holds, or claim\(…, exact'
    ):
        bool(verdict)
    exact = lt.rule("strided(7)").count().claim("O(n)", exact=True)
    assert not exact and str(exact) == "O(n): fails; O(n) says how the count grows, not what it is"
    assert lt.rule("strided(7)").count().claim("n", exact=True).status == "fails"


def test_a_chain_that_gives_the_count_and_its_order_is_true() -> None:
    count = RULES["causal"].count
    assert count.claim("N = n(n+1)/2 = O(n^2)")
    assert not count.claim("N = n(n+1)/2 = O(n^2)", exact=True)
    with pytest.raises(lt.errors.NamingError):
        bool(count.claim("O(n^2) = O(n^3)"))


@pytest.mark.parametrize(
    ("text", "assuming", "said"),
    [
        ("O(n t)", None, "O(n t): holds, not tight: the order is O(n*t) when t <= n; O(n^2) when t > n"),
        ("Theta(n t)", "1 <= t <= n", "Theta(n t): holds as n and t grow, for 1 <= t <= n"),
        ("n(t+1)", "n >= 5", "n(t+1): holds only where t == 0; at n = 5, t = 1 it gives 10, the count is 9"),
        ("(2n - t)(t + 1)/2", "n >= 5, t == 2", "(2n - t)(t + 1)/2: holds for n >= 5, t == 2"),
    ],
)
def test_conditions_under_assumptions(text: str, assuming: str | None, said: str) -> None:
    assert str(lt.rules.strided().count().claim(text, assuming=assuming)) == said


def test_what_follows_from_an_assumption_is_not_said_again() -> None:
    verdict = lt.rule("strided(3)").count().claim("4n - 6", assuming="n >= 5")
    assert str(verdict) == "4n - 6: holds for n >= 5"


# Other counts of the same rule


def test_a_claim_that_is_another_count_is_told_which() -> None:
    ((how, _),) = RULES["causal"].count.claim("n^2").instead
    assert how == "this is the dense count, of all pairs whether attended or not"
    per_query = lt.rules.causal().count(per="query")
    ((how, _),) = per_query.claim("n(n+1)/2").instead
    assert how == "this is the count of all pairs, not per query"
    assert RULES["causal"].count.claim("n^2 + 1").instead == ()
