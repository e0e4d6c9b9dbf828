"""Crossover: from how many keys on torch's own attention is faster than a kernel of ours."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from lattend.report.data import Data
from lattend.report.numbers import format_number, percent


@dataclass(frozen=True)
class KernelCrossover(Data):
    """One pass of a call beside the size at which two kernels took equally long.

    `keys` are those of a block and `width` the numbers of each; both together decide, so that blocks of half
    as many keys, twice as wide, cross at the same place, at `numbers`: inf where torch's own attention
    took longer at every size up to `measured`.

    >>> str(KernelCrossover("forward", keys=1024, width=64, numbers=8192 * 64))
    "forward: torch's own attention is faster from 8,192 keys of 64 on; here there are 1,024, 12.5% of that"
    """

    JSON = "pass=work keys width library_faster_from=first library_is_faster=passed"

    work: str  # forward or backward
    keys: int
    width: int
    numbers: float
    measured: int = 0

    @property
    def passed(self) -> bool:
        """Whether torch's own attention is the faster one."""
        return self.keys * self.width >= self.numbers

    @property
    def first(self) -> int | None:
        """The least number of keys at which it is."""
        return None if self.numbers == inf else -int(-self.numbers // self.width)

    def __str__(self) -> str:
        if self.first is None:
            most = f"up to {self.measured // self.width:,} keys of {self.width}"
            begun = f"{self.work}: torch's own attention was faster from no size on that was measured, {most}"
            return f"{begun}; here there are {self.keys:,}"
        share = f"{percent(self.keys, self.first)} of"
        if self.passed:
            share = f"{format_number(self.keys / self.first)} times"
        begun = f"{self.work}: torch's own attention is faster from {self.first:,} keys of {self.width} on"
        return f"{begun}; here there are {self.keys:,}, {share} that"
