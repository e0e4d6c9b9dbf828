"""Real roots of polynomials and of systems of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from lattend.study.exact.function import Function, first_change, symbols
from lattend.study.exact.numbers import fraction, number_field
from lattend.study.exact.roots import at_most, between, positive_roots, real_roots, solve
from lattend.study.exact.writing import equation_text, number_text, polynomial_text

X = sympy.Symbol("x")


def test_positive_roots_once_and_in_order() -> None:
    result = positive_roots([sympy.Poly(X**3 - X, X), sympy.Poly((X - 1) ** 2 * (X**2 - 3), X)])
    assert result == [1, sympy.sqrt(3)]
    assert positive_roots([sympy.Poly(5, X)]) == []


def test_even_powers_become_square_roots() -> None:
    assert real_roots(sympy.Poly(X**4 - 4 * X**2 + 1, X))[-1] == sympy.sqrt(2) / 2 + sympy.sqrt(6) / 2
    assert [float(r) for r in real_roots(sympy.Poly(X**4 - 2, X))] == pytest.approx([-(2**0.25), 2**0.25])


@given(st.fractions(0, 9, max_denominator=60), st.fractions(0, 9, max_denominator=60))
def test_between_is_the_simplest(a: Fraction, b: Fraction) -> None:
    low, high = sorted((a, b))
    if low == high:
        return
    result = between(sympy.Rational(low), sympy.Rational(high))
    simplest = next(n for n in range(1, 4000) if any(low < Fraction(k, n) < high for k in range(9 * n + 1)))
    assert sympy.Rational(low) < result < sympy.Rational(high) and result.q == simplest


def test_between_surds() -> None:
    assert sympy.sqrt(2) < between(sympy.sqrt(2), sympy.sqrt(2) + sympy.Rational(1, 10**6)) < 1.4142146
    assert between(sympy.sqrt(2), sympy.oo) == 2


def test_fields() -> None:
    field = number_field([sympy.Rational(1, 2), sympy.sqrt(3)])
    assert field is not None and not field.rational
    assert field.back(field.of(sympy.sqrt(3)) ** 2) == 3
    assert (
        number_field([sympy.pi]) is None and number_field([sympy.Rational(2) ** sympy.Rational(1, 9)]) is None
    )
    assert fraction("0.125") == Fraction(1, 8) and fraction("sqrt(2)") is None


def test_functions_on_all_numbers() -> None:
    p, q = symbols(["p", "q"])
    f = Function(p**2 * q - q / 3, (p, q))
    assert f((Fraction(1, 2), Fraction(3)), Fraction) == Fraction(3, 4) - 1
    assert np.allclose(f((np.array([1.0, 2.0]), np.array([3.0, 3.0]))), [2, 11])
    assert Function(sympy.exp(p), (p, q)).terms is None and Function(sympy.sqrt(2) * p, (p, q)).terms is None
    assert f.vanishes((1 / sympy.sqrt(3), 5)) and not f.vanishes((1, 5))
    assert first_change(Function(p * q, (p, q)), 0, (0, 0)) == (0, 0)
    assert first_change(Function(p**4 - p**6, (p, q)), 0, (0, 0)) == (4, 1)


def test_degrees_are_bounded_first() -> None:
    root = sympy.Rational(2) ** sympy.Rational(1, 101) + sympy.Rational(3) ** sympy.Rational(1, 103)
    assert number_field([root]) is None  # its degree is 10,403
    sine = number_field([2 * sympy.sin(sympy.pi / 7)])
    assert sine is not None and sine.degree == 6


def test_between_however_close_and_small() -> None:
    for scale in (sympy.Integer(10) ** -31, sympy.Integer(10) ** 31):
        low, high = sympy.sqrt(2) * scale, sympy.sqrt(2) * scale * (1 + sympy.Integer(10) ** -60)
        assert at_most(low, between(low, high)) and not at_most(high, between(low, high))
    below = sympy.Rational(int(sympy.sqrt(2) * 10**50), 10**50)  # agrees with sqrt(2) to 50 places
    assert positive_roots([sympy.Poly(X**2 - 2, X), sympy.Poly(X - below, X)]) == [below, sympy.sqrt(2)]


def test_functions_beyond_floats_and_domains() -> None:
    p, q = symbols(["p", "q"])
    assert Function(p**1000 * q, (p, q))((3.0, 1.0)) == np.inf
    assert Function(10**999 * p, (p, q))((1.0, 1.0)) == np.inf
    assert Function(10**999 * sympy.exp(p) / 10**998, (p, q))((0.0, 1.0)) == 10
    assert Function(p / q, (p, q))((1.0, 0.0)) == np.inf and np.isnan(Function(p**q, (p, q))((-1.0, 0.5)))
    many = Function((p + q) ** 1000, (p, q))
    assert many.terms is None and many.degree is None and many((0.5, 0.5)) == 1
    assert (
        Function(sympy.sqrt(2) * p * q, (p, q)).degree == 2 and Function(sympy.exp(p), (p, q)).degree is None
    )


def test_kinks() -> None:
    p, q = symbols(["p", "q"])
    f = Function(sympy.Abs(p - 1) * q, (p, q))
    slope = f.derivative(p)
    assert slope.formula == q * sympy.sign(p - 1) and slope.derivative(p).formula == 0
    assert slope((0.0, 2.0)) == -2 and f.kinked((1, 5)) and not f.kinked((2, 5))
    assert Function(sympy.Abs(sympy.log(p)), (p, q)).derivative(p)((0.5, 0.0)) == -2


def test_writing() -> None:
    h, p, q = sympy.symbols("h p q")
    assert polynomial_text(p**2 - (1 - h) * p * q - 2 * q, [p, q]) == "p^2 + (h - 1)*p*q - 2q"
    assert number_text(sympy.sqrt(2) / 2) == "sqrt(2)/2"
    assert number_text(3 * sympy.rootof(X**3 - X - 1, 0)) == "3.974154…"
    assert equation_text(3 * sympy.rootof(X**3 - X - 1, 0)) == "h^3 - 9h - 27 = 0"
    assert equation_text(sympy.sqrt(2)) == ""
    assert number_text(sympy.rootof(X**5 - X - 1, 0)) == "1.167304…"
    assert number_text(sympy.rootof(X**5 - X - 1, 0) / 10**40) == "1.167304…e-40"


def test_systems() -> None:
    x, y, z = sympy.symbols("x y z")
    circle = solve([x**2 + y**2 - 5, x * y - 2], [x, y])
    assert [one.formulas for one in circle.points] == [(-2, -1), (-1, -2), (1, 2), (2, 1)]
    assert solve([x - 1, x - 2], [x]).points == () and solve([x**2 + 1, y], [x, y]).points == ()
    plane = solve([x + y + z - 1], [x, y, z])
    assert len(plane.points) == 1 and plane.curve == (x + y + z - 1,)
    double = solve([(x - 1) ** 2, (y - x) ** 2 * (y + 1)], [x, y])
    assert [one.formulas for one in double.points] == [(1, -1), (1, 1)]
    quintic = solve([x**5 - x - 1, y - x**2], [x, y])
    (only,) = quintic.points
    assert abs(float(only.formulas[1]) - float(only.formulas[0]) ** 2) < 1e-12
    assert "are too many to solve exactly" in solve([x**5, y**5], [x, y]).note
