"""Solving: where a difference is positive, 0 or negative as one size grows, in closed form.

The candidates are all places where it can change. Tests of the other symbols cut their numbers into cells; in
a cell the same places count, in the same order, so that a few exact samples of each cell tell which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, islice, product
from math import ceil, floor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lattend.cost.comparison.conditions import (
    ALWAYS,
    Signs,
    Values,
    When,
    cells,
    far_samples,
    shortest_condition,
)
from lattend.cost.comparison.crossing_points import CrossingPoint, Difference, DifferencePiece, surds
from lattend.counts.algebra import factored
from lattend.errors import NoClosedForm
from lattend.rules.language.polynomial import Polynomial

ONE = Polynomial.constant(1)
ROUNDS = 4  # of putting in numbers at which an answer was wrong
START = 8  # numbers from the first on that are always evaluated
MOST_TRIED = 64
Coefficients = list[Polynomial]  # of 1, x, x^2
Run = tuple[int, int, int]  # sign, first and last number that was evaluated


@dataclass
class Candidates:
    """Places where the sign may change, and tests of the other symbols, which have no factor in common."""

    places: list[CrossingPoint] = field(default_factory=list[CrossingPoint])
    tests: list[Polynomial] = field(default_factory=list[Polynomial])

    def add_place(self, place: CrossingPoint) -> None:
        """Adds a place that is not there yet."""
        alike = any(
            p.above * place.below == place.above * p.below and p.jump == place.jump
            for p in self.places
            if p.under is None and place.under is None
        )
        if not alike:
            self.places.append(place)

    def add_test(self, polynomial: Polynomial) -> None:
        """Adds the factors of a polynomial whose sign matters."""
        for factor, _ in factored(polynomial)[1] if not polynomial.is_zero else ():
            if factor not in self.tests:
                self.tests.append(factor)

    def add_ends(self, piece: DifferencePiece, over: str) -> list[Coefficients]:
        """Adds where a piece begins and ends, and whether it is there at all; gives its ends."""
        ends: list[Coefficients] = []
        for limit in piece.limits:
            coefficients = by_power(limit.form, over)
            if len(coefficients) == 1:
                self.add_test(limit.form)
                continue
            if len(coefficients) > 2:
                raise NoClosedForm(f"a piece ends where {limit.form} is 0, which is not linear in {over}")
            ends.append(coefficients)
            first, slope = coefficients[0].times(-1), coefficients[1]
            self.add_place(CrossingPoint(first, slope, jump=True))
            if not limit.equal and slope == ONE.times(-1):  # up to here, so that the next one is different
                self.add_place(CrossingPoint(first - ONE, slope, jump=True))
        for one, other in combinations(ends, 2):
            self.add_test(_apart(one, other))
        return ends

    def add_roots(self, piece: DifferencePiece, over: str, ends: list[Coefficients]) -> None:
        """Adds where the formula of a piece is 0, and how these places lie to each other and to its ends."""
        lines: list[Coefficients] = []
        curves: list[Coefficients] = []
        for factor, _ in factored(piece.formula)[1]:
            coefficients = by_power(factor, over)
            self.add_test(coefficients[-1])
            if len(coefficients) > 3:
                raise NoClosedForm(f"the difference has degree {len(coefficients) - 1} in {over}")
            if len(coefficients) == 2:
                lines.append(coefficients)
                self.add_place(CrossingPoint(coefficients[0].times(-1), coefficients[1]))
            elif len(coefficients) == 3:
                c, b, a = coefficients
                under = b * b - (a * c).times(4)
                self.add_test(under)
                curves.append(coefficients)
                for place in surds(b.times(-1), under, a.times(2)):
                    self.add_place(place)
        for one, other in combinations(lines, 2):
            self.add_test(_apart(one, other))
        for line in lines:
            for end in ends:
                self.add_test(_apart(end, line))
            for curve in curves:
                self.add_test(_at_root(curve, line))
        for curve, end in product(curves, ends):
            self.add_test(_at_root(curve, end))
            self.add_test(_apart([curve[1], curve[2].times(2)], end))


def candidates(gap: Difference) -> Candidates:
    """All places and tests of a difference."""
    possible = Candidates()
    for piece in gap.pieces:
        possible.add_roots(piece, gap.over, possible.add_ends(piece, gap.over))
    return possible


def by_power(polynomial: Polynomial, over: str) -> Coefficients:
    """Its coefficients as a polynomial in one name."""
    coefficients: dict[int, Polynomial] = {}
    for powers, coefficient in polynomial.terms.items():
        power = next((e for a, e in powers if a == over), 0)
        rest = tuple((a, e) for a, e in powers if a != over)
        coefficients[power] = coefficients.get(power, Polynomial({})) + Polynomial({rest: coefficient})
    return [coefficients.get(power, Polynomial({})) for power in range(max(coefficients, default=0) + 1)]


def _apart(one: Coefficients, other: Coefficients) -> Polynomial:
    """0 where two lines have the same root."""
    return one[0] * other[1] - other[0] * one[1]


def _at_root(curve: Coefficients, line: Coefficients) -> Polynomial:
    """The curve at the root of a line, times the square of the line's slope."""
    (c, b, a), (constant, slope) = curve, line
    return c * slope * slope - b * constant * slope + a * constant * constant


