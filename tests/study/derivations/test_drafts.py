"""Derivations: every line checked, texts and files, and lines that are changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import DomainError
from lattend.study.derivations.draft import HOMES, Chain, Draft, Instances, Link, checked, draft, tried

NUMBER = re.compile(r"(?<![\w_])\d+(?!\w*_)")


@cache
def written(name: str) -> Draft:
    return draft(name)()


def links(name: str) -> Iterator[tuple[Chain, str, Link]]:
    """Every line of a derivation with the formula before it."""
    for chain in written(name).chains:
        before = chain.left
        for link in chain.links:
            yield chain, before, link
            before = link.formula


def fails(name: str, chain: Chain, before: str, link: Link) -> bool:
    read = written(name).read
    try:
        chain.ground.check(read(before), link, read(link.formula))
    except lt.errors.LattendError:
        return True
    return False


EVERY = [(name, place) for name in HOMES for place, _ in enumerate(links(name))]


@pytest.mark.parametrize("name", HOMES)
def test_every_line_is_checked(name: str) -> None:
    result = lt.study.derive(name)
    assert len(result) == sum(len(chain.links) for chain in written(name).chains)
    assert all(line.checked and line.reason for line in result)


@pytest.mark.parametrize(("name", "place"), EVERY)
def test_a_line_with_another_number_in_it_fails(name: str, place: int) -> None:
    chain, before, link = list(links(name))[place]
    if link.relation != "=":
        return
    for number in NUMBER.finditer(link.formula):
        wrong = f"{link.formula[: number.start()]}{int(number[0]) + 1}{link.formula[number.end() :]}"
        assert fails(name, chain, before, replace(link, formula=wrong)), wrong


@pytest.mark.parametrize(("name", "place"), EVERY)
def test_every_line_can_fail(name: str, place: int) -> None:
    """Lines without a number in them too: twice what they say, the line itself, or 1 more."""
    chain, before, link = list(links(name))[place]
    wrong = {
        "=": "1" if link.formula == "0" else f"2*({link.formula})",
        "≠": before,
        "≥": f"{before} + 1/1000",
        "→": f"{link.formula} + 1" if link.formula != "(V[a] + V[b])/2" else "V[a]",
    }
    assert fails(name, chain, before, replace(link, formula=wrong[link.relation]))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(EVERY), st.integers(1, 9), st.integers(1, 9))
def test_a_line_times_another_number_fails(line: tuple[str, int], above: int, below: int) -> None:
    chain, before, link = list(links(line[0]))[line[1]]
    if above == below or link.relation not in ("=", "→"):
        return
    wrong = f"{above}/{below}" if link.formula == "0" else f"{above}/{below} * ({link.formula})"
    assert fails(line[0], chain, before, replace(link, formula=wrong))


def test_a_wrong_line_is_not_shown() -> None:
    right = written("causal")
    chain = right.chains[1]
    wrong = replace(chain, links=[*chain.links[:-1], replace(chain.links[-1], formula="n (n - 1)/2")])
    with pytest.raises(
        lt.errors.DerivationError, match=r"causal, line 5: .* at n = 1 it gives 0, the count is 1"
    ):
        checked(replace(right, chains=[wrong]))


def test_what_is_shown_is_what_is_claimed() -> None:
    chain = written("causal").chains[1]
    shown = written("causal").read("n (n + 1)/3")
    with pytest.raises(lt.errors.DerivationError, match="is read as two formulas, which differ at"):
        chain.ground.check(shown, chain.links[-1], shown)


def test_a_wrong_domain_is_an_error() -> None:
    right = written("strided")
    links = [replace(link, domain="n >= 0 and t >= 0") for link in right.chains[1].links]
    with pytest.raises(lt.errors.DerivationError, match="it holds where t < n"):
        checked(replace(right, chains=[replace(right.chains[1], links=links)]))


@pytest.mark.parametrize("method", ["alternating", "simultaneous", "optimistic", "extragradient", "momentum"])
@pytest.mark.parametrize("step", [1, "h", "1/3", "sqrt(3)"])
@pytest.mark.parametrize("f", ["p*q", "p*q - p^2/4"])
def test_steps_of_other_games(f: str, step: object, method: str) -> None:
    result = lt.study.derive("game", f=f, step=step, method=method)
    assert {str(line).partition(" = ")[0] for line in result if line.left} >= {"f_p", "f_q", "p'", "q'", "f'"}


def test_the_step_of_the_game() -> None:
    """As it is asked: p', q' and f' in terms of p and q."""
    lines = [str(line) for line in lt.study.derive("game")]
    assert lines[-4:] == ["p' = p − q'", "= −q", "f' = p'q'", "= −q(p + q)"]
    assert "q' = q + p" in lines


