"""Which numbers are known exactly, and which are not."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy

from lattend.errors import DomainError, TensorError
from lattend.steering.numbers import read, rounding


def test_exact_numbers() -> None:
    given = [1, 0.1, "1/3", Fraction(2, 7), Decimal("0.25"), np.int8(3), sympy.Rational(1, 9), "1e-3"]
    wanted = [
        1,
        Fraction(1, 10),
        Fraction(1, 3),
        Fraction(2, 7),
        Fraction(1, 4),
        3,
        Fraction(1, 9),
        Fraction(1, 1000),
    ]
    found = read("keys", given)
    assert found.fractions is not None and found.fractions.tolist() == wanted
    assert found.floats.tolist() == [float(x) for x in wanted]


def test_rounded_numbers() -> None:
    assert read("keys", [1 / 3, 1.0]).fractions is None
    assert read("keys", np.ones(257)).fractions is None  # more than are worked with exactly
    assert read("keys", np.eye(16)).fractions is not None
    assert rounding(np.dtype("float32")) == pytest.approx(1.19e-5, rel=0.01)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([[1, 2], [3]], TensorError, "keys is empty or has rows of different lengths"),
        ([], TensorError, "keys is empty"),
        (["one"], DomainError, r"keys\[0\]: 'one' is no number; give 2, 0\.5 or text such as \"1/3\""),
        (["1/0"], DomainError, "is no number"),
        ([None], DomainError, r"keys\[0\]: None is no number"),
        ([[0.0, float("nan")]], DomainError, r"keys\[0\]\[1\] is nan; give finite numbers"),
        ([10**400], DomainError, r"keys\[0\]: 1000+… is beyond floats, which go from 1e-308 to 1e308"),
        ([Decimal("1e999999999")], DomainError, r"keys\[0\] is inf; give finite numbers"),
        ([[1, "1e999999999"]], DomainError, r"keys\[0\]\[1\]: 1e999999999 is beyond floats"),
        (["1e" + "9" * 30], DomainError, r"1e9+… is beyond floats"),
        (["1e-400"], DomainError, r"keys\[0\]: 1e-400 is beyond floats.*; use another unit"),
        ([Decimal("1e-999999999")], DomainError, r"1E-999999999 is beyond floats"),
        ([Fraction(1, 10**400)], DomainError, r"keys\[0\]: 1/1000+… is beyond floats"),
    ],
)
def test_what_is_no_number(given: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read("keys", given)
