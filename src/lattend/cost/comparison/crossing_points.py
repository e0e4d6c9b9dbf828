"""Crossing points as formulas, and the difference of two quantities, whose zeros they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor, isqrt, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.cost.amount import Amount
from lattend.counts.algebra import factored, rank
from lattend.counts.count import Count
from lattend.counts.notation import Notation
from lattend.errors import DomainError, NoClosedForm
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate
from lattend.rules.language.expr import Condition, Num
from lattend.rules.language.linear import Remainder, monomial
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Region, Space, region_of
from lattend.sets.region import uncovered

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


@dataclass(frozen=True, eq=False)
class Limit:
    """`form >= 0`, or `form == 0`."""

    form: Polynomial
    equal: bool = False

    def holds(self, values: Mapping[str, Any]) -> Any:
        value = self.form.value(values)
        return value == 0 if self.equal else value >= 0


@dataclass(frozen=True, eq=False)
class DifferencePiece:
    """A formula, and the limits within which it is the difference."""

    limits: tuple[Limit, ...]
    formula: Polynomial


@dataclass(frozen=True, eq=False)
class Difference:
    """First minus second, as a function of `over`; `names` are the other symbols."""

    over: str
    names: tuple[str, ...]
    pieces: tuple[DifferencePiece, ...]
    domain: Condition
    multiples: Mapping[str, str]  # it is said only where these moduli divide these sizes

    @property
    def region(self) -> Region:
        """The numbers that the other symbols may have."""
        known = [c for c in expr.conjuncts(self.domain) if set(expr.names(c)) <= set(self.names)]
        space = Space(self.names, (), {})
        return region_of(expr.all_of(*known), space).aligned(space)

    @property
    def where(self) -> str:
        """The divisibility that is assumed, in words."""
        return " and ".join(f"{modulus} divides {name}" for name, modulus in self.multiples.items())

    def is_defined(self, env: Mapping[str, Any]) -> Any:
        """Whether numbers, or arrays of them, lie in the domain and in one of the pieces."""
        defined: Any = False
        for piece in self.pieces:
            inside: Any = True
            for limit in piece.limits:
                inside = inside & limit.holds(env)
            defined = defined | inside
        return self._whole.holds(env) & defined

    @cached_property
    def _whole(self) -> Region:
        space = Space((*self.names, self.over), (), {})
        return region_of(self.domain, space).aligned(space)

    def signs(self, env: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """-1, 0 or 1 at arrays of numbers, exactly."""
        shape = np.broadcast_shapes(*(np.shape(x) for x in env.values()))
        signs = np.zeros(shape, int)
        for piece in self.pieces:
            inside = np.ones(shape, bool)
            for limit in piece.limits:
                inside &= np.broadcast_to(np.asarray(limit.holds(env), bool), shape)
            if inside.any():
                chosen = {name: np.broadcast_to(x, shape)[inside] for name, x in env.items()}
                values = piece.formula.times(_denominator(piece.formula)).values(chosen)
                signs[inside] = np.asarray(values > 0, int) - np.asarray(values < 0, int)
        return signs


def difference(first: Amount, second: Amount, over: str) -> Difference:
    """The difference of two amounts that are plain polynomials, or become so where a modulus divides."""
    amount = first - second
    names = tuple(name for name in amount.names if name != over)
    counted = amount.count()
    if not isinstance(counted, Count):
        return Difference(over, names, (DifferencePiece((), Polynomial.constant(counted)),), amount.where, {})
    pieces: list[DifferencePiece] = []
    for region, formula in _covering(counted):
        for clause in region.clauses:
            limits = [
                Limit(_plain(Polynomial.linear(bound.form), amount.split), bound.equal) for bound in clause
            ]
            if any(limit.form.is_constant and not limit.holds({}) for limit in limits):
                continue
            open_ = tuple(limit for limit in limits if not limit.form.is_constant)
            pieces.append(DifferencePiece(open_, _plain(formula, amount.split)))
    used = {name: by for name, by in amount.split.items() if name in amount.names}
    return Difference(over, names, tuple(pieces), amount.where, used)


def settled(amount: Amount, values: Mapping[str, int]) -> Amount:
    """The amount with numbers for some of its names."""
    known = {name: value for name, value in values.items() if name in amount.names}
    if not known:
        return amount
    if any(name in amount.split or name in amount.split.values() for name in known):
        raise NoClosedForm("a number for a modulus is put in before the layer is made")
    left: list[Condition] = []
    for part in expr.conjuncts(amount.where):
        moved = expr.substituted(part, {name: Num(value) for name, value in known.items()})
        if expr.names(moved):
            left.append(moved)
        elif not evaluate(part, dict(known), {}):
            numbers = ", ".join(f"{name} = {known[name]}" for name in expr.names(part))
            raise DomainError(f"this cost needs {expr.text(part)}, got {numbers}")
    space = Space(tuple(name for name in amount.names if name not in known), (), amount.split)
    pieces: list[tuple[Region | None, Polynomial]] = []
    for region, formula in amount.pieces:
        fixed = None if region is None else region.fixed(known, space).aligned(space)
        if fixed is None or not fixed.is_empty():
            pieces.append((fixed, formula.at(known)))
    if not space.parameters:
        pieces = [(None, formula) for _, formula in pieces[:1]]
    return Amount(tuple(pieces) or ((None, ZERO),), expr.all_of(*left), amount.split)


def _covering(count: Count) -> Iterator[tuple[Region, Polynomial]]:
    """Its pieces, and 0 where there is none."""
    for piece in count.pieces:
        yield piece.region, piece.formula
    rest = uncovered(count.pieces, count.closed.domain)
    if not rest.is_empty():
        yield rest, ZERO


def _plain(formula: Polynomial, split: Mapping[str, str]) -> Polynomial:
    """The formula, times a power of the modulus, where n % w is 0 and n // w is n/w."""
    if all(isinstance(atom, str) for atom in formula.atoms):
        return formula
    terms: list[tuple[Fraction, dict[str, int]]] = []
    for powers, coefficient in formula.terms.items():
        exponents: dict[str, int] = {}
        gone = False
        for atom, exponent in powers:
            if isinstance(atom, str):
                exponents[atom] = exponents.get(atom, 0) + exponent
                continue
            name = str(atom.of)
            if split.get(name) != atom.by:
                raise NoClosedForm(f"{atom} is rounded, so that there is no polynomial to solve")
            if isinstance(atom, Remainder):
                gone = True
            elif isinstance(atom.by, str):
                exponents[name] = exponents.get(name, 0) + exponent
                exponents[atom.by] = exponents.get(atom.by, 0) - exponent
        if not gone:
            terms.append((coefficient, exponents))
    least = {by: min((e.get(by, 0) for _, e in terms), default=0) for by in split.values()}
    total: list[tuple[Fraction, tuple[tuple[str, int], ...]]] = []
    for coefficient, exponents in terms:
        raised = {n: e - min(0, least.get(n, 0)) for n, e in {**dict.fromkeys(least, 0), **exponents}.items()}
        total.append((coefficient, tuple(sorted((n, e) for n, e in raised.items() if e))))
    return Polynomial.of(total)


def _denominator(formula: Polynomial) -> int:
    return int(np.lcm.reduce([c.denominator for c in formula.terms.values()] or [1]))
