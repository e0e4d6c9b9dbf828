"""Numbers of a step: rounding as the exact library rounds, lengths, mixtures."""

from decimal import Decimal

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.study.exact import writing
from lattend.study.worked.entry import decimal_of, length, mixture, number, rounded


@settings(max_examples=50, deadline=None)
@given(st.fractions(-1000, 1000, max_denominator=10**6), st.integers(0, 12))
def test_rounding_is_that_of_exact_numbers(value, places):
    """Ties too, which binary floats cannot hold."""
    given_ = sympy.Rational(value.numerator, value.denominator)
    wanted = writing.decimal(given_, places)
    if not wanted.strip("-0."):
        wanted = wanted.lstrip("-")
    assert rounded(decimal_of(given_), places) == wanted


@pytest.mark.parametrize(
    ("value", "text"),
    [("0.00005", "0.0001"), ("-0.00005", "-0.0001"), ("-0.00001", "0.0000"), ("1e9", "1.0000e9")],
)
def test_ties_and_signs(value, text):
    assert rounded(Decimal(value), 4) == text


@settings(max_examples=50, deadline=None)
@given(st.fractions(max_denominator=10**20))
def test_lengths_are_nearly_right(value):
    written = writing.format_exact(sympy.Rational(value.numerator, value.denominator))
    assert abs(length(sympy.Rational(value.numerator, value.denominator)) - len(written)) <= 3


def test_whole_numbers_stay_whole():
    assert number(sympy.Integer(7)).decimal(4) == "7"
    assert number(sympy.Rational(1, 2)).decimal(4) == "0.5000"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-4, 4)), min_size=1, max_size=6))
def test_a_mixture_is_the_quotient_of_sums(pairs):
    scores, parts = ([sympy.Integer(x) for x in side] for side in zip(*pairs, strict=True))
    above = sum(part * sympy.exp(score) for score, part in zip(scores, parts, strict=True))
    below = sum(sympy.exp(score) for score in scores)
    result = mixture(scores, parts, Decimal(0)).exact
    assert abs(sympy.N(result - above / below, 30, maxn=200)) < 1e-25
