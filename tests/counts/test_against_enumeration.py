"""Closed forms equal enumeration: random rules, and every catalogue rule at all small sizes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_rules import affine, split

import lattend as lt
from lattend.counts import Count
from lattend.counts.formula import BigO, value_at
from lattend.counts.formula_parser import parse_formula
from lattend.errors import DomainError, NoClosedForm
from lattend.rules import CATALOGUE, Rule
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.parser import parse

SLOW = settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])

VARIANTS = {
    **{name: make() for name, make in CATALOGUE.items() if name not in ("documents",)},
    "causal bottom-right": lt.rules.causal(align="bottom-right"),
    "neighbourhood step": lt.rules.neighbourhood(step="step"),
    "neighbourhood shift": lt.rules.neighbourhood(edge="shift"),
    "neighbourhood shift step": lt.rules.neighbourhood(edge="shift", step="step"),
    "neighbourhood 3-D": lt.rules.neighbourhood(axes=3),
    "neighbourhood 3-D shift": lt.rules.neighbourhood(axes=3, edge="shift"),
}


def small_values(rule: Rule, upto: int) -> Iterator[dict[str, int]]:
    """All values of sizes and parameters up to a number, those outside the domain left out."""
    names = rule.sizes + rule.parameters
    for numbers in itertools.product(range(upto + 1), repeat=len(names)):
        values = dict(zip(names, numbers, strict=True))
        try:
            rule.at(**values)
        except DomainError:
            continue
        yield values


@pytest.mark.parametrize("name", VARIANTS)
def test_every_catalogue_count_is_its_mask(name: str) -> None:
    rule = VARIANTS[name]
    count = rule.count()
    upto = {1: 9, 2: 7, 3: 5, 4: 4, 5: 3}[len(rule.sizes + rule.parameters)]
    cases = 0
    for values in small_values(rule, upto):
        assert count.at(**values) == rule.mask(**values).sum(), values
        cases += 1
    assert cases > 5


@pytest.mark.parametrize("name", VARIANTS)
def test_rows_and_columns_are_those_of_the_mask(name: str) -> None:
    rule = VARIANTS[name]
    rows, columns = rule.count(per="query"), rule.count(per="key")
    queries, keys = [a.query for a in rule.axes], [a.key for a in rule.axes]
    for values in list(small_values(rule, 4 if len(rule.axes) == 1 else 3))[:150]:
        mask = rule.mask(**values)
        axes = tuple(range(len(rule.axes), 2 * len(rule.axes)))
        for place in np.ndindex(mask.shape[: len(rule.axes)]):
            assert rows.at(**values, **dict(zip(queries, place, strict=True))) == mask[place].sum()
        per_key = mask.sum(axis=tuple(range(len(rule.axes))))
        for place in np.ndindex(*(mask.shape[a] for a in axes)):
            assert columns.at(**values, **dict(zip(keys, place, strict=True))) == per_key[place]


def closed(text: str) -> tuple[Rule, Count]:
    """The closed form of a random rule; rules that have none in time, or none at all, are passed over."""
    rule = lt.rule(text)
    try:
        return rule, rule.count(deadline=5)
    except NoClosedForm:
        assume(False)
        raise


def affine_case(text: str, n: int, t: int) -> None:
    rule, count = closed(text)
    values = {name: {"n": n, "t": t}[name] for name in rule.sizes + rule.parameters}
    assert count.at(**values) == rule.mask(**values).sum()


def split_case(text: str, n: int, w: int) -> None:
    try:
        rule, count = closed(text)
    except lt.errors.NotAffineError:
        assume(False)
        raise
    values = {name: {"n": n, "w": w}[name] for name in rule.sizes + rule.parameters}
    assert count.at(**values) == rule.mask(**values).sum()


def printed_case(text: str, n: int, t: int, w: int) -> None:
    """The printed pieces, read again, are the count wherever the printed domain holds."""
    try:
        rule, count = closed(text)
    except lt.errors.NotAffineError:
        assume(False)
        raise
    values = {name: {"n": n, "t": t, "w": w}[name] for name in rule.sizes + rule.parameters}
    attended = int(rule.mask(**values).sum())
    assert count.number(values) == count.at(**values) == attended
    some = dict(list(values.items())[1:])
    if some:
        assert count.at(**some).at(n=n) == rule.at(**some).count().at(n=n) == attended
    if not condition_holds(count.domain_text, values):
        return
    pieces = count.json()["pieces"]
    held = [piece for piece in pieces if piece["when"] not in ("always", "otherwise")]
    held = [piece for piece in held if condition_holds(piece["when"], values)]
    for piece in held or pieces[-1:]:
        formula = parse_formula(piece["count"], tuple(values))
        assert not isinstance(formula, BigO)
        assert value_at(formula, values) == attended, piece


def condition_holds(text: str, values: dict[str, int]) -> bool:
    """A printed condition at numbers: `w divides n` is `n % w == 0`, and 2w is 2*w."""
    text = re.sub(r"(\w+) does not divide (\w+|\([^()]*\))", r"\2 % \1 != 0", text)
    text = re.sub(r"(\w+) divides (\w+|\([^()]*\))", r"\2 % \1 == 0", text)
    text = re.sub(r"(\d)(?=[a-z(])", r"\1*", text)
    return bool(evaluate(parse(text), values, {}))


AFFINE = given(affine(), st.integers(0, 7), st.integers(-3, 9))
SPLIT = given(split(), st.integers(0, 9), st.integers(1, 6))
test_random_affine_rules = SLOW(AFFINE(affine_case))
test_random_rules_with_a_modulus = SLOW(SPLIT(split_case))
test_many_random_affine_rules = pytest.mark.long(settings(SLOW, max_examples=2000)(AFFINE(affine_case)))
test_many_random_rules_with_a_modulus = pytest.mark.long(settings(SLOW, max_examples=2000)(SPLIT(split_case)))


WINDOWS = given(
    st.one_of(
        affine(),
        split(),
        st.sampled_from(["k <= q and q // w == k // w and q - k <= t", "q // w == k // w and q - k == t"]),
        st.sampled_from(["q - k >= t", "(q + t) // w == k // w", "k % w <= t", "q // w - k // w <= t"]),
    ),
    st.integers(0, 9),
    st.integers(-4, 9),
    st.integers(1, 6),
)
test_printed_pieces_are_the_count = SLOW(WINDOWS(printed_case))
test_many_printed_pieces_are_the_count = pytest.mark.long(
    settings(SLOW, max_examples=2000)(WINDOWS(printed_case))
)


def test_a_parameter_compared_with_split_positions_is_split_too() -> None:
    rule = lt.rule("k <= q and q - k <= t and (q - k) % w == 0", where="t >= 0")
    count = rule.count(deadline=20)
    for values in small_values(rule, 7):
        assert count.at(**values) == rule.mask(**values).sum(), values


@pytest.mark.parametrize(
    "text", ["k <= q + head", "(q + head) % 3 == k % 3", "abs(q - k) <= 2*head", "k < heads"]
)
def test_heads_are_summed_over(text: str) -> None:
    rule = lt.rule(text)
    count = rule.count()
    for n, heads in itertools.product(range(6), range(4)):
        assert count.at(n=n, heads=heads) == rule.mask(n=n, heads=heads).sum()


@pytest.mark.parametrize(
    "text",
    [
        "qy + qx >= ky + kx",
        "ky <= qy and kx <= qx or qy == kx",
        "rows <= 3 and kx <= qx",
        "kx <= rows and qy == ky",
    ],
)
def test_rules_that_mix_axes(text: str) -> None:
    rule = lt.rule(text)
    count = rule.count(deadline=20)
    for rows, cols in itertools.product(range(5), repeat=2):
        assert count.at(rows=rows, cols=cols) == rule.mask(rows=rows, cols=cols).sum()


@pytest.mark.parametrize(
    "text",
    [
        "q // w == k // w and w % 2 == 0",
        "q // w == k // w and k % w < w // 2",
        "q % w <= (w - 1) // 2 and q == k",
    ],
)
def test_a_modulus_that_is_divided_by_a_number(text: str) -> None:
    rule = lt.rule(text)
    count = rule.count()
    for values in small_values(rule, 7):
        assert count.at(**values) == rule.mask(**values).sum(), values
