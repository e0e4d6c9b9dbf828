"""Progressions: the sum meant by `1 + 2 + … + n`, derived from the terms that are written.

The terms are alike but for some places that change: 1², 2², …, n² in their base, 1·2, 2·3, …, n(n + 1) in
both factors. Each such place must go on in equal steps, all of them equally often. The sum that is found is
held against every term that is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb

from lattend.counts.formula import Formula, Piecewise, Sum, applied, rational
from lattend.counts.notation import Notation
from lattend.errors import TooLarge
from lattend.rules.language.expr import Arith, Lookup, Name, Num
from lattend.rules.language.linear import Monomial, monomial
from lattend.rules.language.polynomial import Polynomial

ONE = Polynomial.constant(1)


@dataclass(frozen=True)
class Progression:
    """The sum of `body` for `index` from `low` to `high`; `leap` is how the index goes from term to term."""

    body: Polynomial
    index: str
    low: Polynomial
    high: Polynomial
    leap: int = 1

    def __str__(self) -> str:
        body, low, high = (Notation([], short=False).sum(part) for part in (self.body, self.low, self.high))
        return f"the sum of {body} for {self.index} = {low} to {high}"

    def fits(self, shown: Sequence[Polynomial], last: Sequence[Polynomial]) -> bool:
        """Returns whether it has these first and last terms."""
        first, end = (self.low, self.high) if self.leap > 0 else (self.high, self.low)
        ours = [self._term(first, index) for index in range(len(shown))]
        ours += [self._term(end, index - len(last) + 1) for index in range(len(last))]
        return ours == [*shown, *last]

    def _term(self, start: Polynomial, index: int) -> Polynomial:
        return self.body.substituted({self.index: start + Polynomial.constant(index * self.leap)})


@dataclass
class _Place:
    """The values of a changing part of the terms: in the first terms, and in the last ones."""

    name: str
    shown: list[Polynomial]
    last: list[Polynomial]

    @property
    def step(self) -> Polynomial | None:
        """The difference of adjacent terms, if it is constant and not 0."""
        steps = [b - a for values in (self.shown, self.last) for a, b in pairwise(values)]
        return (
            steps[0] if steps and not steps[0].is_zero and all(step == steps[0] for step in steps) else None
        )

    @property
    def steps(self) -> Polynomial | None:
        """The number of steps from the first to the last, if it is a formula with integer coefficients."""
        step = self.step
        if step is None or len(step.terms) != 1:
            return None
        ((below, number),) = step.terms.items()
        terms: list[tuple[Fraction, Monomial]] = []
        for powers, coefficient in (self.last[-1] - self.shown[0]).terms.items():
            rest = dict(powers)
            for atom, exponent in below:
                rest[atom] = rest.get(atom, 0) - exponent
            quotient = coefficient / number
            if quotient.denominator != 1 or any(exponent < 0 for exponent in rest.values()):
                return None
            terms.append((quotient, monomial(rest.items())))
        return Polynomial.of(terms)


def progression(shown: Sequence[Formula], last: Sequence[Formula], index: str) -> Progression | None:
    """Returns the sum with these first and last terms, of which at least two are adjacent.

    >>> one, two, n = Num(1), Num(2), Name("n")
    >>> print(progression([one, two], [n], "i"))
    the sum of i for i = 1 to n
    """
    places: list[_Place] = []
    try:
        ours = [polynomial_of(term) for term in shown], [polynomial_of(term) for term in last]
        alike = polynomial_of(_alike([*shown, *last], len(shown), places))
    except (ValueError, TooLarge):
        return None
    counts = {place.steps for place in places}
    if len(counts) != 1 or None in counts:
        return None
    (steps,) = counts
    if steps is None or (steps.is_constant and steps.terms.get((), 0) < 1):
        return None
    unit = next((place for place in places if place.step in (ONE, ONE.times(-1))), None)
    low, high, leap = Polynomial({}), steps, 1
    steps_made = Polynomial.atom(index)  # how many steps were made
    if unit is not None and unit.step is not None:
        leap = 1 if unit.step == ONE else -1
        low, high = (unit.shown[0], unit.last[-1])[::leap]
        steps_made = (steps_made - unit.shown[0]).times(leap)
    body = alike.substituted(
        {place.name: place.shown[0] + (place.step or ONE) * steps_made for place in places}
    )
    series = Progression(body, index, low, high, leap)
    return series if series.fits(*ours) else None


def _alike(terms: list[Formula], shown: int, places: list[_Place]) -> Formula:
    """Returns the common form of the terms, with new names for the parts that differ."""
    first = terms[0]
    if all(term == first for term in terms):
        return first
    same = [term for term in terms if isinstance(term, Arith) and not _is_number(term)]
    if len(same) == len(terms) and len({(term.op, len(term.args)) for term in same}) == 1:
        columns = zip(*(term.args for term in same), strict=True)
        return applied(same[0].op, *(_alike(list(column), shown, places) for column in columns))
    values = [polynomial_of(term) for term in terms]
    places.append(_Place(f"place {len(places)}", values[:shown], values[shown:]))
    return Name(places[-1].name)


def _is_number(term: Formula) -> bool:
    """Returns whether a term is a fraction, which changes as a number does."""
    return isinstance(term, Arith) and term.op == "/" and all(isinstance(arg, Num) for arg in term.args)


def polynomial_of(formula: Formula) -> Polynomial:
    """Returns a formula as a polynomial; raises ValueError if it is not one."""
    match formula:
        case Num():
            return Polynomial.constant(formula.value)
        case Name():
            return Polynomial.atom(formula.name)
        case Arith(op="+", args=(left, right)):
            return polynomial_of(left) + polynomial_of(right)
        case Arith(op="-", args=(left, right)):
            return polynomial_of(left) - polynomial_of(right)
        case Arith(op="*", args=(left, right)):
            return polynomial_of(left) * polynomial_of(right)
        case Arith(op="neg", args=(arg,)):
            return polynomial_of(arg).times(-1)
        case Arith(op="^", args=(base, Num(value=power))) if power >= 0:
            return polynomial_of(base) ** power
        case Arith(op="/", args=(left, Num(value=by))) if by:
            return polynomial_of(left).times(Fraction(1, by))
        case Arith() | Lookup() | Sum() | Piecewise():
            raise ValueError("no polynomial")


def formula_of(polynomial: Polynomial) -> Formula:
    """The polynomial of names as a formula."""
    terms = [_product(powers, coefficient) for powers, coefficient in polynomial.terms.items()]
    total = terms[0] if terms else Num(0)
    for term in terms[1:]:
        total = applied("+", total, term)
    return total


def _product(powers: Monomial, coefficient: Fraction) -> Formula:
    product: Formula = rational(coefficient)
    for atom, exponent in powers:
        product = applied("*", product, applied("^", Name(str(atom)), Num(exponent)))
    return product


def summed_powers(body: Polynomial, index: str, low: Polynomial, high: Polynomial) -> Polynomial:
    """The sum of a polynomial body for the index from `low` to `high`."""
    total = Polynomial({})
    for powers, coefficient in body.terms.items():
        power = dict(powers).get(index, 0)
        rest = Polynomial({tuple((a, e) for a, e in powers if a != index): coefficient})
        up_to = power_sum(power)
        span = _at(up_to, high) - _at(up_to, low - ONE)
        total = total + rest * span
    return total


def _at(coefficients: tuple[Fraction, ...], value: Polynomial) -> Polynomial:
    total = Polynomial({})
    for coefficient in reversed(coefficients):
        total = total * value + Polynomial.constant(coefficient)
    return total


@lru_cache
def power_sum(power: int) -> tuple[Fraction, ...]:
    """Coefficients of the polynomial P with P(x) = 1**power + … + x**power (power 0: P(x) = x).

    (x + 1)**(p + 1) - 1 telescopes into the sum over j <= p of C(p + 1, j) P_j(x): solve it for P_p.
    """
    shifted = [Fraction(comb(power + 1, j)) for j in range(power + 2)]
    shifted[0] -= 1  # (x + 1)**(p + 1) - 1
    for j in range(power):
        for index, coefficient in enumerate(power_sum(j)):
            shifted[index] -= comb(power + 1, j) * coefficient
    return tuple(coefficient / (power + 1) for coefficient in shifted)
