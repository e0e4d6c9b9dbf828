"""Exact numbers and formulas, written and read again."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import mpmath
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from lattend.errors import TextError
from lattend.study.exact.formula import formula
from lattend.study.exact.writing import decimal, format_exact, latex

h = sympy.Symbol("h", real=True)
fractions = st.fractions(min_value=-9, max_value=9, max_denominator=12)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (sympy.E / (1 + 2 * sympy.E + sympy.exp(2)), "e/(e^2 + 2e + 1)"),
        (sympy.exp(sympy.sqrt(2) / 2), "e^(sqrt(2)/2)"),
        (sympy.exp(-2), "1/e^2"),
        (1 + sympy.I * h, "1 + i*h"),
        (1 - h**2 / 2 + sympy.I * h * sympy.sqrt(4 - h**2) / 2, "1 - h^2/2 + i*h*sqrt(4 - h^2)/2"),
        (-(h + 1), "-h - 1"),
        (-2 / (3 * h), "-2/(3h)"),
        (2 * sympy.sin(sympy.pi / 7), "2sin(pi/7)"),
        (2 * sympy.Integer(3) ** h, "2*3^h"),
    ],
)
def test_written_as_people_do(value: sympy.Expr, written: str) -> None:
    assert format_exact(value) == written


expressions = st.recursive(
    st.one_of(
        fractions.map(lambda f: sympy.Rational(f.numerator, f.denominator)),
        st.sampled_from([h, sympy.Symbol("p", real=True), sympy.E, sympy.pi, sympy.sqrt(2), sympy.exp(h)]),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(sum),
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, st.integers(1, 3)).map(lambda pair: pair[0] ** pair[1]),
    ),
    max_leaves=6,
)


@given(expressions)
def test_what_is_written_is_read_again(value: sympy.Expr) -> None:
    again = formula(format_exact(value))
    at = {symbol: sympy.Rational(3, 7) for symbol in value.free_symbols | again.free_symbols}
    assert abs(sympy.N((again - value).subs(at), 30)) < 1e-12 * (1 + abs(sympy.N(value.subs(at), 30)))


@given(fractions, st.integers(0, 6))
def test_decimals_of_fractions_round_halves_away_from_0(value: Fraction, places: int) -> None:
    wanted = (Decimal(value.numerator) / Decimal(value.denominator)).quantize(
        Decimal(1).scaleb(-places), ROUND_HALF_UP
    )
    result = decimal(sympy.Rational(value.numerator, value.denominator), places)
    assert Decimal(result) == wanted
    assert len(result.partition(".")[2]) == places
    assert not result.startswith("-0") or Decimal(result) != 0


@given(st.integers(-30, 30), st.integers(0, 8))
def test_decimals_of_powers_of_e(power: int, places: int) -> None:
    with mpmath.workdps(60):
        wanted = int(mpmath.nint(mpmath.exp(power) * 10**places))
    assert int(decimal(sympy.exp(power), places).replace(".", "")) == wanted


def test_a_number_that_seems_whole_is_not_rounded_too_early() -> None:
    ramanujan = sympy.exp(sympy.pi * sympy.sqrt(163))  # 262537412640768743.99999999999925
    assert decimal(ramanujan, 12) == "262537412640768743.999999999999"
    tie = sympy.Rational(1, 2) + sympy.exp(-100)  # its first 43 digits are those of a tie
    assert (decimal(tie, 0), decimal(tie - 2 * sympy.exp(-100), 0)) == ("1", "0")


def test_latex() -> None:
    assert latex(sympy.exp(2) / 3) == r"\frac{e^{2}}{3}"


@pytest.mark.parametrize(
    ("typed", "message", "marked"),
    [
        ("p*", "formula: something is missing at the end", "^"),
        ("(p + q", "formula: this ( is never closed; write ) where it ends", "("),
        ("p +* q", "formula: * is not expected here", "*"),
        ("1/(p - p)", "formula: division by 0", "(p - p)"),
        ("foo(2)", "formula: foo is not a function; there are exp, log", "foo"),
        ("log(-1)", "formula: log of -1 is not a real number", "log"),
        ("p & q", "formula: & is not part of a formula", "&"),
        ("", "formula: there is no formula", "^"),
        ("p^2000", "formula: a power of at most 1,000", "2000"),
        ("((9^1000)^1000)^1000*p*q", "formula: a number with more than 4,000 digits", "1000"),
        ("((2p)^1000)^1000*q", "formula: a number with more than 4,000 digits", "1000"),
        ("((p^1000)^1000)*q", "formula: powers of powers: at most 1,000 in all", "1000"),
        ("1e1000000000", "formula: a power of at most 1,000", "1e1000000000"),
        ("sin p", "formula: sin needs brackets, as in sin(x)", "sin"),
        ("(" * 100 + "p", "formula: this is more than 60 levels deep", "("),
        ("p^" * 900 + "2", "formula: this is more than 60 levels deep", "^"),
        ("-" * 900 + "p", "formula: this is more than 60 levels deep", "-"),
        ("__import__(os)", "formula: __import__ is not a function", "__import__"),
    ],
)
def test_what_is_no_formula(typed: str, message: str, marked: str) -> None:
    with pytest.raises(TextError) as error:
        formula(typed)
    assert str(error.value).startswith(message)
    assert typed[error.value.start : error.value.end] in (marked, "")


def test_only_the_names_given() -> None:
    assert formula("e*p", names=["e", "p"]).free_symbols == {sympy.Symbol(name, real=True) for name in "ep"}
    with pytest.raises(TextError, match="r is not known; the names are p, q"):
        formula("p*r", names=["p", "q"])


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        ("2p", "2*p"),
        ("2(p+1)(q-1)", "2*(p+1)*(q-1)"),
        ("-p^2", "-(p*p)"),
        ("2^3^2", "512"),
        ("p−q·2", "p-q*2"),
    ],
)
def test_the_same_written_otherwise(typed: str, means: str) -> None:
    assert sympy.expand(formula(typed) - formula(means)) == 0
