"""Solving: where a difference is positive, 0 or negative as one size grows, in closed form.

The candidates are all places where it can change. In a cell of the other symbols the same ones count, in the
same order, so that a few exact samples of each cell tell which; what is found is checked at all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.cost.comparison.cells import SignCell, Signs, Values, When, cells, far_samples
from lattend.cost.comparison.claims import Claim, SignSample, conditions, covering
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


def candidates(gap: Difference) -> Candidates:
    """All places and tests of a difference."""
    all_ = Candidates()
    for piece in gap.pieces:
        _ends(piece, gap.over, all_)
        _roots(piece, gap.over, all_)
    return all_


def by_power(polynomial: Polynomial, over: str) -> Coefficients:
    """Its coefficients as a polynomial in one name."""
    coefficients: dict[int, Polynomial] = {}
    for powers, coefficient in polynomial.terms.items():
        power = next((e for a, e in powers if a == over), 0)
        rest = tuple((a, e) for a, e in powers if a != over)
        coefficients[power] = coefficients.get(power, Polynomial({})) + Polynomial({rest: coefficient})
    return [coefficients.get(power, Polynomial({})) for power in range(max(coefficients, default=0) + 1)]


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


ALWAYS = When()
ROUNDS = 4  # of putting in numbers at which an answer was wrong
START = 8  # numbers from the first on that are always evaluated


@dataclass(frozen=True, eq=False)
class CrossingCase:
    """The signs of the difference as the size grows, the places between them, and when that is so.

    At `start`, the first number, the difference is 0.
    """

    signs: Signs
    places: tuple[CrossingPoint, ...]
    when: When = ALWAYS
    start: CrossingPoint | None = None

    @property
    def claim(self) -> Claim:
        if self.start is None:
            return Claim(self.signs, self.places)
        return Claim((0, *self.signs), (self.start, *self.places))


@dataclass(frozen=True, eq=False)
class CrossingSolution:
    """The cases, and every point at which they were checked, with the sign there."""

    cases: tuple[CrossingCase, ...]
    points: dict[str, NDArray[Any]]
    signs: NDArray[Any]


def solve(gap: Difference) -> CrossingSolution:
    """All cases; NoClosedForm where a candidate is not a fraction or a square root."""
    possible = candidates(gap)
    region = gap.region
    far = far_samples(region, gap.names)
    more: list[Values] = []
    for _ in range(ROUNDS):
        solution = _solved(gap, possible, cells(possible.tests, region, gap.names, more))
        wrong = [values for values in far if not _is_right(gap, solution.cases, possible.places, values)]
        if not wrong:
            return solution
        more += wrong
    raise NoClosedForm(f"the cases are too many to tell as {gap.over} grows")


def _is_right(
    gap: Difference, cases: Sequence[CrossingCase], places: Sequence[CrossingPoint], values: Values
) -> bool:
    """Whether what is said to hold at these numbers holds there."""
    sample = sample_at(gap, places, values)
    if sample is None:
        return True
    right = [case for case in cases if case.claim.holds(sample) and case.when.holds(values)]
    same = any(case.signs == (0,) for case in right)
    return bool(right) and (same or all(case in right for case in cases if case.when.holds(values)))


def _solved(gap: Difference, possible: Candidates, grid: Sequence[SignCell]) -> CrossingSolution:
    """The cases that are right at all samples."""
    values = [sample for cell in grid for sample in cell.samples]
    ranges = [_evaluated_at(gap, possible.places, sample) for sample in values]
    points = _points(gap, values, ranges)
    signs = gap.signs(points)
    samples: list[tuple[SignCell, list[SignSample]]] = []
    at = place = 0
    for cell in grid:
        mine: list[SignSample] = []
        for sample in cell.samples:
            numbers = ranges[place]
            if numbers:
                mine.append(SignSample(sample, numbers, signs[at : at + len(numbers)].tolist()))
            at, place = at + len(numbers), place + 1
        if mine:
            samples.append((cell, mine))
    covered = covering(samples, possible.places)
    if covered is None or not samples:
        raise NoClosedForm(f"the sign changes in more ways than can be told as {gap.over} grows")
    claims_and_conditions = conditions(possible.tests, samples, covered)
    every = [sample for _, mine in samples for sample in mine]
    cases = [_case(claim, when, every) for claim, when in claims_and_conditions]
    return CrossingSolution(tuple(sorted(cases, key=_rank)), points, signs)


def _case(claim: Claim, when: When, samples: Sequence[SignSample]) -> CrossingCase:
    """The claim; nothing is said of what would come before the first number."""
    if claim.places and not any(_before(claim.places[0], s) for s in samples if claim.holds(s)):
        return CrossingCase(claim.signs[1:], claim.places[1:], when, claim.places[0])
    return CrossingCase(claim.signs, claim.places, when)


def _before(place: CrossingPoint, sample: SignSample) -> bool:
    number = place.at(sample.values)
    return number is not None and sample.numbers[0] < number


def sample_at(gap: Difference, places: Sequence[CrossingPoint], values: Values) -> SignSample | None:
    """The signs at numbers for all other symbols, around these places."""
    numbers = _evaluated_at(gap, places, values)
    if not numbers:
        return None
    points = _points(gap, [values], [numbers])
    return SignSample(values, numbers, gap.signs(points).tolist())


def _rank(case: CrossingCase) -> tuple[int, int]:
    """Crossings first, equality throughout last."""
    return -len(case.signs), case.signs == (0,)


def _evaluated_at(gap: Difference, places: Sequence[CrossingPoint], values: Values) -> list[int]:
    """The first numbers, those around every candidate, and some far beyond."""
    known = [number for place in places if (number := place.at(values)) is not None]
    far = max([START, *(abs(ceil(number)) for number in known)])
    numbers = {*range(START), 2 * far + 3, 4 * far + 9}
    for number in known:
        numbers |= set(range(floor(number) - 2, ceil(number) + 3))
    chosen = np.array(sorted(number for number in numbers if number >= 0), object)
    inside = np.broadcast_to(gap.is_defined({**values, gap.over: chosen}), chosen.shape)
    return [int(number) for number in chosen[inside.astype(bool)]]


def _points(
    gap: Difference, samples: Sequence[Values], ranges: Sequence[list[int]]
) -> dict[str, NDArray[Any]]:
    """Every sample with every number, as arrays."""
    lengths = [len(numbers) for numbers in ranges]
    over = np.array([number for numbers in ranges for number in numbers], object)
    env = {name: np.repeat(np.array([v[name] for v in samples], object), lengths) for name in gap.names}
    largest = max((abs(int(x)) for array in (over, *env.values()) for x in array), default=0)
    kind = np.int64 if largest < 2**31 else object
    return {name: array.astype(kind) for name, array in {gap.over: over, **env}.items()}
