"""Candidates: the only places where a difference can change its sign, and what decides which of them count.

On a piece, a difference is a polynomial. It changes sign at a root, or where the piece ends. Which roots lie
in their piece, and in which order, depends on the signs of a few polynomials in the other symbols: the tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

from lattend.cost.comparison.crossing_points import CrossingPoint, surds
from lattend.cost.comparison.difference import Difference, DifferencePiece
from lattend.counts.algebra import factored
from lattend.errors import NoClosedForm
from lattend.rules.language.polynomial import Polynomial

ONE = Polynomial.constant(1)
Coefficients = list[Polynomial]  # of 1, x, x^2


@dataclass
class Candidates:
    """Places by the order they were found in, and the tests, which have no factor in common."""

    places: list[CrossingPoint] = field(default_factory=list[CrossingPoint])
    tests: list[Polynomial] = field(default_factory=list[Polynomial])

    def place(self, place: CrossingPoint) -> None:
        alike = any(
            p.above * place.below == place.above * p.below and p.jump == place.jump
            for p in self.places
            if p.under is None and place.under is None
        )
        if not alike:
            self.places.append(place)

    def test(self, polynomial: Polynomial) -> None:
        for factor, _ in factored(polynomial)[1] if not polynomial.is_zero else ():
            if factor not in self.tests:
                self.tests.append(factor)


def candidates(found: Difference) -> Candidates:
    """All places and tests of a difference."""
    all_ = Candidates()
    for piece in found.pieces:
        _ends(piece, found.over, all_)
        _roots(piece, found.over, all_)
    return all_


def by_power(polynomial: Polynomial, over: str) -> Coefficients:
    """Its coefficients as a polynomial in one name."""
    found: dict[int, Polynomial] = {}
    for powers, coefficient in polynomial.terms.items():
        power = next((e for a, e in powers if a == over), 0)
        rest = tuple((a, e) for a, e in powers if a != over)
        found[power] = found.get(power, Polynomial({})) + Polynomial({rest: coefficient})
    return [found.get(power, Polynomial({})) for power in range(max(found, default=0) + 1)]


def _ends(piece: DifferencePiece, over: str, all_: Candidates) -> None:
    """Where the piece begins and ends, and whether it is there at all."""
    ends: list[Coefficients] = []
    for limit in piece.limits:
        coefficients = by_power(limit.form, over)
        if len(coefficients) == 1:
            all_.test(limit.form)
            continue
        if len(coefficients) > 2:
            raise NoClosedForm(f"a piece ends where {limit.form} is 0, which is not linear in {over}")
        ends.append(coefficients)
        constant, slope = coefficients
        first = constant.times(-1)
        all_.place(CrossingPoint(first, slope, jump=True))
        if not limit.equal and slope == ONE.times(-1):  # up to here, so that the next one is different
            all_.place(CrossingPoint(first - ONE, slope, jump=True))
    for one, other in combinations(ends, 2):
        all_.test(one[0] * other[1] - other[0] * one[1])


def _roots(piece: DifferencePiece, over: str, all_: Candidates) -> None:
    linear: list[Coefficients] = []
    quadratic: list[Coefficients] = []
    for factor, _ in factored(piece.formula)[1]:
        coefficients = by_power(factor, over)
        all_.test(coefficients[-1])
        if len(coefficients) > 3:
            raise NoClosedForm(f"the difference has degree {len(coefficients) - 1} in {over}")
        if len(coefficients) == 2:
            linear.append(coefficients)
            all_.place(CrossingPoint(coefficients[0].times(-1), coefficients[1]))
        elif len(coefficients) == 3:
            c, b, a = coefficients
            under = b * b - (a * c).times(4)
            all_.test(under)
            quadratic.append(coefficients)
            for place in surds(b.times(-1), under, a.times(2)):
                all_.place(place)
    ends = [p for p in (by_power(limit.form, over) for limit in piece.limits) if len(p) == 2]
    for one, other in combinations(linear, 2):
        all_.test(one[0] * other[1] - other[0] * one[1])
    for constant, slope in linear:
        for end in ends:
            all_.test(end[0] * slope - end[1] * constant)
        for curve in quadratic:
            all_.test(_at_root(curve, constant, slope))
    for curve in quadratic:
        steep = [curve[1], curve[2].times(2)]
        for constant, slope in ends:
            all_.test(_at_root(curve, constant, slope))
            all_.test(steep[0] * slope - steep[1] * constant)


def _at_root(curve: Coefficients, constant: Polynomial, slope: Polynomial) -> Polynomial:
    """The curve where `slope x + constant` is 0, times the square of the slope."""
    c, b, a = curve
    return c * slope * slope - b * constant * slope + a * constant * constant