@dataclass(frozen=True, eq=False)
class SignSample:
    """The other symbols' numbers, the numbers of the growing size, and the signs found there."""

    values: Values
    numbers: list[int]
    signs: list[int]

    @property
    def runs(self) -> list[Run]:
        """Stretches of one sign."""
        runs: list[Run] = []
        for number, sign in zip(self.numbers, self.signs, strict=True):
            begun = runs and runs[-1][0] == sign
            runs[-1:] = [(sign, runs[-1][1], number)] if begun else [*runs[-1:], (sign, number, number)]
        return runs


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
    def all_places(self) -> tuple[CrossingPoint, ...]:
        return self.places if self.start is None else (self.start, *self.places)

    def same_as(self, other: CrossingCase) -> bool:
        pairs = zip(self.places, other.places, strict=True)
        return self.signs == other.signs and all(a is b for a, b in pairs)

    def holds(self, sample: SignSample) -> bool:
        """Whether its signs are right at a sample, and no place is before the first number."""
        signs = self.signs if self.start is None else (0, *self.signs)
        passed_numbers: list[Fraction] = []
        for place in self.all_places:
            number = place.at(sample.values)
            if number is None or number <= (passed_numbers[-1] if passed_numbers else sample.numbers[0] - 1):
                return False
            passed_numbers.append(number)
        for number, sign in zip(sample.numbers, sample.signs, strict=True):
            passed = 0
            for place, at in zip(self.all_places, passed_numbers, strict=True):
                if number == at and not place.jump:
                    passed = -1
                    break
                passed += number >= at
            if sign != (0 if passed < 0 else signs[passed]):
                return False
        return True


def cases_of(sample: SignSample, places: Sequence[CrossingPoint]) -> Iterator[CrossingCase]:
    """All cases that are right at this sample, those that are easy to read first."""
    known = [(place, place.at(sample.values)) for place in places]
    signs: list[int] = []
    fits: list[list[CrossingPoint]] = []
    before: Run | None = None
    zero: int | None = None
    runs = sample.runs
    for run in runs:
        sign, first, last = run
        if sign == 0 and first == last and len(runs) > 1:
            zero = first
            continue
        if before is not None or zero is not None:
            if before is None:  # equal at the first number only: as if it had been less before
                signs.append(-sign)
            fits.append([p for p, c in known if c is not None and _fits(c, p.jump, before, run, zero)])
        signs.append(sign)
        before, zero = run, None
    ordered = [sorted(fit, key=lambda p: p.effort) for fit in fits]
    for chosen in islice(product(*ordered), MOST_TRIED):
        case = CrossingCase(tuple(signs), chosen)
        if case.holds(sample):
            yield case


def _fits(place: Fraction, jump: bool, before: Run | None, after: Run, zero: int | None) -> bool:
    """Whether the change from one run to the next can be at this place."""
    if jump:
        return zero is None and place == after[1]
    if zero is not None or before is None:
        return place == zero
    low = before[2] <= place if before[0] == 0 else before[2] < place
    high = place <= after[1] if after[0] == 0 else place < after[1]
    return low and high


class CrossingSolution(NamedTuple):
    """The cases, and every point at which they were checked, with the sign there."""

    cases: tuple[CrossingCase, ...]
    points: dict[str, NDArray[Any]]
    signs: NDArray[Any]


def solve(gap: Difference) -> CrossingSolution:
    """All cases; NoClosedForm where a candidate is not a fraction or a square root."""
    possible = candidates(gap)
    far = far_samples(gap.region, gap.names)
    more: list[Values] = []
    for _ in range(ROUNDS):
        solution = _solved(gap, possible, cells(possible.tests, gap.region, gap.names, more))
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
    right = [case for case in cases if case.holds(sample) and case.when.holds(values)]
    same = any(case.signs == (0,) for case in right)
    return bool(right) and (same or all(case in right for case in cases if case.when.holds(values)))


Cell = tuple[Signs, list[SignSample]]  # the signs of all tests, and samples that have them


