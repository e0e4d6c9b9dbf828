"""Sizes: what a layer is told, a number, a name or a small formula ("4*d"), as a polynomial."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, reduce

from lattend.counts.formula import BigO
from lattend.counts.formula_parser import parse_formula
from lattend.counts.progression import polynomial_of
from lattend.errors import DomainError, NamingError
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.rule import check_integer

Size = int | str


def read_size(name: str, size: Size, least: int = 1, *, parts: bool = False) -> Polynomial:
    """The size as a polynomial; a number must be at least `least`. `parts` allows d/12, known to divide.

    >>> read_size("hidden", "4*d").terms
    {(('d', 1),): Fraction(4, 1)}
    """
    if isinstance(size, str):
        size_read = _read(name, size)
        fractions = [c for c in size_read.terms.values() if c.denominator > 1]
        number = size_read.terms.get((), Fraction(0)) if size_read.is_constant else None
        if fractions and (number is not None or not parts):
            raise NamingError(f'{name}="{size}" is not always a whole number; leave out the division')
        if number is None:
            return size_read
        size = int(number)
    check_integer(name, size)
    if size < least:
        raise DomainError(f"{name} must be at least {least}, got {size}")
    return Polynomial.constant(size)


def read_sizes(*, least: int = 1, parts: bool = False, **sizes: Size) -> dict[str, Polynomial]:
    """Several sizes by their names."""
    return {name: read_size(name, size, least, parts=parts) for name, size in sizes.items()}


def multiply(*sizes: Polynomial) -> Polynomial:
    """The product of sizes."""
    return reduce(Polynomial.__mul__, sizes) if sizes else Polynomial.constant(1)


def number_of(size: Polynomial) -> int | None:
    """The number, if it is one."""
    return int(size.terms.get((), 0)) if size.is_constant else None


def need_number(name: str, size: Size, least: int = 1) -> int:
    """A size that must be a number, since a set is affine only in its multiples."""
    number = number_of(read_size(name, size, least))
    if number is None:
        raise NamingError(f"{name} must be a number here, not the name {size}: give {name}=…")
    return number


@lru_cache(maxsize=1024)
def _read(name: str, text: str) -> Polynomial:
    formula = parse_formula(text)
    if isinstance(formula, BigO):
        raise NamingError(f'{name}="{text}" is an order of growth; give a number, a name, or a formula')
    try:
        return polynomial_of(formula)
    except ValueError:
        raise NamingError(
            f'{name}="{text}": a size is a number, a name, or made of them with + - * and powers'
        ) from None
