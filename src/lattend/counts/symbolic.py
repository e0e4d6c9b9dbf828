"""A claimed formula on a region: cases of (region, numerator, denominator), all polynomials.

min, max, abs, //, %, floor and empty sums are decided by splitting the region, so that what is left
in each case is algebra.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

from lattend.counts.formula import Apply, Formula, Number, Sum, Symbol
from lattend.errors import NoClosedForm
from lattend.rules.language.linear import Atom, Linear, Quotient
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound, Region, Space

MAX_POWER = 16
MAX_CARRY = 12
MAX_CASES = 200


@dataclass(frozen=True, eq=False)
class Case:
    """On `region` the formula is `above / below`."""

    region: Region
    above: Polynomial
    below: Polynomial


ONE = Polynomial.constant(1)


def cases(formula: Formula, region: Region) -> list[Case]:
    """The formula on `region`, case by case; NoClosedForm where it is not piecewise rational."""
    return _Reader(region).read(formula, region, {})


def split_name(space: Space, name: str) -> Polynomial:
    """A split name in its coordinates: n is w*(n // w) + n % w."""
    block, offset = (Polynomial.atom(atom) for _, atom in space.coordinates((name,)))
    return Polynomial.atom(space.split[name]) * block + offset


class _Reader:
    def __init__(self, region: Region) -> None:
        self.split = region.space.split
        self.space = region.space
        self.ranges: dict[Atom, tuple[Polynomial, Polynomial]] = {}  # of the indices of sums being read

    def name(self, name: str) -> Polynomial:
        if name not in self.split:
            return Polynomial.atom(name)
        return split_name(self.space, name)

    def read(self, node: Formula, region: Region, bound: dict[str, Polynomial]) -> list[Case]:
        match node:
            case Number():
                return [Case(region, Polynomial.constant(node.value), ONE)]
            case Symbol():
                known = bound.get(node.name)
                return [Case(region, self.name(node.name) if known is None else known, ONE)]
            case Sum():
                return self._sum(node, region, bound)
            case Apply(op="//", args=(left, right)):
                return self._divided(left, right, region, bound, rest=False)
            case Apply(op="%", args=(left, right)):
                return self._divided(left, right, region, bound, rest=True)
            case Apply(op="floor", args=(Apply(op="/", args=(left, Symbol() as right)),)):
                return self._divided(left, right, region, bound, rest=False)
            case Apply(op="floor", args=(arg,)):
                return self._divided(arg, Number(Fraction(1)), region, bound, rest=False)
            case Apply(op="ceil", args=(Apply(op="/", args=(left, right)),)):
                down = Apply("floor", (Apply("/", (Apply("neg", (left,)), right)),))
                return self._arithmetic(Apply("neg", (down,)), region, bound)
            case Apply(op="ceil", args=(arg,)):
                down = Apply("floor", (Apply("neg", (arg,)),))
                return self._arithmetic(Apply("neg", (down,)), region, bound)
            case Apply(op="min" | "max"):
                return self._extreme(node, region, bound)
            case Apply(op="abs", args=(arg,)):
                return self._absolute(self.read(arg, region, bound))
            case Apply(op="^", args=(base, power)):
                return self._power(base, power, region, bound)
            case Apply():
                return self._arithmetic(node, region, bound)

    def _arithmetic(self, node: Apply, region: Region, bound: dict[str, Polynomial]) -> list[Case]:
        found = self.read(node.args[0], region, bound)
        if node.op == "neg":
            return [Case(c.region, c.above.times(-1), c.below) for c in found]
        for arg in node.args[1:]:
            found = [
                _joined(node.op, left, right)
                for left in found
                for right in self.read(arg, left.region, bound)
                if not right.region.is_empty() and not (node.op == "/" and right.above.is_zero)
            ]
            if len(found) > MAX_CASES:
                raise NoClosedForm(f"it falls into more than {MAX_CASES} cases")
        return found

    def _power(
        self, base: Formula, power: Formula, region: Region, bound: dict[str, Polynomial]
    ) -> list[Case]:
        if not isinstance(power, Number) or power.value.denominator != 1 or not 0 <= power.value <= MAX_POWER:
            raise NoClosedForm(f"only whole powers from 0 to {MAX_POWER} can be decided")
        exponent = int(power.value)
        found = self.read(base, region, bound)
        if exponent == 0:  # 1, but only where the base is defined
            return [Case(c.region, c.below, c.below) for c in found]
        return [Case(c.region, c.above**exponent, c.below**exponent) for c in found]

    def _extreme(self, node: Apply, region: Region, bound: dict[str, Polynomial]) -> list[Case]:
        found = self.read(node.args[0], region, bound)
        for arg in node.args[1:]:
            chosen: list[Case] = []
            for left in found:
                for right in self.read(arg, left.region, bound):
                    first, second = self._by_sign(_plain(left) - _plain(right), right.region)
                    large, small = (left, right) if node.op == "max" else (right, left)
                    chosen += [Case(first, large.above, ONE), Case(second, small.above, ONE)]
            found = [case for case in chosen if not case.region.is_empty()]
        return found

    def _absolute(self, found: list[Case]) -> list[Case]:
        result: list[Case] = []
        for case in found:
            positive, negative = self._by_sign(_plain(case), case.region)
            result += [Case(positive, case.above, ONE), Case(negative, case.above.times(-1), ONE)]
        return [case for case in result if not case.region.is_empty()]

    def _by_sign(self, value: Polynomial, region: Region) -> tuple[Region, Region]:
        """Where `value >= 0` and where it is not.

        A value that depends on the index of a sum must have one sign over the index's whole range,
        which is decided at its two ends.
        """
        indices = [atom for atom in value.atoms if isinstance(atom, str) and atom in self.ranges]
        if not indices:
            here = region.where(Bound(value.as_linear()[0], False))
            return here, region - here
        if any(sum(e for a, e in m if a in self.ranges) > 1 for m in value.terms):
            raise NoClosedForm("its terms change form along a sum")
        low, high = self.ranges[indices[0]]
        nothing = region - region
        ends = [self._by_sign(value.substituted({indices[0]: end}), region) for end in (low, high)]
        if all(negative.is_empty() for _, negative in ends):
            return region, nothing
        opposite = [
            self._by_sign(value.substituted({indices[0]: end}).times(-1), region) for end in (low, high)
        ]
        if all(negative.is_empty() for _, negative in opposite):
            return nothing, region  # at most 0, and at 0 both sides say the same
        raise NoClosedForm("its terms change form along a sum")

    def _divided(
        self, left: Formula, right: Formula, region: Region, bound: dict[str, Polynomial], *, rest: bool
    ) -> list[Case]:
        """`left // right` or `left % right`, for a divisor that is a number or the modulus."""
        found: list[Case] = []
        if isinstance(right, Number) and right.value > 0:
            for case in self.read(left, region, bound):
                value = _plain(case)
                form, scale = value.times(1 / right.value).as_linear()
                if any(atom in self.ranges for atom in value.atoms):
                    raise NoClosedForm("it divides the index of a sum")
                quotient = Polynomial.linear(form) if scale == 1 else Polynomial.atom(Quotient(form, scale))
                found.append(
                    Case(case.region, value - quotient.times(right.value) if rest else quotient, ONE)
                )
            return found
        if not isinstance(right, Symbol) or right.name in bound or right.name not in self.split.values():
            raise NoClosedForm("it divides by something that is neither a number nor the rule's modulus")
        for case in self.read(left, region, bound):
            found += self._by_modulus(case, right.name, rest)
        return found

    def _by_modulus(self, case: Case, modulus: str, rest: bool) -> list[Case]:
        """Blocks and offsets apart; an offset outside 0 … w - 1 carries into the blocks."""
        if not _has_whole_coefficients(_plain(case)):
            raise NoClosedForm(f"it divides fractions by {modulus}")
        blocks, offsets = Polynomial({}), Polynomial({})
        for monomial, coefficient in case.above.terms.items():
            powers = dict(monomial)
            if powers.get(modulus, 0):
                powers[modulus] -= 1
                kept = tuple((a, e) for a, e in powers.items() if e)
                blocks = blocks + Polynomial({kept: coefficient})
            else:
                offsets = offsets + Polynomial({monomial: coefficient})
        if any(atom in self.ranges for atom in case.above.atoms):
            raise NoClosedForm("it divides the index of a sum")
        form, size = offsets.as_linear()[0], Linear(((modulus, 1),))
        found: list[Case] = []
        left = case.region
        for carry in sorted(range(-MAX_CARRY, MAX_CARRY + 1), key=abs):
            low = form.plus(size, -carry)
            high = Linear((), -1).plus(size, carry + 1).plus(form, -1)
            here = case.region.where(Bound(low, False)).where(Bound(high, False))
            if not here.is_empty():
                value = offsets - Polynomial.atom(modulus).times(carry) if rest else blocks
                found.append(Case(here, value if rest else value + Polynomial.constant(carry), ONE))
                left = left - here
            if left.is_empty():
                return found
        raise NoClosedForm(f"its division by {modulus} falls into too many cases")

    def _sum(self, node: Sum, region: Region, bound: dict[str, Polynomial]) -> list[Case]:
        found: list[Case] = []
        index = f"{node.variable} {len(self.ranges)}"  # a name no text can hold
        inner = {**bound, node.variable: Polynomial.atom(index)}
        for low in self.read(node.low, region, bound):
            for high in self.read(node.high, low.region, bound):
                start, end = _plain(low), _plain(high)
                if not (_has_whole_coefficients(start) and _has_whole_coefficients(end)):
                    raise NoClosedForm("a sum whose limits may be fractions cannot be decided")
                nested = any(atom in self.ranges for atom in (end - start).atoms)
                some, none = self._by_sign(end - start + ONE if nested else end - start, high.region)
                if not none.is_empty():
                    found.append(Case(none, Polynomial({}), ONE))
                if some.is_empty():
                    continue
                self.ranges[index] = (start, end)
                for body in self.read(node.body, some, inner):
                    total = _summed(_plain(body), index, start, end)
                    found.append(Case(body.region, total, ONE))
                del self.ranges[index]
        return found


def _plain(case: Case) -> Polynomial:
    """The value of a case that is no fraction."""
    if case.below != ONE:
        raise NoClosedForm("it compares, divides or sums fractions")
    return case.above


def _joined(op: str, left: Case, right: Case) -> Case:
    region = right.region
    if op == "*":
        return Case(region, left.above * right.above, left.below * right.below)
    if op == "/":
        # Once more above and below: a denominator inside the divisor must not be 0 either
        above, below = left.above * right.below * right.below, left.below * right.above * right.below
        if below.is_constant:
            return Case(region, above.times(1 / below.terms[()]), ONE)
        return Case(region, above, below)
    if left.below == right.below:
        above = left.above + right.above if op == "+" else left.above - right.above
        return Case(region, above, left.below)
    ours, theirs = left.above * right.below, right.above * left.below
    return Case(region, ours + theirs if op == "+" else ours - theirs, left.below * right.below)


def _has_whole_coefficients(polynomial: Polynomial) -> bool:
    return all(c.denominator == 1 for c in polynomial.terms.values())


def _summed(body: Polynomial, index: str, low: Polynomial, high: Polynomial) -> Polynomial:
    """The sum of a polynomial body for the index from `low` to `high`."""
    total = Polynomial({})
    for monomial, coefficient in body.terms.items():
        power = dict(monomial).get(index, 0)
        rest = Polynomial({tuple((a, e) for a, e in monomial if a != index): coefficient})
        up_to = _power_sum(power)
        span = _at(up_to, high) - _at(up_to, low - ONE)
        total = total + rest * span
    return total


def _at(coefficients: tuple[Fraction, ...], value: Polynomial) -> Polynomial:
    total = Polynomial({})
    for coefficient in reversed(coefficients):
        total = total * value + Polynomial.constant(coefficient)
    return total


@lru_cache
def _power_sum(power: int) -> tuple[Fraction, ...]:
    """Coefficients of the polynomial P with P(x) = 1**power + … + x**power (power 0: P(x) = x).

    (x + 1)**(p + 1) - 1 telescopes into the sum over j <= p of C(p + 1, j) P_j(x): solve it for P_p.
    """
    shifted = [Fraction(comb(power + 1, j)) for j in range(power + 2)]
    shifted[0] -= 1  # (x + 1)**(p + 1) - 1
    for j in range(power):
        for place, coefficient in enumerate(_power_sum(j)):
            shifted[place] -= comb(power + 1, j) * coefficient
    return tuple(coefficient / (power + 1) for coefficient in shifted)
