"""Checking: every small case counted twice, by the closed form and pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from lattend.counts.closed import Closed
from lattend.counts.counting import closed_count
from lattend.counts.tiles import CHUNK, MAX_PAIRS
from lattend.errors import DomainError, TooLarge
from lattend.report.data import Data
from lattend.report.shown import Shown
from lattend.rules.language.evaluation import evaluate
from lattend.rules.rule import Rule

MOST_COMBINATIONS = 50_000  # of parameter values

Progress = Callable[[int, int], None]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Mismatch(Shown):
    """The numbers at which the two results disagree, and the query or key if it counts rows or columns."""

    at: dict[str, int]
    closed: int
    enumerated: int

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {value}" for name, value in self.at.items())
        return f"at {at} the closed form gives {self.closed}, enumeration {self.enumerated}"


@dataclass(frozen=True)
class CountCheck(Shown, Data):
    """The compared sizes and parameters, and the first mismatch; true if there is none."""

    JSON = "rule agrees=__bool__ cases pairs upto complete mismatch"

    rule: str
    cases: int
    pairs: int
    upto: dict[str, int]
    asked: int
    mismatch: Mismatch | None = None

    def __bool__(self) -> bool:
        return self.mismatch is None

    @property
    def complete(self) -> bool:
        """Whether every size and parameter went as far as asked."""
        return all(limit == self.asked for limit in self.upto.values())

    def __str__(self) -> str:
        if self.mismatch is not None:
            return str(self.mismatch)
        limits: dict[int, list[str]] = {}
        for name, limit in self.upto.items():
            limits.setdefault(limit, []).append(name)
        upto = "; ".join(f"{', '.join(names)} up to {limit}" for limit, names in limits.items())
        looked = f"{self.cases:,} {'case' if self.cases == 1 else 'cases'}, {self.pairs:,} pairs"
        return f"count, rows and columns agree in {looked}" + (f": {upto}" if upto else "")


def check(rule: Rule, upto: int = 12, progress: Progress | None = None) -> CountCheck:
    """Whether the closed forms of count, rows and columns equal enumeration at every small case.

    Sizes run from 0 to `upto`, parameters from -`upto` to `upto` where its formulas hold. Sizes stop
    earlier when more pairs than MAX_PAIRS would have to be looked at; the result says where.
    `progress` is told how many pairs of how many are done.

    >>> from lattend.rules.reader import rule
    >>> print(check(rule("k <= q"), upto=3))  # 0 + 1 + 4 + 9 = 14 pairs
    count, rows and columns agree in 4 cases, 14 pairs: n up to 3
    """
    if upto < 0:
        raise DomainError(f"checking goes up to a number that is at least 0, got {upto}")
    forms = [closed_count(rule, fixed, rule.budget).closed for fixed in _fixed(rule)]
    parameters = [name for name in rule.parameters if name not in rule.values]
    reach = _parameter_reach(upto, len(parameters))
    combinations = _combinations(parameters, reach)
    sizes, limit, total = _sizes(rule, upto, len(combinations))
    done = cases = pairs = 0
    for size in sizes:
        area = _area(rule, size)
        for part in _split(combinations, area):
            defined = _defined(rule, size, parameters, part)
            mismatch = _compared(rule, forms, size, parameters, defined) if len(defined) else None
            cases, pairs = cases + len(defined), pairs + area * len(defined)
            done += area * len(part)
            if mismatch is not None:
                return CountCheck(str(rule), cases, pairs, {}, upto, mismatch)
            if progress is not None:
                progress(done, total)
    free = [name for name in rule.sizes if name not in rule.values]
    return CountCheck(
        str(rule), cases, pairs, dict.fromkeys(free, limit) | dict.fromkeys(parameters, reach), upto
    )


def _fixed(rule: Rule) -> tuple[tuple[str, ...], ...]:
    """Returns what is counted: all pairs, the keys of each query, the queries of each key."""
    return (), tuple(axis.query for axis in rule.axes), tuple(axis.key for axis in rule.axes)


def _parameter_reach(upto: int, count: int) -> int:
    """Returns the upper limit of parameters: the requested one, or one with few enough combinations."""
    while (2 * upto + 1) ** count > MOST_COMBINATIONS:
        upto -= 1
    return upto


def _combinations(parameters: list[str], reach: int) -> Ints:
    """Returns every combination of parameter values, one in each row, nonnegative ones first."""
    values = [*range(reach + 1), *range(-1, -reach - 1, -1)]
    rows = list(product(values, repeat=len(parameters)))
    return np.array(rows, np.int64).reshape(len(rows), len(parameters))


def _sizes(rule: Rule, upto: int, combinations: int) -> tuple[list[dict[str, int]], int, int]:
    """The sizes to look at, smallest first, how far they go, and how many pairs that takes."""
    free = [name for name in rule.sizes if name not in rule.values]
    sizes: list[dict[str, int]] = []
    total = 0
    for largest in range(upto + 1) if free else [0]:
        shell = [
            {**rule.values, **dict(zip(free, values, strict=True))}
            for values in product(range(largest + 1), repeat=len(free))
            if not values or max(values) == largest
        ]
        pairs = sum(_area(rule, size) for size in shell) * combinations
        if total + pairs > MAX_PAIRS:
            if not sizes:
                raise TooLarge(
                    f"checking looks at every pair, here {pairs:,} of them; the limit is {MAX_PAIRS:,}"
                )
            return sizes, largest - 1, total
        sizes, total = sizes + shell, total + pairs
    return sizes, upto, total


def _area(rule: Rule, size: Mapping[str, int]) -> int:
    return prod(size[name] for name in rule.limits.values())


def _split(combinations: Ints, area: int) -> Iterator[Ints]:
    step = max(1, CHUNK // max(1, area))
    for start in range(0, len(combinations), step):
        yield combinations[start : start + step]


def _defined(rule: Rule, size: Mapping[str, int], parameters: list[str], part: Ints) -> Ints:
    """The combinations that lie in the domain of the formulas at this size."""
    values = {**size, **dict(zip(parameters, part.T, strict=True))}
    return part[np.broadcast_to(evaluate(rule.formula_domain, values, {}), len(part))]


def _compared(
    rule: Rule, forms: list[Closed], size: Mapping[str, int], parameters: list[str], part: Ints
) -> Mismatch | None:
    """The first mismatch at this size, in the order of the combinations."""
    lengths = [size[name] for name in rule.limits.values()]
    ranges = np.ix_(np.arange(len(part)), *(np.arange(length) for length in lengths))
    columns = {name: part[:, i].reshape(ranges[0].shape) for i, name in enumerate(parameters)}
    positions = dict(zip(rule.positions, ranges[1:], strict=True))
    mask = np.broadcast_to(
        evaluate(rule.condition, {**size, **columns, **positions}, rule.data), (len(part), *lengths)
    )
    for form, fixed in zip(forms, _fixed(rule), strict=True):
        summed = tuple(i for i, name in enumerate(rule.positions, start=1) if name not in fixed)
        counted = mask.sum(axis=summed, keepdims=True)
        known = {name: coordinates for name, coordinates in positions.items() if name in fixed}
        closed = form.values_at({**size, **columns, **known}, counted.shape)
        wrong = np.argwhere(closed != counted)
        if len(wrong):
            case, *coordinates = wrong[0].tolist()
            at = {**size, **dict(zip(parameters, part[case].tolist(), strict=True))}
            at |= {name: i for name, i in zip(rule.positions, coordinates, strict=True) if name in fixed}
            return Mismatch(at, int(closed[tuple(wrong[0])]), int(counted[tuple(wrong[0])]))
    return None
