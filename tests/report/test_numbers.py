"""Decimals: halves away from 0, decided exactly; one way of rounding for every number."""

import re
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lattend
from lattend.report.numbers import (
    decimal_of,
    fixed,
    fixed_beside,
    format_gap,
    format_share,
    format_weights,
    rounded,
    scientific,
    significant,
)


@pytest.mark.parametrize(
    ("number", "places", "text"),
    [
        (Fraction(3, 32), 4, "0.0938"),
        (Fraction(1, 32), 4, "0.0313"),
        (Fraction(3, 4), 1, "0.8"),
        (-0.125, 2, "-0.13"),
        (0.15, 1, "0.2"),  # a float is its shortest decimal
        (2.5, 0, "3"),
        (Fraction(1, 2) - Fraction(1, 10**90), 0, "0"),
        (Fraction(1, 2) + Fraction(1, 10**90), 0, "1"),
        (Decimal("-0.00001"), 4, "0.0000"),
        (float("inf"), 2, "inf"),
        (float("-inf"), 2, "-inf"),
        (10**5000 // 10**4990, 0, "10000000000"),
        (1e22, 1, "10000000000000000000000.0"),
    ],
)
def test_fixed(number, places, text):
    assert fixed(number, places) == text


@given(st.fractions(-1000, 1000, max_denominator=10**6), st.integers(0, 12))
def test_fixed_is_the_nearest_and_ties_go_outwards(number, places):
    units = abs(number) * 10**places
    nearest = int(units + Fraction(1, 2)) * (1 if number >= 0 else -1)
    assert Fraction(fixed(number, places)) == Fraction(nearest, 10**places)


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (0.0066928509, 6, "0.00669285"),
        (0.1234565, 6, "0.123457"),
        (-2.0, 6, "-2"),
        (1.5e-12, 6, "1.5e-12"),
        (1e300, 3, "1e300"),
        (Fraction(25, 10), 1, "3"),
        (999999.5, 6, "1e6"),
        (0.0, 6, "0"),
        (-0.0, 6, "0"),
        (200, 6, "200"),
        (Decimal("-1.23456789e400"), 6, "-1.23457e400"),
        (float("nan"), 3, "nan"),
    ],
)
def test_significant(number, digits, text):
    assert significant(number, digits) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(10**9, "1.0000e9"), (1000050000, "1.0001e9"), (Decimal("2.5e434294"), "2.5000e434294")],
)
def test_scientific(number, text):
    assert scientific(number, 4) == text


def test_a_fraction_cut_to_sixty_digits_still_rounds_as_itself():
    """The last digit of the cut one says that more follow, so that a half is a half only if it is one."""
    over = Fraction(1, 2) + Fraction(1, 10**90)
    assert decimal_of(over) > Decimal("0.5")
    assert decimal_of(over).quantize(Decimal(1), ROUND_HALF_UP) == 1


@pytest.mark.parametrize("name", ["study", "cost", "cli", "tour"])
def test_decimals_are_written_nowhere_else(name):
    """A format such as .4f rounds halves to even, and decides by the binary float."""
    folder = Path(lattend.__file__).parent / name
    rounding = re.compile(r":[^{}\"' ]*\.[{\w]+\}?[efg]\}|:[efg]\}")
    found = [
        f"{path.relative_to(folder)}: {line.strip()}"
        for path in sorted(folder.rglob("*.py"))
        if path.name != "numbers.py"
        for line in path.read_text().splitlines()
        if rounding.search(line) and not re.search(r"\{[A-Z]+:g\}", line)  # constants are not rounded
    ]
    assert not found


def test_rounded_and_shares():
    assert [rounded(x, 2) for x in (1234.0, 0.125, 1234.5, 100)] == ["1,234", "0.13", "1,234.5", "100"]
    assert (format_share(1.14349), format_share(0.00049, 2)) == ("114.3%", "0.05%")


def exact_weights(scores):
    """The softmax in a thousand digits, an oracle for weights next to 0 and 1."""
    with localcontext() as context:
        context.prec = 1000
        powers = [Decimal(score).exp() for score in scores]
        return [power / sum(powers) for power in powers]


@given(st.lists(st.floats(-600, 600), min_size=1, max_size=6), st.sampled_from([3, 6]))
def test_a_weight_is_0_or_1_only_where_it_is_exactly_that(scores, digits):
    texts = format_weights(np.array(scores), digits)
    for text, weight in zip(texts, exact_weights(scores), strict=True):
        with localcontext() as context:
            context.prec = 1000
            first, _, rest = text.replace(" − ", "~").replace("−", "-").partition("~")
            shown = Decimal(first) - Decimal(rest or 0)
            assert (shown in (0, 1)) == (weight in (0, 1)) == (len(scores) == 1)
            assert abs(shown - weight) <= weight * Decimal(f"0.51e{1 - digits}")
            if 1 - weight < Decimal(f"0.5e{-digits}"):  # two digits of what is missing to 1
                assert abs(shown - weight) <= (1 - weight) * Decimal("0.06")


def test_the_weight_of_a_sharp_head_is_below_1():
    assert format_weights(np.array([0.0, -10, -10, -10, -10]))[0] == "0.99982"
    assert format_weights(np.array([0.0, -100, -100, -100, -100]))[0] == "1 − 1.5e−43"


@given(st.floats(0, 1), st.integers(0, 3))
def test_a_share_is_0_or_100_percent_only_where_it_is_exactly_that(share, places):
    text = format_share(share, places)
    assert (re.fullmatch(r"(0|100)(\.0+)?%", text) is not None) == (share in (0, 1))


@pytest.mark.parametrize(("number", "text"), [(0.99996, "0.99996"), (1.0, "1.000"), (1.2e-5, "0.00001")])
def test_a_factor_beside_1(number, text):
    assert fixed_beside(number, 3, 0, 1) == text


@pytest.mark.parametrize(("number", "text"), [(-3e-5, "−0.00003"), (3e-16, "0.0000"), (1234.5, "1,234.5000")])
def test_a_gap_is_0_only_up_to_rounding(number, text):
    assert format_gap(number) == text
