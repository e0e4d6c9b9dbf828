"""Conditions on the other symbols: the cells that tests cut out, and the shortest text for some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from random import Random

import numpy as np
from numpy.typing import NDArray

from lattend.cost.comparison.crossing_points import format_sum
from lattend.rules.language.linear import Linear
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound, Region

Values = dict[str, int]
Signs = tuple[int, ...]
Box = Mapping[int, frozenset[int]]  # the signs that some tests may have, by their places
MOST_SAMPLES = 600
MOST_CELLS = 200
SMALL = {0: (), 1: (*range(13), 31, 64, 100), 2: (*range(10), 17, 40), 3: (*range(5), 9, 17)}
FEW = (1, 2, 3, 7)
SIGNS = {
    frozenset({1}): ">",
    frozenset({0, 1}): ">=",
    frozenset({0}): "=",
    frozenset({-1, 0}): "<=",
    frozenset({-1}): "<",
    frozenset({-1, 1}): "!=",
}
MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "=", "!=": "!="}


@dataclass(frozen=True, eq=False)
class When:
    """A condition on the other symbols: the signs of the tests lie in one of these boxes."""

    tests: Sequence[Polynomial] = ()
    boxes: tuple[Box, ...] = ({},)
    seen: tuple[frozenset[int], ...] = ()  # the signs each test has somewhere

    def holds(self, values: Values) -> bool:
        return any(
            all(_sign(self.tests[place].value(values)) in allowed for place, allowed in box.items())
            for box in self.boxes
        )

    @cached_property
    def text(self) -> str:
        """The condition as people write it; empty where it always holds."""
        shown = [{p: allowed & self.seen[p] for p, allowed in box.items()} for box in self.boxes]
        texts = [_box(self.tests, box) for box in shown]
        return texts[0] if len(texts) == 1 else " or ".join(f"({t})" if " and " in t else t for t in texts)


ALWAYS = When()


def cells(
    tests: Sequence[Polynomial], region: Region, names: Sequence[str], more: Sequence[Values] = ()
) -> dict[Signs, list[Values]]:
    """Samples of every cell by the signs of its tests; `more` are further samples.

    Where the tests are linear, none is left out: an integer set says whether one has a point.
    """
    by_signs: dict[Signs, list[Values]] = {}
    for values in (*_grid(region, names), *_linear_samples(tests, region, names), *more):
        samples = by_signs.setdefault(tuple(_sign(test.value(values)) for test in tests), [])
        if values not in samples:
            samples.append(values)
    return by_signs


def _sign(value: object) -> int:
    number: int = value  # pyright: ignore[reportAssignmentType]
    return (number > 0) - (number < 0)


def _grid(region: Region, names: Sequence[str]) -> list[Values]:
    """Small numbers, and a few larger ones."""
    if not names:
        return [{}]
    steps = SMALL.get(len(names), FEW)
    grid: list[Values] = []
    for numbers in product(steps, repeat=len(names)):
        values = dict(zip(names, numbers, strict=True))
        if bool(region.holds(values)):
            grid.append(values)
    stride = max(1, len(grid) // MOST_SAMPLES + 1)
    return grid[::stride] if len(grid) > MOST_SAMPLES else grid


def _linear_samples(tests: Sequence[Polynomial], region: Region, names: Sequence[str]) -> list[Values]:
    """A point of every cell of the tests that are linear."""
    regions = [region]
    for test in tests:
        form = _linear(test)
        if form is None:
            continue
        opposite = Linear(tuple((atom, -c) for atom, c in form.terms), -form.constant)
        halves = (
            Bound(Linear(form.terms, form.constant - 1), False),
            Bound(form, True),
            Bound(Linear(opposite.terms, opposite.constant - 1), False),
        )
        cut = [part.where(half) for part in regions for half in halves]
        regions = [part for part in cut if not part.is_empty()]
        if len(regions) > MOST_CELLS:
            return []
    points = [part.least(list(names)) for part in regions] if names else []
    return [values for values in points if values is not None]


def _linear(test: Polynomial) -> Linear | None:
    if test.degree() != 1 or any(c.denominator != 1 for c in test.terms.values()):
        return None
    terms = [(m[0][0], int(c)) for m, c in test.terms.items() if m]
    return Linear.of(terms, int(test.terms.get((), 0)))


def far_samples(region: Region, names: Sequence[str], many: int = 120) -> list[Values]:
    """Numbers of all magnitudes, the same ones every time."""
    chance = Random(len(names))
    samples: list[Values] = []
    for _ in range(many if names else 0):
        values = {name: int(2 ** chance.uniform(0, 12)) for name in names}
        if bool(region.holds(values)):
            samples.append(values)
    return samples


def shortest_condition(
    tests: Sequence[Polynomial], wanted: Sequence[Signs], others: Sequence[Signs], every: Sequence[Signs]
) -> When:
    """When the signs are among the wanted ones, as short as the others allow."""
    if not others:
        return When()
    kept_out = np.array(others, np.int64)
    orders = [_order(tests, sign) for sign in (1, -1)]
    widened = [_widened(signs, kept_out, order) for signs in wanted for order in orders]
    boxes = list(
        {tuple(sorted((p, tuple(sorted(a))) for p, a in box.items())): box for box in widened}.values()
    )
    lengths = [len(_box(tests, box)) for box in boxes]
    left: set[Signs] = set(wanted)
    kept: list[Box] = []
    while left:
        gains = [sum(_inside(signs, box) for signs in left) for box in boxes]
        best = boxes[max(range(len(boxes)), key=lambda i: (gains[i], -lengths[i]))]
        kept.append(best)
        left = {signs for signs in left if not _inside(signs, best)}
    seen = tuple(frozenset(column) for column in zip(*every, strict=True))
    return When(tests, tuple(kept), seen)


def _inside(signs: Signs, box: Box) -> bool:
    return all(signs[place] in allowed for place, allowed in box.items())


def _order(tests: Sequence[Polynomial], sign: int) -> list[int]:
    """The order in which tests are dropped: high degree first, then the longest, or the shortest."""
    return sorted(
        range(len(tests)), key=lambda p: (tests[p].degree(), sign * len(tests[p].terms)), reverse=True
    )


def _widened(signs: Signs, others: NDArray[np.int64], order: Sequence[int]) -> Box:
    """The signs as a box that holds none of the others, tests dropped in this order where they can be."""
    box = {place: frozenset({sign}) for place, sign in enumerate(signs)}
    outside = others != np.array(signs)  # by which tests each of the others is kept out
    left = outside.sum(axis=1)
    for place in order:
        without = left - outside[:, place]
        if (without > 0).all():
            del box[place]
            left = without
            continue
        for wider in (frozenset({-1, 0}), frozenset({0, 1})):
            still = ~np.isin(others[:, place], list(wider))
            if signs[place] in wider and (without + still > 0).all():
                box[place] = wider
                left = without + still
                break
    return box


def _box(tests: Sequence[Polynomial], box: Box) -> str:
    """Conditions joined by `and`, two bounds of one side chained: n < b + 1 <= 2n."""
    lows: dict[str, tuple[str, str]] = {}
    highs: dict[str, tuple[str, str]] = {}
    rest: list[str] = []
    for place, allowed in box.items():
        left, sign, right = _compared(tests[place], SIGNS[allowed])
        side = lows if sign[0] == ">" else highs if sign[0] == "<" else None
        if side is None or left in side:
            rest.append(f"{left} {sign} {right}")
        else:
            side[left] = (sign, right)
    for left, (sign, right) in lows.items():
        upper = highs.pop(left, None)
        if upper is None:
            rest.append(f"{left} {sign} {right}")
        else:
            rest.append(f"{right} {MIRRORED[sign]} {left} {' '.join(upper)}")
    return " and ".join([*rest, *(f"{left} {sign} {right}" for left, (sign, right) in highs.items())])


@lru_cache(maxsize=4096)
def _compared(test: Polynomial, sign: str) -> tuple[str, str, str]:
    """`b + 1 - n > 0` as b + 1, >, n: the longer side first."""
    plus = Polynomial({m: c for m, c in test.terms.items() if c > 0})
    minus = Polynomial({m: -c for m, c in test.terms.items() if c < 0})
    if _length(minus) > _length(plus):
        plus, minus, sign = minus, plus, MIRRORED[sign]
    return format_sum(plus), sign, format_sum(minus)


def _length(side: Polynomial) -> tuple[int, bool, int]:
    """The rank of a side in a printed comparison: many terms come first, then names, then small numbers."""
    return len(side.terms), not side.is_constant, -int(sum(side.terms.values()))
