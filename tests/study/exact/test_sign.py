"""Signs, zeros, limits and the signs of eigenvalues of exact expressions."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.errors import DomainError
from lattend.study.exact.numbers import exact
from lattend.study.exact.sign import inertia, is_zero, limit, sign_of


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "sqrt(5 + 2*sqrt(6)) - sqrt(2) - sqrt(3)",  # (√2 + √3)² = 5 + 2√6
        "sin(1)^2 + cos(1)^2 - 1",
        "(26 + 15*sqrt(3))^(1/3) - 2 - sqrt(3)",  # (2 + √3)³ = 26 + 15√3
        "exp(3*log(2)) - 8",
    ],
)
def test_what_is_0_is_proved(text):
    assert sign_of(exact(text)) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-400", 1),
        ("-1/3", -1),
        ("exp(pi*sqrt(163)) - 262537412640768744", -1),  # -7.5e-13, Ramanujan's constant
        ("2^(1/101) - 2^(1/103)", 1),
        ("sqrt(5 + 2*sqrt(6)) - sqrt(2) - sqrt(3) - 1e-300", -1),
    ],
)
def test_what_is_close_to_0_is_not(text, expected):
    assert sign_of(exact(text)) == expected


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 99), st.integers(2, 99), st.integers(-200, 200))
def test_against_fifty_digits(a, b, c):
    """√a + √b against the fraction c/10, which it may be: √4 + √9 = 50/10."""
    with mpmath.workdps(50):
        difference = mpmath.sqrt(a) + mpmath.sqrt(b) - mpmath.mpf(c) / 10
        expected = 0 if abs(difference) < 1e-40 else int(mpmath.sign(difference))
    assert sign_of(sympy.sqrt(a) + sympy.sqrt(b) - sympy.Rational(c, 10)) == expected


def test_what_cannot_be_decided_is_said():
    machin = exact("4*atan(1/5) - atan(1/239) - pi/4")
    for number in (machin, sympy.log(1 + sympy.pi / 10**2000)):
        with pytest.raises(DomainError, match=r"whether .* is 0 or only close to it could not be decided"):
            sign_of(number)
    with pytest.raises(DomainError, match=r"sqrt\(sin\(4\)\) is not a real number"):
        sign_of(sympy.sqrt(sympy.sin(4)))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.data())
def test_inertia_against_floats(n: int, data: st.DataObject) -> None:
    half = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=n * n, max_size=n * n))).reshape(n, n)
    whole = half + half.T
    values = np.linalg.eigvalsh(whole)
    result = inertia([[sympy.QQ(int(x)) for x in row] for row in whole], sympy.QQ)
    zero = n - int(np.linalg.matrix_rank(whole))
    assert result == ((values > 1e-9).sum(), (values < -1e-9).sum(), zero)
    assert result.positive == (values.min() > 1e-9)


a, b = sympy.symbols("a b", real=True)
E = sympy.exp
ZERO = [
    E(a / 2) ** 2 - E(a),
    E(a + b) - E(a) * E(b),
    E(2) / (E(2) + 1) - 1 / (1 + E(-2)),
    sympy.log(sympy.Rational(9, 4)) / 2 - sympy.log(3) + sympy.log(2),
    (a + b) ** 2 - a**2 - 2 * a * b - b**2,
    sympy.sqrt(a**2 + b**2) ** 2 - a**2 - b**2,
    sympy.sqrt(3) * (1 + sympy.sqrt(3)) - sympy.sqrt(3) - 3,
    sympy.Integer(0),
]


@pytest.mark.parametrize("value", ZERO)
def test_identities(value: sympy.Expr) -> None:
    assert is_zero(value)
    assert not is_zero(value + sympy.Rational(1, 10**30))
    assert not is_zero(value + E(a) - E(2 * a))
    assert not is_zero(value + sympy.log(7) - sympy.log(5))


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-4, 4)), min_size=1, max_size=5))
def test_sums_of_exponentials_against_their_polynomial(terms: list[tuple[int, int]]) -> None:
    """Σ c e^(ka) is 0 exactly where all its coefficients, collected by k, are."""
    value = sum((c * E(k * a) for c, k in terms), sympy.Integer(0))
    collected = {k: sum(c for c, other in terms if other == k) for _, k in terms}
    assert is_zero(value) == (not any(collected.values()))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (1 / (1 + E(-a)), 1),
        (E(a) * (1 - 1 / (1 + 3 * E(-a) + E(-2 * a))), 3),
        ((2 * E(2 * a) + E(a)) / (3 * E(2 * a) - 1), sympy.Rational(2, 3)),
        (E(-a / 2), 0),
        (-3 * E(a), -sympy.oo),
        (a * E(-a), 0),
        (sympy.sqrt(E(a) + 1) / E(a / 2), 1),
        (sympy.Integer(3), 3),
    ],
)
def test_limits(value: sympy.Expr, wanted: object) -> None:
    assert limit(value, "a") == wanted
