"""A claimed formula on a region: cases of (region, numerator, denominator), all polynomials.

min, max, abs, //, %, floor, pieces and empty sums are decided by splitting the region, so that what is left
in each case is algebra. The index of a sum is one more coordinate of the region while its body is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm

from lattend.counts.algebra import factored
from lattend.counts.formula import (
    Formula,
    Piecewise,
    Sum,
    applied,
    walk,
)
from lattend.counts.progression import summed_powers
from lattend.counts.prove import keeps_sign, residues, solved
from lattend.errors import NoClosedForm
from lattend.rules.language.expr import And, Arith, Compare, Condition, Lookup, Name, Not, Num, Or, Truth
from lattend.rules.language.linear import Quotient, atom_names
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound, Region, Space, summed
from lattend.sets.region import Piece, uncovered

MAX_POWER = 16
MAX_CARRY = 24
MAX_CASES = 200

Indices = Mapping[str, str]  # the coordinate of each sum's index


@dataclass(frozen=True, eq=False)
class Case:
    """On `region` the formula is `above / below`."""

    region: Region
    above: Polynomial
    below: Polynomial


ONE = Polynomial.constant(1)


def cases(formula: Formula, region: Region) -> list[Case]:
    """Returns the formula on `region` by cases; raises NoClosedForm if it is not piecewise rational."""
    return _read(formula, region, {})


def coordinate(space: Space, name: str) -> Polynomial:
    """A name in the coordinates of a space: a split n is w*(n // w) + n % w."""
    if name not in space.split:
        return Polynomial.atom(name)
    block, offset = (Polynomial.atom(atom) for _, atom in space.coordinates((name,)))
    return Polynomial.atom(space.split[name]) * block + offset


def _read(node: Formula, region: Region, bound: Indices) -> list[Case]:
    match node:
        case Num():
            return [Case(region, Polynomial.constant(node.value), ONE)]
        case Name():
            return [Case(region, coordinate(region.space, bound.get(node.name, node.name)), ONE)]
        case Sum():
            return _sum(node, region, bound)
        case Piecewise():
            return _piecewise(node, region, bound)
        case Arith(op="//", args=args):
            return _read(applied("floor", applied("/", *args)), region, bound)
        case Arith(op="%", args=(left, right)):
            quotient = applied("floor", applied("/", left, right))
            return _read(applied("-", left, applied("*", right, quotient)), region, bound)
        case Arith(op="floor", args=(arg,)):
            return [part for case in _read(arg, region, bound) for part in _floored(case)]
        case Arith(op="ceil", args=(arg,)):
            down = applied("floor", applied("neg", arg))
            return _read(applied("neg", down), region, bound)
        case Arith(op="min" | "max"):
            return _extreme(node, region, bound)
        case Arith(op="abs", args=(arg,)):
            return _read(applied("max", arg, applied("neg", arg)), region, bound)
        case Arith(op="^", args=(base, power)):
            return _power(base, power, region, bound)
        case Arith():
            return _arithmetic(node, region, bound)
        case Lookup():
            raise NoClosedForm("it looks up data")


def _arithmetic(node: Arith, region: Region, bound: Indices) -> list[Case]:
    results = _read(node.args[0], region, bound)
    if node.op == "neg":
        return [Case(c.region, c.above.times(-1), c.below) for c in results]
    for arg in node.args[1:]:
        results = _limited(
            _joined(node.op, left, right)
            for left in results
            for right in _read(arg, left.region, bound)
            if not right.region.is_empty() and not (node.op == "/" and right.above.is_zero)
        )
    return results


def _limited(results: Iterator[Case]) -> list[Case]:
    taken: list[Case] = []
    for case in results:
        taken.append(case)
        if len(taken) > MAX_CASES:
            raise NoClosedForm(f"it falls into more than {MAX_CASES} cases")
    return taken


def _power(base: Formula, power: Formula, region: Region, bound: Indices) -> list[Case]:
    if not isinstance(power, Num) or not 0 <= power.value <= MAX_POWER:
        raise NoClosedForm(f"only whole powers from 0 to {MAX_POWER} can be decided")
    exponent = power.value
    results = _read(base, region, bound)
    if exponent == 0:  # 1, but only where the base is defined
        return [Case(c.region, c.below, c.below) for c in results]
    return [Case(c.region, c.above**exponent, c.below**exponent) for c in results]


def _extreme(node: Arith, region: Region, bound: Indices) -> list[Case]:
    results = _read(node.args[0], region, bound)
    for arg in node.args[1:]:
        chosen: list[Case] = []
        for left in results:
            for right in _read(arg, left.region, bound):
                gap = _joined("-", left, right)
                first, second = _by_sign(gap.above * gap.below, right.region)
                large, small = (left, right) if node.op == "max" else (right, left)
                for part, one, other in ((first, large, small), (second, small, large)):
                    if not part.is_empty():  # the other one must be defined too
                        chosen.append(Case(part, one.above * other.below, one.below * other.below))
        results = _limited(iter(chosen))
    return results


# Conditions


def _piecewise(node: Piecewise, region: Region, bound: Indices) -> list[Case]:
    results: list[Case] = []
    for piece, when in node.pieces:
        part, region = _where(when, region, bound)
        if not part.is_empty():
            results += _read(piece, part, bound)
    return results


def _where(condition: Condition, region: Region, bound: Indices) -> tuple[Region, Region]:
    """Returns where the condition holds and where it does not; elsewhere it is undefined."""
    nothing = region - region
    if isinstance(condition, Truth):
        return (region, nothing) if condition.value else (nothing, region)
    if isinstance(condition, Not):
        true, false = _where(condition.arg, region, bound)
        return false, true
    if isinstance(condition, And | Or):
        left, other, joint = region, nothing, isinstance(condition, And)
        for arg in condition.args:
            true, false = _where(arg, left, bound)
            left, decided = (true, false) if joint else (false, true)
            other = other | decided
        return (left, other) if joint else (other, left)
    holds, fails = nothing, nothing
    for case in _read(applied("-", condition.left, condition.right), region, bound):
        true, false = _compared(condition, case.above * case.below, _nonzero(case))
        holds, fails = holds | true, fails | false
    return holds, fails


def _compared(relation: Compare, gap: Polynomial, region: Region) -> tuple[Region, Region]:
    """Returns where a difference satisfies the relation, and where it does not."""
    if relation.op in ("<=", ">"):
        least, less = _by_sign(gap.times(-1), region)
        return (least, less) if relation.op == "<=" else (less, least)
    least, less = _by_sign(gap, region)
    if relation.op in (">=", "<"):
        return (least, less) if relation.op == ">=" else (less, least)
    zero = least - _by_sign(gap.times(-1), least)[1]
    return (zero, region - zero) if relation.op == "==" else (region - zero, zero)


def _nonzero(case: Case) -> Region:
    """The part of a case's region where its denominator is not 0."""
    if case.below.is_constant:
        return case.region
    return _by_sign(case.below, case.region)[1] | _by_sign(case.below.times(-1), case.region)[1]


def _by_sign(value: Polynomial, region: Region) -> tuple[Region, Region]:
    """Returns where `value >= 0` and where `value < 0`, from the signs of its factors."""
    nothing = region - region
    if value.is_zero or region.is_empty():
        return region, nothing
    if value.degree() <= 1:
        return _sign_of_factor(value, region)
    number, factors = factored(value)
    above, below = (region, nothing) if number > 0 else (nothing, region)  # where it is not 0 so far
    for factor, power in factors:
        less = _sign_of_factor(factor, region)[1]
        more = _sign_of_factor(factor.times(-1), region)[1]
        if power % 2:
            above, below = (above & more) | (below & less), (above & less) | (below & more)
        else:
            above, below = above & (more | less), below & (more | less)
    return region - below, below


def _sign_of_factor(factor: Polynomial, region: Region) -> tuple[Region, Region]:
    """Returns where an irreducible polynomial is at least 0, and where it is less."""
    if factor.degree() <= 1:
        nonnegative = region.where(Bound(factor.as_linear()[0], False))
        return nonnegative, region - nonnegative
    sample = region.sample()
    if sample is None:
        return region, region
    for modulus in dict.fromkeys(region.space.split.values()):  # n - w is negative where (n - w) // w is
        if any(dict(powers).get(modulus) for powers in factor.terms):
            nothing = region - region
            least, less = nothing, nothing
            for case in _by_modulus(factor.times(_whole_scale(factor)), 1, modulus, region):
                more, fewer = _by_sign(case.above, case.region)
                least, less = least | more, less | fewer
            return least, less
    if not keeps_sign(factor, region):
        raise NoClosedForm("it compares or divides something that is not linear")
    return (region, region - region) if factor.value(sample) > 0 else (region - region, region)


# Quotients


def _floored(case: Case) -> list[Case]:
    """The value of a case rounded down."""
    if case.below == ONE:
        return _floored_by_number(case.above, case.region)
    scale = lcm(_whole_scale(case.above), _whole_scale(case.below))
    above, below = case.above.times(scale), case.below.times(scale)
    for modulus in dict.fromkeys(case.region.space.split.values()):
        times = below.terms.get(((modulus, 1),))
        if times is not None and len(below.terms) == 1:
            sign = 1 if times > 0 else -1
            return _by_modulus(above.times(sign), abs(int(times)), modulus, case.region)
    below = below.substituted(solved(case.region.equalities()))
    if below.is_constant and not below.is_zero:
        return _floored_by_number(above.times(1 / below.terms[()]), case.region)
    above.as_linear()  # raises where it is not linear
    results: list[Case] = []
    for sign in (1, -1):
        _, part = _by_sign(below.times(-sign), case.region)
        quotients = _quotients(above.times(sign), below.times(sign), part)
        results += [Case(region, Polynomial.constant(number), ONE) for number, region in quotients]
    return results


def _floored_by_number(value: Polynomial, region: Region) -> list[Case]:
    """A polynomial rounded down: itself less the rest that its residues leave."""
    divisor = _whole_scale(value)
    if divisor == 1:
        return [Case(region, value, ONE)]
    if value.is_constant:
        return [Case(region, Polynomial.constant(floor(value.terms[()])), ONE)]
    if value.degree() <= 1:
        return [Case(region, Polynomial.atom(Quotient(*value.as_linear())), ONE)]
    results: list[Case] = []
    for rest, part in residues(value.times(divisor), divisor, region):
        if not part.is_empty():
            results.append(Case(part, value - Polynomial.constant(Fraction(rest, divisor)), ONE))
    return results


def _by_modulus(value: Polynomial, times: int, modulus: str, region: Region) -> list[Case]:
    """Returns `value // (times * modulus)` from blocks and offsets, with the carry of the offsets."""
    if _whole_scale(value) > 1:
        raise NoClosedForm(f"it divides fractions by {modulus}")
    blocks, offsets = Polynomial({}), Polynomial({})
    for monomial, coefficient in value.terms.items():
        powers = dict(monomial)
        if powers.get(modulus, 0):
            powers[modulus] -= 1
            kept = tuple((a, e) for a, e in powers.items() if e)
            blocks = blocks + Polynomial({kept: coefficient})
        else:
            offsets = offsets + Polynomial({monomial: coefficient})
    offsets.as_linear()  # raises where it is not linear
    return [
        case
        for carry, part in _quotients(offsets, Polynomial.atom(modulus), region)
        for case in _floored_by_number((blocks + Polynomial.constant(carry)).times(Fraction(1, times)), part)
    ]


def _quotients(value: Polynomial, divisor: Polynomial, region: Region) -> Iterator[tuple[int, Region]]:
    """Yields each value of `value // divisor` with its region, for a positive divisor."""
    for _ in range(MAX_CARRY):
        sample = region.sample()
        if sample is None:
            return
        number = int(value.value(sample) // divisor.value(sample))
        least, less = _by_sign(value - divisor.times(number), region)
        more, part = _by_sign(value - divisor.times(number + 1), least)
        yield number, part
        region = less | more
    if not region.is_empty():
        raise NoClosedForm(f"its division by {_plain_text(divisor)} falls into too many cases")


def _plain_text(divisor: Polynomial) -> str:
    """Returns the name of a divisor, or `a sum`."""
    return " and ".join(map(str, divisor.atoms)) if len(divisor.atoms) == 1 else "a sum"


def _whole_scale(polynomial: Polynomial) -> int:
    """The least number by which the polynomial has whole coefficients."""
    return lcm(*(c.denominator for c in polynomial.terms.values()))


# Sums


def _sum(node: Sum, region: Region, bound: Indices) -> list[Case]:
    results: list[Case] = []
    for low in _read(applied("ceil", node.low), region, bound):
        for high in _read(applied("floor", node.high), low.region, bound):
            some, none = _by_sign(high.above - low.above, high.region)
            if not none.is_empty():
                results.append(Case(none, Polynomial({}), ONE))
            if not some.is_empty():
                results += _summed_over(node, some, low.above, high.above, bound)
    return results


def _summed_over(node: Sum, region: Region, low: Polynomial, high: Polynomial, bound: Indices) -> list[Case]:
    """Returns the sum where it has terms, by formulas for sums of powers or of points of a set."""
    index = f"_{node.variable}{len(bound)}"  # a name no text can hold
    modulus = _modulus_of_index(node, region.space, low, high, index)
    split = {**region.space.split, **({index: modulus} if modulus else {})}
    space = Space((*region.space.parameters, index), (), split)
    inner = Region(space, region.points.align_params(space.isl) & space.context.params())
    if not _is_polynomial(node.body):
        position = coordinate(space, index)
        inner = _by_sign(high - position, _by_sign(position - low, inner)[0])[0]
    bodies = _read(node.body, inner, {**bound, node.variable: index})
    bodies = [body for body in bodies if not body.region.is_empty()]
    below = bodies[0].below
    if any(body.below != below for body in bodies) or any(index in atom_names(atom) for atom in below.atoms):
        raise NoClosedForm("it sums fractions")
    if len(bodies) == 1 and not modulus and _is_in_powers_of(index, bodies[0].above):
        return [Case(region, summed_powers(bodies[0].above, index, low, high), below)]
    pieces = [Piece(body.region, body.above) for body in bodies]
    if not uncovered(pieces, inner).is_empty():
        raise NoClosedForm("its terms are not defined everywhere")
    results = [Case(piece.region & region, piece.formula, below) for piece in summed(pieces, index)]
    rest = uncovered([Piece(case.region, case.above) for case in results], region)
    return _limited(iter([*results, Case(rest, Polynomial({}), below)]))


def _is_polynomial(body: Formula) -> bool:
    """Returns whether the terms of a sum have the same form for every index."""
    nodes = (node for node, _ in walk(body))
    return all(
        isinstance(node, (Num, Name))
        or (isinstance(node, Arith) and node.op in ("+", "-", "*", "/", "^", "neg"))
        for node in nodes
    )


def _is_in_powers_of(index: str, formula: Polynomial) -> bool:
    """Returns whether no quotient in the formula contains the index."""
    return all(isinstance(atom, str) or index not in atom_names(atom) for atom in formula.atoms)


def _modulus_of_index(node: Sum, space: Space, low: Polynomial, high: Polynomial, index: str) -> str | None:
    """Returns the modulus by which the index must be split: that of its limits, or a divisor of the index."""
    if _is_polynomial(node.body):
        return None
    moduli = {*space.split.values()}
    for limit in (low, high):
        for powers in limit.terms:
            divisors = [atom for atom, _ in powers if atom in moduli]
            if divisors and len(powers) > 1:
                return str(divisors[0])
    for part, _ in walk(node.body):
        if isinstance(part, Arith) and part.op in ("/", "//", "%"):
            left, right = part.args
            used = {n.name for n, inner in walk(left) if isinstance(n, Name) and n.name not in inner}
            if isinstance(right, Name) and right.name in moduli and node.variable in used:
                return right.name
    return None


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
