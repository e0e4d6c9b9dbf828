"""Runs: a set of positions as pieces of equal size at equal distances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lattend.rules.language.expr import Arith, Num, Term


@dataclass(frozen=True)
class Run:
    """`count` pieces of `size` positions, the first at `start`, one every `period`."""

    start: int
    size: int
    period: int = 0
    count: int = 1

    @property
    def total(self) -> int:
        """How many positions it has."""
        return self.size * self.count

    @property
    def end(self) -> int:
        """One beyond its last position."""
        return self.start + self.period * (self.count - 1) + self.size

    def positions(self) -> NDArray[np.int64]:
        """All of them, in order."""
        pieces = self.start + self.period * np.arange(self.count)[:, None]
        return (pieces + np.arange(self.size)).reshape(-1)

    def position(self, at: Term) -> Term:
        """The position of number `at` in the run: `start + period*(k // size) + k % size`.

        >>> from lattend.rules.language.expr import Name, term_text
        >>> term_text(Run(120, 8, 128, 4).position(Name("k")))
        '128 * (k // 8) + k % 8 + 120'
        """
        found = at
        if self.count > 1:
            piece = at if self.size == 1 else Arith("//", (at, Num(self.size)))
            found = Arith("*", (Num(self.period), piece))
            if self.size > 1:
                found = Arith("+", (found, Arith("%", (at, Num(self.size)))))
        return found if self.start == 0 else Arith("+", (found, Num(self.start)))

    def __str__(self) -> str:
        if self.count == 1:
            return f"{self.start} … {self.end - 1}" if self.size > 1 else str(self.start)
        each = f"{self.size} of each {self.period}" if self.size > 1 else f"every {self.period}th"
        return f"{each} from {self.start} to {self.end - 1}"


def runs_of(attended: NDArray[np.bool_], first: int = 0) -> list[Run]:
    """The runs of positions that are True, whose numbers begin at `first`.

    >>> [str(run) for run in runs_of(np.array([1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 1]) > 0)]
    ['2 of each 3 from 0 to 7', '12']
    """
    steps = np.diff(attended.astype(np.int8), prepend=0, append=0)
    starts, ends = np.flatnonzero(steps == 1) + first, np.flatnonzero(steps == -1) + first
    return [*_grouped(starts, ends - starts)]


def runs_of_spans(first: NDArray[np.int64], end: NDArray[np.int64]) -> list[Run]:
    """The runs of positions in spans that may touch and overlap, in any order.

    >>> [str(run) for run in runs_of_spans(np.array([3, 0, 1]), np.array([5, 1, 2]))]
    ['2 of each 3 from 0 to 4']
    """
    starts, ends = merged_spans(first, end)
    return [*_grouped(starts, ends - starts)]


def merged_spans(
    first: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same positions as spans in order that do not touch."""
    some = first < end
    order = np.argsort(first[some], kind="stable")
    first, end = first[some][order], np.maximum.accumulate(end[some][order])
    if not len(first):
        return first, end
    new = np.concatenate([[True], first[1:] > end[:-1]])
    return first[new], end[np.concatenate([new[1:], [True]])]


def _grouped(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> Iterator[Run]:
    """Pieces of one size at one distance together, from the first on."""
    place = 0
    while place < len(starts):
        start, size = int(starts[place]), int(sizes[place])
        count, period = 1, 0
        if place + 1 < len(starts) and sizes[place + 1] == size:
            period = int(starts[place + 1]) - start
            like = (np.diff(starts[place:]) == period) & (sizes[place + 1 :] == size)
            count = 1 + (len(like) if like.all() else int(np.argmin(like)))
        yield Run(start, size, period if count > 1 else 0, count)
        place += count
