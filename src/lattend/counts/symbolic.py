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
from lattend.counts.polynomial import Polynomial
from lattend.errors import NoClosedForm
from lattend.sets import Atom, Bound, Linear, Quotient, Region

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


class _Reader:
    def __init__(self, region: Region) -> None:
        self.split = region.space.split
        self.space = region.space

    def name(self, name: str) -> Polynomial:
        if name not in self.split:
            return Polynomial.atom(name)
        block, offset = (atom for _, atom in self.space.coordinates((name,)))
        return Polynomial.atom(self.split[name]) * Polynomial.atom(block) + Polynomial.atom(offset)

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
            case Apply(op="floor" | "ceil", args=(Apply(op="/", args=(left, right)),)):
                if node.op == "floor":
                    return self._divided(left, right, region, bound, rest=False)
                raised = Apply("-", (Apply("+", (left, right)), Number(Fraction(1))))
                return self._divided(raised, right, region, bound, rest=False)
            case Apply(op="floor" | "ceil", args=(arg,)):
                return self._whole(self.read(arg, region, bound))
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
                if not right.region.is_empty()
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
        return [Case(c.region, c.above**exponent, c.below**exponent) for c in self.read(base, region, bound)]

    def _extreme(self, node: Apply, region: Region, bound: dict[str, Polynomial]) -> list[Case]:
        found = self.read(node.args[0], region, bound)
        for arg in node.args[1:]:
            chosen: list[Case] = []
            for left in found:
                for right in self.read(arg, left.region, bound):
                    gap = _linear(_difference(left, right))
                    first = right.region.where(Bound(gap, False))
                    second = right.region - first
                    large, small = (left, right) if node.op == "max" else (right, left)
                    chosen += [Case(first, large.above, large.below), Case(second, small.above, small.below)]
            found = [case for case in chosen if not case.region.is_empty()]
        return found

    def _absolute(self, found: list[Case]) -> list[Case]:
        result: list[Case] = []
        for case in found:
            positive = case.region.where(Bound(_linear(case.above), False))
            result.append(Case(positive, case.above, case.below))
            result.append(Case(case.region - positive, case.above.times(-1), case.below))
        return [case for case in result if not case.region.is_empty()]

    def _whole(self, found: list[Case]) -> list[Case]:
        if all(case.below.is_constant and _has_whole_coefficients(case.above) for case in found):
            return found
        raise NoClosedForm("floor of something that is not a quotient cannot be decided")

    def _divided(
        self, left: Formula, right: Formula, region: Region, bound: dict[str, Polynomial], *, rest: bool
    ) -> list[Case]:
        """`left // right` or `left % right`, for a divisor that is a number or the modulus."""
        found: list[Case] = []
        if isinstance(right, Number) and right.value.denominator == 1 and right.value > 0:
            divisor = int(right.value)
            for case in self.read(left, region, bound):
                atom: Atom = Quotient(_linear(case.above), divisor)
                quotient = Polynomial.atom(atom)
                value = case.above - quotient.times(divisor) if rest else quotient
                found.append(Case(case.region, value, ONE))
            return found
        if not isinstance(right, Symbol) or right.name not in self.split.values():
            raise NoClosedForm("it divides by something that is neither a number nor the rule's modulus")
        for case in self.read(left, region, bound):
            found += self._by_modulus(case, right.name, rest)
        return found

    def _by_modulus(self, case: Case, modulus: str, rest: bool) -> list[Case]:
        """Blocks and offsets apart; an offset outside 0 … w - 1 carries into the blocks."""
        blocks, offsets = Polynomial({}), Polynomial({})
        for monomial, coefficient in case.above.terms.items():
            powers = dict(monomial)
            if powers.get(modulus, 0):
                powers[modulus] -= 1
                kept = tuple((a, e) for a, e in powers.items() if e)
                blocks = blocks + Polynomial({kept: coefficient})
            else:
                offsets = offsets + Polynomial({monomial: coefficient})
        form, size = _linear(offsets), Linear(((modulus, 1),))
        found: list[Case] = []
        left = case.region
        for carry in sorted(range(-MAX_CARRY, MAX_CARRY + 1), key=abs):
            low = _plus(form, size, -carry)
            high = _plus(_negated(form), size, carry + 1, -1)
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
        index = f"{node.variable} "  # a name no text can hold
        inner = {**bound, node.variable: Polynomial.atom(index)}
        for low in self.read(node.low, region, bound):
            for high in self.read(node.high, low.region, bound):
                if low.below != ONE or high.below != ONE:
                    raise NoClosedForm("a sum whose limits are fractions cannot be decided")
                some = high.region.where(Bound(_linear(high.above - low.above + ONE), False))
                none = high.region - some
                if not none.is_empty():
                    found.append(Case(none, Polynomial({}), ONE))
                if some.is_empty():
                    continue
                for body in self.read(node.body, some, inner):
                    if index in body.below.atoms:
                        raise NoClosedForm("a sum of fractions cannot be decided")
                    total = _summed(body.above, index, low.above, high.above)
                    found.append(Case(body.region, total, body.below))
        return found


def _joined(op: str, left: Case, right: Case) -> Case:
    region = right.region
    if op == "*":
        return Case(region, left.above * right.above, left.below * right.below)
    if op == "/":
        return Case(region, left.above * right.below, left.below * right.above)
    if left.below == right.below:
        above = left.above + right.above if op == "+" else left.above - right.above
        return Case(region, above, left.below)
    ours, theirs = left.above * right.below, right.above * left.below
    return Case(region, ours + theirs if op == "+" else ours - theirs, left.below * right.below)


def _difference(left: Case, right: Case) -> Polynomial:
    if left.below.is_constant and right.below.is_constant:
        return left.above * right.below - right.above * left.below
    raise NoClosedForm("fractions cannot be compared")


def _linear(polynomial: Polynomial) -> Linear:
    """The polynomial as a linear form, scaled by a positive number to whole coefficients."""
    if any(sum(e for _, e in monomial) > 1 for monomial in polynomial.terms):
        raise NoClosedForm("it compares or divides something that is not linear")
    divisor = 1
    for coefficient in polynomial.terms.values():
        divisor = divisor * coefficient.denominator
    scaled = polynomial.times(divisor)
    terms = [(m[0][0], int(c)) for m, c in scaled.terms.items() if m]
    return Linear.of(terms, int(scaled.terms.get((), Fraction(0))))


def _has_whole_coefficients(polynomial: Polynomial) -> bool:
    return all(c.denominator == 1 for c in polynomial.terms.values())


def _negated(form: Linear) -> Linear:
    return Linear.of([(a, -c) for a, c in form.terms], -form.constant)


def _plus(form: Linear, other: Linear, factor: int, constant: int = 0) -> Linear:
    terms = [*form.terms, *((a, c * factor) for a, c in other.terms)]
    return Linear.of(terms, form.constant + other.constant * factor + constant)


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
