"""CatalogueEntry: what the tour finds out about one rule of the catalogue, measured then and there."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from lattend.counts import Count, forget
from lattend.counts.check import CountCheck, check
from lattend.draw.grid.samples import Sample
from lattend.report.numbers import seconds
from lattend.rules import Rule
from lattend.rules.language import expr

RUNS = 3
UPTO = {1: 12, 2: 6, 3: 3}  # how far sizes and parameters are checked on a line, an image, a volume


@dataclass(frozen=True)
class CatalogueEntry:
    """A rule of the catalogue with its count, the time that it took, and its check."""

    sample: Sample
    rule: Rule
    printed: str
    seconds: float
    value: int
    check: CountCheck | None  # None: the rule is data, and `value` is what enumeration gives
    equal: bool

    @property
    def verdict(self) -> str:
        """How the count compares with enumeration, in words."""
        if self.check is not None:
            return str(self.check)
        return f"{self.value:,} pairs from the data, {'as' if self.equal else 'unlike'} enumeration"

    @property
    def time(self) -> str:
        """How long the count took: `4.2 ms`."""
        return seconds(self.seconds)

    @property
    def domain(self) -> str:
        return expr.text(self.rule.formula_domain)

    @property
    def numbers(self) -> str:
        """The numbers of the value: `n = 12, t = 3`."""
        numbers = {**self.rule.values, **self.sample.at}
        return ", ".join(f"{name} = {value:,}" for name, value in numbers.items())


def measured(sample: Sample) -> CatalogueEntry:
    """Count a sample without caches, with its time, and check it against enumeration."""
    rule = sample.rule
    times: list[float] = []
    count: Count | int = 0
    for _ in range(RUNS):
        forget()
        begun = time.perf_counter()
        count = rule.count()
        times.append(time.perf_counter() - begun)
    bound = rule.at(**sample.at)
    value = bound.total()
    data = bool(expr.arrays(rule.condition))
    checked = None if data else check(rule, UPTO[len(rule.axes)])
    equal = bool(checked) if checked is not None else value == bound.count(method="enumerate")
    return CatalogueEntry(sample, rule, str(count), statistics.median(times), value, checked, equal)