def _solved(gap: Difference, possible: Candidates, grid: dict[Signs, list[Values]]) -> CrossingSolution:
    """The cases that are right at all samples."""
    values = [sample for samples in grid.values() for sample in samples]
    ranges = [_evaluated_at(gap, possible.places, sample) for sample in values]
    points = _points(gap, values, ranges)
    signs = gap.signs(points)
    stops = np.cumsum([0, *map(len, ranges)])
    sampled = (
        SignSample(value, numbers, signs[start : start + len(numbers)].tolist())
        for value, numbers, start in zip(values, ranges, stops, strict=False)
    )
    cells_: list[Cell] = []
    for tests, samples in grid.items():
        mine = [sample for sample in islice(sampled, len(samples)) if sample.numbers]
        cells_ += [(tests, mine)] if mine else []
    case_of = _covering(cells_, possible.places)
    if not case_of:
        raise NoClosedForm(f"the sign changes in more ways than can be told as {gap.over} grows")
    cases = _conditional(possible.tests, cells_, case_of)
    every = [sample for _, mine in cells_ for sample in mine]
    ranked = sorted(
        (_from_first(case, every) for case in cases), key=lambda c: (-len(c.signs), c.signs == (0,))
    )
    return CrossingSolution(tuple(ranked), points, signs)


def _covering(cells: Sequence[Cell], places: Sequence[CrossingPoint]) -> dict[int, CrossingCase]:
    """A case for every cell, as few different ones as can be; none at all where a cell has none."""
    pool: list[CrossingCase] = []
    for _, samples in cells:
        longest = max(samples, key=lambda sample: len(sample.runs))
        for case in cases_of(longest, places):
            if not any(case.same_as(other) for other in pool) and all(map(case.holds, samples)):
                pool.append(case)
    right = [[i for i, (_, samples) in enumerate(cells) if all(map(c.holds, samples))] for c in pool]
    case_of: dict[int, CrossingCase] = {}

    def gain(index: int) -> tuple[int, list[int]]:
        """How many samples it covers that none does yet; of equal ones, the easier to read."""
        uncovered = sum(len(cells[i][1]) for i in right[index] if i not in case_of)
        return uncovered, [-int(part) for place in pool[index].places for part in place.effort]

    while len(case_of) < len(cells):
        best = max(range(len(pool)), key=gain, default=None)
        if best is None or not gain(best)[0]:
            return {}
        for cell in right[best]:
            case_of.setdefault(cell, pool[best])
    return case_of


def _conditional(
    tests: Sequence[Polynomial], cells: Sequence[Cell], case_of: dict[int, CrossingCase]
) -> list[CrossingCase]:
    """Each case with a short condition, which holds in its cells and nowhere where it is wrong.

    A cell where several are right is added to one of them only if no condition holds there yet.
    """
    used = list({id(case): case for case in case_of.values()}.values())
    right = [[case for case in used if all(map(case.holds, samples))] for _, samples in cells]

    def condition(case: CrossingCase, mine: Sequence[int]) -> When:
        one_sign = len(case.signs) == 1 and case.signs != (0,)  # may be said where all is equal too
        every = [i for i in range(len(cells)) if not (one_sign and case_of[i].signs == (0,))]
        wrong = [i for i in every if case not in right[i]]
        return shortest_condition(tests, *([cells[i][0] for i in side] for side in (mine, wrong, every)))

    cells_of = {id(case): [i for i, fit in enumerate(right) if fit == [case]] for case in used}
    conditions = {id(case): condition(case, cells_of[id(case)]) for case in used}
    for index, (_, samples) in enumerate(cells):
        first = samples[0].values
        if not any(cells_of[id(c)] and conditions[id(c)].holds(first) for c in right[index]):
            case = case_of[index]
            cells_of[id(case)].append(index)
            conditions[id(case)] = condition(case, cells_of[id(case)])
    return [replace(case, when=conditions[id(case)]) for case in used if cells_of[id(case)]]


def _from_first(case: CrossingCase, samples: Sequence[SignSample]) -> CrossingCase:
    """The case without what would come before the first number."""

    def begins_before(sample: SignSample) -> bool:
        number = case.places[0].at(sample.values)
        return number is not None and sample.numbers[0] < number

    if case.places and not any(begins_before(sample) for sample in samples if case.holds(sample)):
        return replace(case, signs=case.signs[1:], places=case.places[1:], start=case.places[0])
    return case


def sample_at(gap: Difference, places: Sequence[CrossingPoint], values: Values) -> SignSample | None:
    """The signs at numbers for all other symbols, around these places."""
    numbers = _evaluated_at(gap, places, values)
    if not numbers:
        return None
    return SignSample(values, numbers, gap.signs(_points(gap, [values], [numbers])).tolist())


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
