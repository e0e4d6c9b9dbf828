"""Number fields: exact numbers that add and multiply fast, fractions and what one surd adds to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import sympy
from sympy.polys.polyerrors import BasePolynomialError

from lattend.study.exact.numbers import exact

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
