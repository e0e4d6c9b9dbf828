"""Numbers as people give them → exact numbers: 0.1 is one tenth, "sqrt(2)" the root itself."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from math import lcm
from numbers import Integral, Rational, Real
from typing import Any

import sympy

from lattend.errors import DomainError, TextError
from lattend.study.exact.formula import LARGEST_POWER, formula
from lattend.wording import many, short

LONGEST_LOG = 24  # characters of what a single logarithm is taken of


def exact(value: Any) -> Any:
    """The number meant: whole numbers, fractions, decimals, texts such as "1/3" or "sqrt(2)".

    A float is its shortest decimal, as it prints: 0.1 is 1/10, not 3602879701896397/2^55.

    >>> exact(0.1), exact("1/3"), exact("e^2")
    (1/10, 1/3, exp(2))
    """
    if isinstance(value, str):
        return _read(value)
    if isinstance(value, sympy.Expr):
        return _real(value)
    if isinstance(value, bool) or type(value).__name__ == "bool":  # numpy's too
        raise DomainError(f"{value} is true or false, not a number")
    if isinstance(value, Integral):
        return sympy.Integer(int(value))
    if isinstance(value, (Rational, Fraction)):
        return sympy.Rational(int(value.numerator), int(value.denominator))
    if isinstance(value, (Real, Decimal)):
        text = str(value)  # of a float32 too this is the shortest decimal
        if not Decimal(text).is_finite():
            raise DomainError(f"{text} is not a finite number")
        if abs(Decimal(text).adjusted()) > LARGEST_POWER:
            raise DomainError(f"{text} has a power of ten beyond {LARGEST_POWER:,}")
        return sympy.Rational(text)
    raise DomainError(
        f'{value!r} is a {type(value).__name__}, not a real number; give 2, 0.5, Fraction(1, 3) or "1/3"'
    )


def log(number: Any) -> Any:
    """The natural logarithm of an exact number, as a formula.

    >>> log(exact("1/2"))
    -log(2)
    """
    return sympy.expand_log(sympy.log(number), force=True)


def one_log(value: Any) -> Any:
    """The same number with its logarithms as one, where what it is of stays short.

    >>> one_log(log(exact("3")) / 2 - log(exact("2")) - 1)
    -1 + log(3/4)/2
    """
    rest, parts = sympy.Integer(0), dict[Any, Any]()
    for term, times in sympy.expand_log(value, force=True).expand().as_coefficients_dict().items():
        if isinstance(term, sympy.log):
            parts[term.args[0]] = times
        else:
            rest += times * term
    below = lcm(*(int(times.q) for times in parts.values()))
    of = sympy.Mul(*(number ** (times * below) for number, times in parts.items()))
    if not parts or len(str(of)) > LONGEST_LOG:
        return value
    return sympy.log(of, evaluate=False) / below + rest if of != 1 else rest


def exact_rows(name: str, values: Any) -> tuple[tuple[Any, ...], ...]:
    """Rows of exact numbers, all equally long: a matrix from lists, arrays or tensors.

    >>> exact_rows("keys", [[1, 0.5], ["1/3", 2]])
    ((1, 1/2), (1/3, 2))
    """
    if hasattr(values, "detach"):  # a torch tensor, which may be on a GPU
        values = values.detach().cpu().numpy()
    wanted = f"{name} must be rows of numbers, as in [[1, 2], [3, 4]]"
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DomainError(f"{wanted}; got {short(values)}")
    rows: list[tuple[Any, ...]] = []
    for index, row in enumerate(values):
        if isinstance(row, str) or not isinstance(row, Iterable):
            raise DomainError(f"{wanted}; row {index + 1} is {short(row)}")
        rows.append(tuple(_entry(name, index, column, value) for column, value in enumerate(row)))
    if not rows or not rows[0]:
        raise DomainError(f"{wanted}; there is no number in it")
    for index, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise DomainError(
                f"{wanted}; row 1 has {many(len(rows[0]), 'number')} and "
                f"row {index + 1} has {many(len(row), 'number')}"
            )
    return tuple(rows)


def _read(text: str) -> Any:
    try:
        return _real(formula(text, names=()))
    except TextError as error:
        shown = text if len(text) <= 40 else f"{text[:37]}..."
        raise DomainError(f'"{shown}" is not a number: {error.message.removeprefix("formula: ")}') from None


def _real(value: Any) -> Any:
    if not value.is_number or value.is_finite is False or value.is_real is False:
        raise DomainError(f"{value} is not a real number")
    return value


def _entry(name: str, row: int, column: int, value: Any) -> Any:
    try:
        return exact(value)
    except DomainError as error:
        raise DomainError(f"{name}, row {row + 1}, column {column + 1}: {error}") from None
