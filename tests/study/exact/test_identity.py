"""is_zero and limit, on identities and on what is close to one."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from lattend.study.exact.sign import is_zero, limit

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
