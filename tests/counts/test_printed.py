"""What is printed is what is computed: every printed formula, read back, gives the count where it says."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import pytest

import lattend as lt
from lattend.counts import Count
from lattend.counts.formula import BigO, value_at
from lattend.counts.formula_parser import parse_claim, parse_formula
from lattend.counts.latex import formula_latex
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.parser import parse_assumption

R = lt.rules
COUNTS = {
    **{name: make().count() for name, make in R.CATALOGUE.items() if name != "documents"},
    **{
        f"{name} per {per}": R.CATALOGUE[name]().count(per=per)
        for name in ("strided", "windowed", "dilated", "sparse_fixed", "chunked", "axial", "swin")
        for per in ("query", "key")
    },
    **{f"reach of {name}": R.CATALOGUE[name]().reach().back for name in ("strided", "bigbird", "chunked")},
    "windowed, w = 4": R.windowed(4).count(),
    "windowed, n = 10": R.windowed().count(n=10),
    "windowed, 4 | n": R.windowed(4).count().assuming("4 | n"),
    "strided, t = 3": R.strided(3).count(),
    "swin, w = 4": R.swin(w=4).count(),
    "neighbourhood, r = 1": R.neighbourhood(1).count(),
    "every third": lt.rule("(q - k) % 3 == 0").count(),
    "halves": lt.rule("q // 2 >= k and q <= t").count(),
}


def values_for(count: Count) -> Iterator[dict[str, int]]:
    names = count.names
    upto = {1: 12, 2: 6, 3: 4, 4: 3}.get(len(names), 2)
    for numbers in itertools.product(range(upto + 1), repeat=len(names)):
        values = dict(zip(names, numbers, strict=True))
        try:
            count.at(**values)
        except lt.errors.DomainError:
            continue
        if count.closed.domain.holds({**count.values, **values}):
            yield values


def holds(when: str, values: dict[str, int]) -> bool:
    if when in ("", "otherwise"):
        return True
    text = re.sub(r"(\w+) does not divide (\w+|\([^)]*\))", r"\2 % \1 != 0", when)
    text = re.sub(r"(\w+) divides (\w+|\([^)]*\))", r"\2 % \1 == 0", text)
    text = re.sub(r"\b(\d+)\(", r"\1*(", re.sub(r"\b(\d+)([a-z])", r"\1*\2", text))
    return bool(evaluate(parse_assumption(text), values, {}))


@pytest.mark.parametrize("name", COUNTS)
def test_printed_formulas_give_the_count(name: str) -> None:
    count = COUNTS[name]
    lines, where = count.format_pieces(short=False)
    assert where == ""
    known = {*count.names, *count.values}
    formulas = [(parse_formula(line.formula, known), line.when) for line in lines]
    cases = 0
    for values in values_for(count):
        everything = {**count.values, **values}
        formula = next(formula for formula, when in formulas if holds(when, everything))
        assert not isinstance(formula, BigO)
        assert value_at(formula, everything) == Fraction(count.at(**values)), (values, lines)
        cases += 1
    assert cases


# Claims of a product of ten pieces by ten take seconds
MANY = ("swin per query", "swin per key")
CLAIMED = {
    **{name: count for name, count in COUNTS.items() if not name.startswith("reach") and name not in MANY},
    **{
        f"{name} per {per}": make().count(per=per)
        for name, make in R.CATALOGUE.items()
        if name not in ("documents", "swin")
        for per in ("query", "key")
    },
    **{f"windowed, n = {n}": R.windowed().count(n=n) for n in (0, 1, 12, 13, 60)},
    "strided, n = 9": R.strided().count(n=9),
    "sparse_strided, n = 12": R.sparse_strided().count(n=12),
}


@pytest.mark.parametrize("name", CLAIMED)
def test_what_is_printed_holds_as_a_claim(name: str) -> None:
    count = CLAIMED[name]
    assert isinstance(count, Count)
    for text in (str(count), count.latex()):
        verdict = count.claim(text)
        assert verdict and verdict.status == "holds", str(verdict)
    ours = parse_claim(str(count), {*count.names, *count.values}).sides[0].node
    again = count.claim(formula_latex(ours))
    assert again, str(again)


@pytest.mark.long
@pytest.mark.parametrize("name", MANY)
def test_many_pieces_hold_as_a_claim(name: str) -> None:
    assert COUNTS[name].claim(str(COUNTS[name])) and COUNTS[name].claim(COUNTS[name].latex())


@pytest.mark.parametrize("name", CLAIMED)
def test_a_printed_count_with_one_more_fails(name: str) -> None:
    count = CLAIMED[name]
    pieces, _ = count.format_pieces(short=False)
    if len(pieces) > 6:
        return
    text = "; ".join(
        f"{p.formula} + 1 when {p.when}" if p.when not in ("", "otherwise") else f"{p.formula} + 1"
        for p in pieces
    )
    verdict = count.claim(text)
    assert verdict.status == "fails" and verdict.counterexample is not None, str(verdict)
    at = verdict.counterexample.values
    exact = count.number({**count.values, **at})
    assert (verdict.counterexample.exact, verdict.counterexample.claimed) == (exact, exact + 1)


def test_short_names_need_no_definition() -> None:
    verdict = R.windowed().count().claim("w*N(w + 1)/2 + r(r + 1)/2")
    assert verdict and verdict.readings == ("N read as n // w", "r read as n % w")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n when t <= n; … and 8 more pieces; .pieces has them all", "these pieces are left out"),
        ("n when t", "a condition compares two formulas"),
        ("N where 2 = n", "after where comes what a short name stands for"),
        ("n(n + 1)/2, n = 3", "n is a name of the count itself"),
        ("N where N", "write what N stands for"),
        ("F(n, t) where F(n) = n", r"F\(n\) is defined, and here it has 2 parts"),
        (r"\begin{cases} n & \text{if } t \le n", "a formula is missing|cannot stand here|is never closed"),
        ("n <= t", "a claim is an equation"),
        (
            "a where " + ", ".join(f"{x} = {y} // {y} + {y}" for x, y in pairwise("abcdefghijlmop")),
            "more than 5,000 parts",
        ),
        (f"{'F(' * 20}n{')' * 20} where F(n) = min(n, n)", "more than 5,000 parts"),
    ],
)
def test_pieces_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(lt.errors.TextError, match=message):
        R.strided().count().claim(text)


def test_words_of_conditions_may_be_names_of_the_rule() -> None:
    assert (
        lt.rule("k <= q and q - k <= when", where="when >= 0")
        .count()
        .claim("when + 1 + (n - 1)(when + 1) - when(when + 1)/2", assuming="when <= n")
    )


@pytest.mark.parametrize("name", COUNTS)
def test_no_line_is_printed_twice(name: str) -> None:
    lines, _ = COUNTS[name].format_pieces()
    assert len({(line.formula, line.when) for line in lines}) == len(lines)
