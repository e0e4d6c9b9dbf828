"""Equations: where a formula is the count, or two formulas are equal, and the first numbers where not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from lattend.counts.algebra import factored
from lattend.counts.count import Count
from lattend.counts.formula import Formula, applied, value_at, walk
from lattend.counts.notation import Notation, condition_text
from lattend.counts.prove import never_zero, solved, vanishes
from lattend.counts.symbolic import ONE, Case, cases, coordinate
from lattend.counts.verdict import NOWHERE, Counterexample, Verdict
from lattend.errors import NoClosedForm
from lattend.rules.language.expr import Num
from lattend.rules.language.linear import Linear
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound, Region
from lattend.sets.region import Piece, uncovered

MOST_TRIED = 8_000  # numbers, so that a verdict does not depend on how busy the machine is
MOST_SOLUTIONS_TRIED = 1_000
MAX_SIZE = 40
MAX_EQUATION = 100
MAX_SLICES = 16


@dataclass(frozen=True, eq=False)
class Judged:
    """A verdict, and the region where the claim is known to hold."""

    verdict: Verdict
    agreed: Region


def judge_equation(count: Count, left: Formula | None, right: Formula, text: str) -> Judged:
    """Returns the verdict on `left = right` on the count's domain; without a left side it is the count."""
    left_count, difference = count, right
    if left is not None:  # then their difference is a formula for nothing
        left_count = replace(count, closed=replace(count.closed, pieces=[], line=None))
        difference = applied("-", right, left)

    compared = partial(_compared, count, left, right)
    nothing = count.closed.domain - count.closed.domain
    try:
        agreed, open_ = _where_equal(left_count, difference)
    except NoClosedForm as reason:
        counterexample = _counterexample(count, difference, None, compared)
        if counterexample is not None:
            return Judged(Verdict(text, "fails", counterexample=counterexample), nothing)
        return Judged(Verdict(text, "undecided", remaining=str(reason)), nothing)
    missed = count.closed.domain - agreed
    if missed.is_empty():
        return Judged(Verdict(text, "holds", count.domain_text), agreed)
    counterexample = _counterexample(count, difference, missed, compared)
    if counterexample is None:
        return Judged(Verdict(text, "undecided", words(count, missed), remaining=open_.text()), agreed)
    if agreed.is_empty() or not grows(count, agreed):
        where = open_.text([] if agreed.is_empty() else [words(count, agreed)])
        return Judged(Verdict(text, "fails", where or NOWHERE, counterexample), agreed)
    return Judged(
        Verdict(text, "holds only where", words(count, agreed), counterexample, open_.text()), agreed
    )


def first_difference(count: Count, left: Formula | None, right: Formula) -> Counterexample | None:
    """Returns the first small numbers at which a formula differs from the count or the left side."""
    return _counterexample(count, right, None, partial(_compared, count, left, right))


def _compared(
    count: Count, left: Formula | None, right: Formula, values: Mapping[str, int]
) -> Counterexample | None:
    claimed = value_at(right, values)
    exact = count.number(values) if left is None else value_at(left, values)
    named = {name: values[name] for name in count.names}
    return None if claimed == exact else Counterexample(named, claimed, exact, left is not None)


def grows(count: Count, region: Region) -> bool:
    """Whether sizes can be arbitrarily large in the region: equality at n = 0 alone is no success."""
    sizes = set(count.rule.sizes) - set(count.values)
    return not sizes or region.unbounded(sizes)


def words(count: Count, region: Region) -> str:
    """The region as conditions on the count's names."""
    return condition_text(
        region.within(count.closed.domain).clauses,
        Notation(count.names, short=False, signed=count.closed.signed),
    )


class _Open:
    """Undecided equations: those with a known solution, and the others."""

    def __init__(self, count: Count) -> None:
        self.count = count
        self.solved: list[str] = []
        self.unsolved: list[str] = []

    def add(self, equation: Polynomial, region: Region) -> None:
        text = f"{Notation(self.count.names, short=False).formula(equation)} == 0"
        where = words(self.count, region)
        bracketed = f"({where})" if " or " in where else where
        target = self.solved if self._has_solution(equation, region) else self.unsolved
        target.append(f"{text} and {bracketed}" if where else text)

    def _has_solution(self, equation: Polynomial, region: Region) -> bool:
        tried = (
            v for size in range(MAX_SIZE) for v in _points(self.count, self.count.names, {}, size, size + 3)
        )
        tried = islice(tried, MOST_SOLUTIONS_TRIED)
        return any(equation.value(values) == 0 and region.holds(values) for values in tried)

    def text(self, before: list[str] | None = None) -> str:
        """Returns all regions, those with an unknown solution last."""
        certain = _joined([*(before or []), *_short(self.solved)])
        perhaps = _joined(_short(self.unsolved))
        if not certain:
            return f"{perhaps}, if anywhere" if perhaps else ""
        return f"{certain}, perhaps also where {perhaps}" if perhaps else certain


def _joined(wheres: list[str]) -> str:
    """Returns regions joined by `or`, with brackets around those that contain `and`."""
    if len(wheres) == 1:
        return wheres[0]
    return " or ".join(f"({where})" if _is_conjunction(where) else where for where in wheres)


def _is_conjunction(where: str) -> bool:
    outside, inner = "", where
    while outside != inner:
        outside, inner = inner, re.sub(r"\([^()]*\)", "", inner)
    return " and " in outside and " or " not in outside


def _short(texts: list[str]) -> list[str]:
    short = [text for text in dict.fromkeys(texts) if len(text) < MAX_EQUATION][:3]
    return short if len(short) == len(set(texts)) else [*short, "a longer equation holds"]


