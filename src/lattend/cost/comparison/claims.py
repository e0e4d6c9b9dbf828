"""Claims: what the signs of a difference are as a size grows, and the fewest that are right everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product

from lattend.cost.comparison.cells import SignCell, Signs, Values, When, shortest_condition
from lattend.cost.comparison.crossing_points import CrossingPoint
from lattend.rules.language.polynomial import Polynomial

MOST_TRIED = 64
Run = tuple[int, int, int]  # sign, first and last number that was evaluated


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
class Claim:
    """Signs, and the places between them."""

    signs: Signs
    places: tuple[CrossingPoint, ...]

    @property
    def effort(self) -> tuple[int, list[tuple[bool, bool, int]]]:
        return len(self.signs), [place.effort for place in self.places]

    def same_as(self, other: Claim) -> bool:
        return self.signs == other.signs and all(
            a is b for a, b in zip(self.places, other.places, strict=True)
        )

    def holds(self, sample: SignSample) -> bool:
        """Whether it is right at a sample, and does not speak of a place before the first number."""
        passed_numbers: list[Fraction] = []
        for place in self.places:
            number = place.at(sample.values)
            if number is None or number <= (passed_numbers[-1] if passed_numbers else sample.numbers[0] - 1):
                return False
            passed_numbers.append(number)
        for number, sign in zip(sample.numbers, sample.signs, strict=True):
            passed = 0
            for place, at in zip(self.places, passed_numbers, strict=True):
                if number == at and not place.jump:
                    passed = -1
                    break
                passed += number >= at
            if sign != (0 if passed < 0 else self.signs[passed]):
                return False
        return True


def claims(sample: SignSample, places: Sequence[CrossingPoint]) -> Iterator[Claim]:
    """All that is right at this sample, what is easy to read first."""
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
        claim = Claim(tuple(signs), chosen)
        if claim.holds(sample):
            yield claim


def _fits(place: Fraction, jump: bool, before: Run | None, after: Run, zero: int | None) -> bool:
    """Whether the change from one run to the next can be at this place."""
    if jump:
        return zero is None and place == after[1]
    if zero is not None or before is None:
        return place == zero
    low = before[2] <= place if before[0] == 0 else before[2] < place
    high = place <= after[1] if after[0] == 0 else place < after[1]
    return low and high


def covering(
    cells: Sequence[tuple[SignCell, list[SignSample]]], places: Sequence[CrossingPoint]
) -> dict[int, Claim] | None:
    """A claim for every cell, as few different ones as can be; None where a cell has none."""
    pool: list[Claim] = []
    for _, samples in cells:
        longest = max(samples, key=lambda sample: len(sample.runs))
        for claim in claims(longest, places):
            if not any(claim.same_as(other) for other in pool) and all(map(claim.holds, samples)):
                pool.append(claim)
    right = [[i for i, (_, samples) in enumerate(cells) if all(map(c.holds, samples))] for c in pool]
    claim_of: dict[int, Claim] = {}
    weights = [len(samples) for _, samples in cells]
    while len(claim_of) < len(cells):
        gains = [sum(weights[i] for i in where if i not in claim_of) for where in right]
        best = max(range(len(pool)), key=lambda c: (gains[c], _less(pool[c])), default=None)
        if best is None or not gains[best]:
            return None
        for cell in right[best]:
            claim_of.setdefault(cell, pool[best])
    return claim_of


def _less(claim: Claim) -> tuple[int, ...]:
    """What is easier to read is greater."""
    return tuple(-int(part) for effort in claim.effort[1] for part in effort)


def conditions(
    tests: Sequence[Polynomial],
    cells: Sequence[tuple[SignCell, list[SignSample]]],
    claim_of: dict[int, Claim],
) -> list[tuple[Claim, When]]:
    """Each claim with a short condition, which holds in the cells of the claim and nowhere where it is wrong.

    A cell where several claims are right is added to one of them only if no condition holds there yet.
    """
    used = list({id(claim): claim for claim in claim_of.values()}.values())
    right = [[claim for claim in used if all(map(claim.holds, samples))] for _, samples in cells]

    def condition(claim: Claim, mine: Sequence[int]) -> When:
        one_sign = len(claim.signs) == 1 and claim.signs != (0,)  # may be said where all is equal too
        every = [i for i in range(len(cells)) if not (one_sign and claim_of[i].signs == (0,))]
        wrong = [i for i in every if claim not in right[i]]
        return shortest_condition(
            tests, *([cells[i][0].signs for i in side] for side in (mine, wrong, every))
        )

    cells_of = {id(claim): [i for i, fit in enumerate(right) if fit == [claim]] for claim in used}
    conditions_of = {id(claim): condition(claim, cells_of[id(claim)]) for claim in used}
    for index, (cell, _) in enumerate(cells):
        if not any(cells_of[id(c)] and conditions_of[id(c)].holds(cell.samples[0]) for c in right[index]):
            claim = claim_of[index]
            cells_of[id(claim)].append(index)
            conditions_of[id(claim)] = condition(claim, cells_of[id(claim)])
    return [(claim, conditions_of[id(claim)]) for claim in used if cells_of[id(claim)]]
