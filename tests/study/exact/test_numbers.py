"""Numbers as people give them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch

from lattend.errors import DomainError
from lattend.study.exact.numbers import exact, exact_rows


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (0.1, sympy.Rational(1, 10)),
        (np.float32(0.1), sympy.Rational(1, 10)),
        (np.int64(3), sympy.Integer(3)),
        (Decimal("0.30"), sympy.Rational(3, 10)),
        (Fraction(2, 6), sympy.Rational(1, 3)),
        ("1/3", sympy.Rational(1, 3)),
        (".25", sympy.Rational(1, 4)),
        ("1e-3", sympy.Rational(1, 1000)),
        ("-2", sympy.Integer(-2)),
        ("sqrt(2)", sympy.sqrt(2)),
        ("e^2", sympy.exp(2)),
        (sympy.pi, sympy.pi),
    ],
)
def test_meant(given: object, meant: sympy.Expr) -> None:
    assert exact(given) == meant


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (float("nan"), "nan is not a finite number"),
        (np.float32("inf"), "inf is not a finite number"),
        (Decimal("1e999999999"), "1E+999999999 has a power of ten beyond 1,000"),
        (Decimal("1e-999999999"), "1E-999999999 has a power of ten beyond 1,000"),
        (1j, "1j is a complex, not a real number"),
        (True, "True is true or false, not a number"),
        (np.bool_(True), "True is true or false, not a number"),
        (None, "None is a NoneType, not a real number"),
        ("x", '"x" is not a number: x is not known; it has no value here'),
        ("", '"" is not a number: there is no formula'),
        ("0.1.2", '"0.1.2" is not a number: .2 is not expected here'),
        (sympy.Symbol("x"), "x is not a real number"),
        (sympy.I, "I is not a real number"),
    ],
)
def test_not_a_number(given: object, message: str) -> None:
    with pytest.raises(DomainError) as error:
        exact(given)
    assert str(error.value).startswith(message)


def test_rows() -> None:
    wanted = ((sympy.Rational(1, 10), sympy.Integer(2)),)
    assert exact_rows("keys", [[0.1, 2]]) == wanted
    assert exact_rows("keys", np.array([[0.1, 2]], dtype=np.float32)) == wanted
    assert exact_rows("keys", torch.tensor([[0.1, 2]], requires_grad=True)) == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 2], "keys must be rows of numbers, as in [[1, 2], [3, 4]]; row 1 is 1"),
        (
            [[1], [1, 2]],
            "keys must be rows of numbers, as in [[1, 2], [3, 4]]; row 1 has 1 number and row 2",
        ),
        ([], "keys must be rows of numbers, as in [[1, 2], [3, 4]]; there is no number in it"),
        ("ab", "keys must be rows of numbers, as in [[1, 2], [3, 4]]; got 'ab'"),
        ([[1, "x"]], 'keys, row 1, column 2: "x" is not a number: x is not known'),
    ],
)
def test_not_rows(given: object, message: str) -> None:
    with pytest.raises(DomainError) as error:
        exact_rows("keys", given)
    assert str(error.value).startswith(message)
