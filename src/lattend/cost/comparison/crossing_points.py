"""Places: where one formula passes another, as a formula in the symbols that are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor, isqrt, lcm

from lattend.counts.algebra import factored, rank
from lattend.counts.notation import Notation
from lattend.rules.language.linear import monomial
from lattend.rules.language.polynomial import Polynomial

PRECISION = 10**24  # a root that is no fraction is known this finely
ZERO, ONE = Polynomial.constant(0), Polynomial.constant(1)


@dataclass(frozen=True, eq=False)
class CrossingPoint:
    """`above / below`, or `(above + outer sqrt(under)) / below`.

    `jump` says that the formula changes at this very number, without passing through 0.
    """

    above: Polynomial
    below: Polynomial = ONE
    under: Polynomial | None = None
    outer: Polynomial = ONE
    jump: bool = False

    def at(self, values: Mapping[str, int]) -> Fraction | None:
        """The number there; None where it is not defined."""
        below = Fraction(self.below.value(values))
        if not below:
            return None
        above = Fraction(self.above.value(values))
        if self.under is not None:
            under = Fraction(self.under.value(values))
            if under < 0:
                return None
            above += Fraction(self.outer.value(values)) * _root(under)
        return above / below

    @property
    def names(self) -> set[str]:
        parts = (self.above, self.below, self.under or ZERO)
        return {name for part in parts for name in part.atoms if isinstance(name, str)}

    @property
    def effort(self) -> tuple[bool, bool, int]:
        """How hard it is to read."""
        terms = len(self.above.terms) + (0 if self.below.is_constant else len(self.below.terms))
        return self.under is not None, self.jump, terms

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number wherever its symbols are."""
        return (
            self.under is None
            and self.below.is_constant
            and all(c.denominator == 1 for c in self._polynomial.terms.values())
        )

    @property
    def next(self) -> str | None:
        """The first whole number beyond it, as text, where its fraction is a plain one."""
        if self.under is not None or not self.below.is_constant:
            return None
        terms = {m: c for m, c in self._polynomial.terms.items() if m}
        if any(c.denominator != 1 for c in terms.values()):
            return None
        constant = floor(self._polynomial.terms.get((), Fraction(0))) + 1
        return format_polynomial(Polynomial(terms) + Polynomial.constant(constant))

    @property
    def _polynomial(self) -> Polynomial:
        return self.above.times(1 / self.below.terms[()])

    @cached_property
    def text(self) -> str:
        """The formula as people write it."""
        if self.under is None:
            return _quotient(self.above, self.below)
        common = _common(self.above, self.outer)
        lead, outer = (_divided(part, common) for part in (self.above, self.outer))
        number = outer.terms.get((), Fraction(0)) if outer.is_constant else Fraction(0)
        front = (
            ""
            if abs(number) == 1
            else f"{_bracketed(format_polynomial(outer.times(-1) if number < 0 else outer))}*"
        )
        root = f"{front}sqrt({format_polynomial(self.under)})"
        joint = " - " if number < 0 else " + "
        inner = ("-" if number < 0 else "") + root if lead.is_zero else f"{format_sum(lead)}{joint}{root}"
        front = "" if common == ONE else _product(1, list(factored(common)[1]))
        written = f"{front}({inner})" if front or self.below != ONE else inner
        return written if self.below == ONE else f"{written}/{_bracketed(format_polynomial(self.below))}"

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def surds(above: Polynomial, under: Polynomial, below: Polynomial) -> list[CrossingPoint]:
    """`(above ± sqrt(under)) / below`, with what is a square taken out of the root."""
    number, factors = factored(under)
    outer = Polynomial.constant(Fraction(_square(number.numerator), _square(number.denominator)))
    for factor, power in factors:
        if len(factor.terms) == 1:  # a name, which is not negative
            outer = outer * factor ** (power // 2)
    rest = _divided(under, outer * outer)
    if below.is_constant:
        share = below.terms[()]
        above, outer, below = above.times(1 / share), outer.times(1 / share), ONE
        numbers = [c.denominator for part in (above, outer) for c in part.terms.values()]
        common = lcm(*numbers)
        above, outer, below = above.times(common), outer.times(common), Polynomial.constant(common)
    return [CrossingPoint(above, below, rest, outer.times(sign)) for sign in (1, -1)]


def format_polynomial(polynomial: Polynomial) -> str:
    """A polynomial as text."""
    if polynomial.degree() <= 1:
        return format_sum(polynomial)
    names = [name for name in polynomial.atoms if isinstance(name, str)]
    return Notation(names).formula(polynomial)


def format_sum(polynomial: Polynomial) -> str:
    """Its terms in a row, those that are added first: `b + 1 - n`."""
    pen = Notation([])
    plus = Polynomial({m: c for m, c in polynomial.terms.items() if c > 0})
    minus = Polynomial({m: -c for m, c in polynomial.terms.items() if c < 0})
    text = pen.sum(plus) if plus.terms else ""
    for powers, number in minus.terms.items():
        text += f" - {pen.sum(Polynomial({powers: number}))}" if text else pen.sum(minus.times(-1))
    return text or "0"


def _quotient(above: Polynomial, below: Polynomial) -> str:
    """The fraction without the factors that both sides have."""
    if below.is_constant:
        return format_polynomial(above.times(1 / below.terms[()]))
    number, up = factored(above)
    divisor, down = factored(below)
    number /= divisor
    powers = dict(up)
    for factor, power in down:
        powers[factor] = powers.get(factor, 0) - power
    tops = [(factor, power) for factor, power in powers.items() if power > 0]
    bottoms = [(factor, -power) for factor, power in powers.items() if power < 0]
    if number < 0:  # the minus goes into a sum below, or else above
        for side in (bottoms, tops):
            place = next((i for i, (f, p) in enumerate(side) if len(f.terms) > 1 and p % 2), None)
            if place is not None:
                side[place] = (side[place][0].times(-1), side[place][1])
                number = -number
                break
    top = _product(abs(number.numerator), tops)
    sign = "-" if number < 0 else ""
    if not bottoms and number.denominator == 1:
        return f"{sign}{top}"
    bottom = _product(number.denominator, bottoms)
    several = len(bottoms) + (number.denominator != 1) > 1
    return f"{sign}{top}/{f'({bottom})' if several else bottom}"


def _product(number: int, factors: list[tuple[Polynomial, int]]) -> str:
    parts = [str(number)] if number != 1 or not factors else []
    for factor, power in sorted(factors, key=_rank):
        text = format_sum(factor)
        base = f"({text})" if len(factor.terms) > 1 else text
        parts.append(base if power == 1 else f"{base}^{power}")
    text = parts[0]
    for part in parts[1:]:
        text += part if part[0] == "(" or text.isdigit() else f"*{part}"
    return text


def _rank(factor: tuple[Polynomial, int]) -> tuple[int, tuple[int, int, str], str]:
    """Names first, in the order they are usually written."""
    return len(factor[0].terms), min(rank(atom) for atom in factor[0].atoms), format_sum(factor[0])


def _bracketed(text: str) -> str:
    return text if text.isalnum() else f"({text})"


def _root(number: Fraction) -> Fraction:
    """The square root, exact where it is a fraction."""
    above, below = isqrt(number.numerator), isqrt(number.denominator)
    if above * above == number.numerator and below * below == number.denominator:
        return Fraction(above, below)
    return Fraction(isqrt(number.numerator * PRECISION**2 // number.denominator), PRECISION)


def _square(number: int) -> int:
    """The largest number whose square divides this one, as far as small primes go."""
    square, rest = 1, abs(number)
    for prime in (2, 3, 5, 7, 11, 13):
        while rest and rest % (prime * prime) == 0:
            square, rest = square * prime, rest // (prime * prime)
    return square


def _common(one: Polynomial, other: Polynomial) -> Polynomial:
    """The product of names that divides both."""
    common = ONE
    for name in one.atoms:
        powers = [min(dict(m).get(name, 0) for m in part.terms) if part.terms else 0 for part in (one, other)]
        common = common * Polynomial.atom(name) ** min(powers)
    return common


def _divided(polynomial: Polynomial, by: Polynomial) -> Polynomial:
    """The quotient by one term that divides every term."""
    ((powers, number),) = by.terms.items()
    down = dict(powers)
    return Polynomial.of(
        (c / number, monomial([*m, *((name, -power) for name, power in down.items())]))
        for m, c in polynomial.terms.items()
    )
