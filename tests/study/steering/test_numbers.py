"""Which numbers are known exactly, and which are not."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy

from lattend.errors import DomainError
from lattend.study.steering.numbers import read, rounding


def test_exact_numbers() -> None:
    given = [
        1,
        0.1,
        "1/3",
        Fraction(2, 7),
        Decimal("0.25"),
        np.int8(3),
        sympy.Rational(1, 9),
        "1e-3",
        "sqrt(4)",
    ]
    wanted = [
        1,
        Fraction(1, 10),
        Fraction(1, 3),
        Fraction(2, 7),
        Fraction(1, 4),
        3,
        Fraction(1, 9),
        Fraction(1, 1000),
        2,
    ]
    result = read("keys", given)
    assert result.fractions is not None and result.fractions.tolist() == wanted
    assert result.floats.tolist() == [float(x) for x in wanted]


def test_rounded_numbers() -> None:
    assert read("keys", [1 / 3, 1.0]).fractions is None
    roots = read("keys", ["sqrt(2)", "1/2"])
    assert roots.fractions is None and roots.floats.tolist() == [2**0.5, 0.5]
    assert read("keys", np.ones(257)).fractions is None  # more than are worked with exactly
    assert read("keys", np.eye(16)).fractions is not None
    assert rounding(np.dtype("float32")) == pytest.approx(1.19e-5, rel=0.01)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1, 2], [3]], "keys must have as many numbers in each row; row 1 has 2 and row 2 has 1"),
        ([[[1, 2], [3]], [[1, 2], [3, 4]]], "in each row; row 1 has 2 and row 2 has 1"),
        ([1, [2]], "keys must have as many numbers in each row$"),
        ([], "keys must be numbers; there is no number in it"),
        (["one"], r'keys\[0\]: "one" is not a number: one is not known'),
        (["1/0"], "is not a number: division by 0"),
        ([None], r"keys\[0\]: None is not a number; give 2, 0.5 or text such as \"1/3\""),
        ([[0.0, float("nan")]], r"keys\[0\]\[1\] is nan; give finite numbers"),
        ([10**400], r"keys\[0\]: 1000+… is beyond floats, which go from 1e-308 to 1e308"),
        ([Decimal("1e999999999")], r"keys\[0\] is inf; give finite numbers"),
        ([[1, "1e999999999"]], r'keys\[0\]\[1\]: "1e999999999" is not a number: a power of at most 1,000'),
        (["1e" + "9" * 30], r'"1e9+" is not a number'),
        (["1e400"], "1e400 is beyond floats"),
        (["exp(-1000)"], r"exp\(-1000\) is beyond floats"),
        (["1e-400"], r"keys\[0\]: 1e-400 is beyond floats.*; use another unit"),
        ([Decimal("1e-999999999")], r"1E-999999999 is beyond floats"),
        ([Fraction(1, 10**400)], r"keys\[0\]: 1/1000+… is beyond floats"),
    ],
)
def test_what_is_no_number(given: object, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        read("keys", given)
