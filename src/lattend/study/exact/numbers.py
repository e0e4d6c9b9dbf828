"""Exact numbers: read from what people type, 0.1 as one tenth; and number fields, where they add fast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import lcm, prod
from numbers import Integral, Rational, Real
from typing import Any

import sympy
from sympy.polys.polyerrors import BasePolynomialError

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


LARGEST_DEGREE = 8  # of a number field; beyond it, arithmetic and the field itself get slow
LARGEST_BOUND = 32  # of a degree before it is known: minimal polynomials beyond it can take minutes


def fraction(value: Any) -> Fraction | None:
    """The value as a fraction; None where it is irrational.

    >>> fraction(0.1), fraction("sqrt(2)")
    (Fraction(1, 10), None)
    """
    number = exact(value)
    return Fraction(int(number.p), int(number.q)) if number.is_Rational else None


@dataclass(frozen=True)
class NumberField:
    """Numbers to calculate in: `of` reads an exact number, `back` writes it as a formula again."""

    domain: Any

    @property
    def rational(self) -> bool:
        return self.domain.is_QQ

    @property
    def degree(self) -> int:
        return 1 if self.rational else int(self.domain.mod.degree())

    def of(self, value: Any) -> Any:
        if not self.rational:
            return self.domain.from_sympy(sympy.sympify(value))
        number = sympy.sympify(value)
        return Fraction(int(number.p), int(number.q))

    def element(self, value: Any) -> Any:
        """A number of this field as sympy's domain has it."""
        return self.domain(value.numerator, value.denominator) if self.rational else value

    def back(self, value: Any) -> Any:
        if self.rational:
            return sympy.Rational(value.numerator, value.denominator)
        return sympy.radsimp(self.domain.to_sympy(value)) if hasattr(value, "rep") else sympy.sympify(value)

    def digits(self, value: Any) -> int:
        """About how many digits the number takes to write."""
        parts = [value] if self.rational else value.to_list()
        bits = sum(int(c.numerator).bit_length() + int(c.denominator).bit_length() for c in parts)
        return bits * 3 // 10


RATIONALS = NumberField(sympy.QQ)


def number_field(numbers: Sequence[Any]) -> NumberField | None:
    """The smallest field with these numbers in it; None where there is none of degree 8 or less.

    >>> number_field([sympy.Rational(1, 2), sympy.sqrt(3)]).domain
    QQ<sqrt(3)>
    """
    surds = [number for number in map(sympy.sympify, numbers) if not number.is_Rational]
    if not surds:
        return RATIONALS
    if not all(number.is_algebraic for number in surds) or _degree_bound(surds) > LARGEST_BOUND:
        return None
    try:
        if any(_degree(number) > LARGEST_DEGREE for number in surds):
            return None
        domain = sympy.QQ.algebraic_field(*dict.fromkeys(surds))
    except (BasePolynomialError, NotImplementedError):
        return None
    field = NumberField(domain)
    return field if field.degree <= LARGEST_DEGREE else None


def _degree(number: Any) -> int:
    return int(sympy.minimal_polynomial(number, sympy.Symbol("x"), polys=True).degree())


def _degree_bound(numbers: Sequence[Any]) -> int:
    """At least the degree of the field with these numbers in it: roots multiply it, one after another."""
    kinds = sympy.Pow, sympy.CRootOf, sympy.Function
    return prod(_part_degree(part) for part in {part for number in numbers for part in number.atoms(*kinds)})


def _part_degree(part: Any) -> int:
    if isinstance(part, sympy.CRootOf):
        return int(part.poly.degree())
    if part.is_Pow:
        return int(part.exp.q) if part.exp.is_Rational else 1
    turns = part.args[0] / sympy.pi  # sin(j·pi/m)
    return int(turns.q) if turns.is_Rational else LARGEST_BOUND + 1
