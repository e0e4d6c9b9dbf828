"""Signs of exact numbers: 0 is proved, what is close to 0 is not 0."""

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.errors import DomainError
from lattend.study.exact.numbers import exact
from lattend.study.exact.sign import sign_of


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