def _where_equal(count: Count, formula: Formula) -> tuple[Region, _Open]:
    """Returns where the formula equals the count, from linear conditions, and the undecided equations."""
    zero = uncovered(count.pieces, count.closed.domain)
    agreed = zero - zero
    open_ = _Open(count)
    pieces = [*count.closed.pieces, *(Piece(part, Polynomial({})) for part in zero.parts())]
    for piece in pieces:
        for case in cases(formula, piece.region):
            gap = case.above - piece.formula * case.below
            zeros, rest = _zeros(gap, case)
            agreed = agreed | zeros
            if rest is not None:
                open_.add(rest, _where_defined(case))
    return agreed, open_


def _zeros(gap: Polynomial, case: Case) -> tuple[Region, Polynomial | None]:
    """Returns where `gap` is 0, from linear conditions, and the factor that may be 0 elsewhere."""
    region = _where_defined(case)
    if vanishes(gap, region):
        return region, None
    zeros, rest = region - region, ONE
    if region.is_point():
        return zeros, None
    gap = gap.substituted(solved(region.equalities()))
    for factor, _ in factored(gap)[1]:
        zero = _zeros_of(factor, region)
        if zero is not None:
            zeros = zeros | zero
        elif vanishes(factor, region):
            return region, None
        elif not never_zero(factor, region):
            rest = rest * factor
    if rest == ONE:
        return zeros, None
    slices = _slices(region)
    if slices is None:
        return zeros, rest
    for part in slices:
        zero, left = _zeros(gap, Case(part, case.above, ONE))
        if left is not None:
            return zeros, rest
        zeros = zeros | zero
    return zeros, None


def _zeros_of(factor: Polynomial, region: Region) -> Region | None:
    """Returns where an irreducible factor is 0, if it is linear or a split size; otherwise None."""
    if factor.degree() == 1:
        return region.where(Bound(factor.as_linear()[0], True))
    for name in region.space.split:
        if factor == coordinate(region.space, name):
            for _, atom in region.space.coordinates((name,)):
                region = region.where(Bound(Linear(((atom, 1),)), True))
            return region
    return None


def _slices(region: Region) -> list[Region] | None:
    """Returns slices of the region along a direction with few points, if there is one."""
    for polyhedron in region.polyhedra():
        for form, low, high in polyhedron.bounded():
            if high - low < MAX_SLICES:
                values = range(low, high + 1)
                parts = [region.where(Bound(Linear(form.terms, form.constant - v), True)) for v in values]
                inside = [part for part in parts if not part.is_empty()]
                if uncovered([Piece(part, Polynomial({})) for part in inside], region).is_empty():
                    return inside
    return None


def _where_defined(case: Case) -> Region:
    """The case's region without the zeros of the denominator."""
    region = case.region
    for factor, _ in factored(case.below)[1]:
        zeros = _zeros_of(factor, region)
        if zeros is None:
            raise NoClosedForm("it is not known where its denominator is 0")
        region = region - zeros
    return region


def _counterexample(
    count: Count,
    formula: Formula,
    missed: Region | None,
    compared: Callable[[Mapping[str, int]], Counterexample | None],
) -> Counterexample | None:
    """The first numbers where the two differ: all at least 1, or else at least 0, or else any.

    Sizes come first, the least number before others. The least point of `missed`, where the two are not known
    to agree, is such a point if the formula is wrong there. Otherwise numbers are tried in order: for a size
    n every parameter runs past n by more than a degree, beyond which a polynomial that agrees cannot differ.
    """
    margin = 3 + max((piece.formula.degree() for piece in count.closed.pieces), default=0)
    numbers = (abs(node.value) for node, _ in walk(formula) if isinstance(node, Num))
    margin += min(MAX_SIZE, max(numbers, default=0))
    positions = {*count.fixed}
    for lowest in (1, 0, None):
        floors = {name: 0 if name in positions and lowest else lowest for name in count.names}
        least = None if missed is None else _at_least(missed, floors).least(count.names)
        counterexample = None if least is None else compared({**count.values, **least})
        if counterexample is not None:
            return counterexample
        tried = (
            v for size in range(MAX_SIZE) for v in _points(count, count.names, floors, size, size + margin)
        )
        wrong = (compared(values) for values in islice(tried, MOST_TRIED))
        counterexample = next((one for one in wrong if one is not None), None)
        if counterexample is not None:
            return counterexample
    return None


def _at_least(region: Region, floors: Mapping[str, int | None]) -> Region:
    """The part of a region where no name is below its number; a split name has none below 0."""
    for name, lowest in floors.items():
        if lowest is not None and name not in region.space.split:
            region = region.where(Bound(Linear(((name, 1),), -lowest), False))
    return region


def _points(
    count: Count, names: list[str], floors: Mapping[str, int | None], size: int, limit: int
) -> Iterator[dict[str, int]]:
    """Yields all values in the domain within `limit` with `size` for the first name, in order."""
    order = sorted(range(-limit, limit + 1), key=lambda value: (value < 0, abs(value)))

    def extended(values: dict[str, int], rest: list[str]) -> Iterator[dict[str, int]]:
        if not rest:
            if count.closed.domain.holds(values):
                yield values
            return
        name = rest[0]
        lowest = floors.get(name)
        if lowest is None:
            lowest = 0 if name in count.rule.sizes or name in count.fixed else -limit
        lowest = max(lowest, 1) if name in count.rule.moduli else lowest
        for value in [size] if name == names[0] else order:
            if value >= lowest:
                yield from extended({**values, name: value}, rest[1:])

    yield from extended(dict(count.values), names)