def test_a_game_that_is_no_polynomial_is_refused() -> None:
    with pytest.raises(lt.errors.DomainError, match="a step is derived for polynomials"):
        lt.study.derive("game", f="exp(p)*q")


def test_the_random_models_are_the_same_at_every_call() -> None:
    first, second = (draft("elbo")().chains[0].ground for _ in range(2))
    assert isinstance(first, Instances) and isinstance(second, Instances)
    values = [ground.values(written("elbo").read("p(x)")) for ground in (first, second)]
    assert values[0] == values[1]
    assert len(set(values[0])) > 5  # and not all alike


@pytest.mark.parametrize("name", HOMES)
def test_every_line_of_every_derivation_holds(name: str) -> None:
    assert {line.verdict for line in tried(draft(name)())} == {"holds"}


def test_a_line_said_otherwise_holds() -> None:
    lines = tried(draft("causal")(), {6: "(n^2 + n)/2"})
    assert lines[5].verdict == "holds"
    assert lines[5].line is not None
    assert lines[5].line.formula == "= (n² + n)/2"


def test_a_wrong_line_refutes_itself_and_the_next() -> None:
    lines = tried(draft("elbo")(), {2: "sum(q(z|x) log(p(x,z)), z)"})
    assert [line.verdict for line in lines] == ["holds", "refuted", "refuted", "holds", "holds", "holds"]
    assert "the left side is log(60/91)" in lines[1].said


def test_an_inequality_the_wrong_way_is_refuted() -> None:
    bound = "sum(q(z|x) log(p(x,z)/q(z|x)), z)"
    lines = tried(draft("elbo")(), {5: f"{bound} + 1"})
    assert lines[4].verdict == "refuted"
    assert tried(draft("elbo")(), {5: f"{bound} - 1"})[4].verdict == "holds"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("((", "not expected here"),
        ("sum(x)", "sum runs over an index"),
        ("💥", "is not part of a formula"),
    ],
)
def test_a_text_that_is_no_formula_is_not_read(text: str, said: str) -> None:
    line = tried(draft("elbo")(), {1: text})[0]
    assert (line.verdict, line.line) == ("unread", None)
    assert said in line.said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("w", "w has no value here"),
        ("9^9^9^9", "a power of at most 1,000"),
        ("sum(1, i, 1, 10^9)", "a sum of 1,000,000,000 terms is too long"),
        ("softmax(x)", "has no value of the kind"),
    ],
)
def test_a_formula_without_a_value_is_refuted(text: str, said: str) -> None:
    line = tried(draft("elbo")(), {1: text})[0]
    assert line.verdict == "refuted"
    assert said in line.said


def test_a_growth_rate_is_no_number_of_pairs() -> None:
    assert tried(draft("causal")(), {6: "O(n^2)"})[5].said == "O(n^2) is a growth rate, not a number of pairs"


def test_a_line_that_there_is_not_is_named() -> None:
    with pytest.raises(DomainError, match="causal has lines 1 to 6, and no 7"):
        tried(draft("causal")(), {7: "n"})
