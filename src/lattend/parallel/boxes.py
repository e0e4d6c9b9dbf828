"""Box: positions that are a run along each axis: of a line one run, of an image some rows and columns.

Positions that are too many boxes are Scattered: a list of them, in which a rule looks them up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from lattend.parallel.cut import Piece
from lattend.parallel.runs import Run, runs_of
from lattend.rules.flat import unflattened
from lattend.rules.language.expr import Lookup, Name, Term

Pieces = tuple[Piece, ...]  # one an axis
PLACES = "places of keys"  # the array in which scattered positions are looked up; no rule can call one so


@dataclass(frozen=True)
class Box:
    """Positions that are a run along each axis, in the order of their rows.

    >>> Box((Run(4, 2), Run(0, 1, 3, 2))).flat((9, 5)).tolist()  # rows 4 and 5, columns 0 and 3
    [20, 23, 25, 28]
    """

    runs: tuple[Run, ...]

    @staticmethod
    def of(pieces: Sequence[Piece]) -> Box:
        """All positions between these ends."""
        return Box(tuple(Run(a, b - a) for a, b in pieces))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(run.total for run in self.runs)

    @property
    def total(self) -> int:
        """How many positions it has."""
        return prod(self.sizes)

    @property
    def hull(self) -> Pieces:
        """The ends along each axis."""
        return tuple((run.start, run.end) for run in self.runs)

    def flat(self, whole: Sequence[int]) -> NDArray[np.int64]:
        """Where they stand in an image of these sizes that is read row by row."""
        found = np.zeros((), np.int64)
        for run, size in zip(self.runs, whole, strict=True):
            found = found[..., None] * size + run.positions()
        return found.reshape(-1)

    def positions(self, numbers: Sequence[Term]) -> list[Term]:
        """The position along each axis, by the numbers of rows and columns in the box."""
        return [run.position(at) for run, at in zip(self.runs, numbers, strict=True)]

    def numbers(self, place: str) -> list[Term]:
        """The numbers of rows and columns, by the place in the box."""
        return unflattened(Name(place), self.sizes)

    def __str__(self) -> str:
        return " × ".join(map(str, self.runs))


@dataclass(frozen=True, eq=False)
class Scattered:
    """Positions in no order of runs, by where they stand in an image of sizes `whole`, read row by row."""

    places: NDArray[np.int64]
    whole: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.total,)

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.places)

    @property
    def hull(self) -> Pieces:
        """The ends along each axis."""
        return tuple((int(at.min()), int(at.max()) + 1) for at in np.unravel_index(self.places, self.whole))

    def flat(self, whole: Sequence[int]) -> NDArray[np.int64]:
        """Where they stand in the whole."""
        assert tuple(whole) == self.whole
        return self.places

    def positions(self, numbers: Sequence[Term]) -> list[Term]:
        """The position along each axis, looked up."""
        (at,) = numbers
        return unflattened(Lookup(PLACES, (at,)), self.whole)

    def numbers(self, place: str) -> list[Term]:
        """The place itself."""
        return [Name(place)]

    def __str__(self) -> str:
        return f"{self.total:,} of {self.places.min():,} … {self.places.max():,}"


Keys = Box | Scattered


def boxes_of(attended: NDArray[np.bool_], firsts: Sequence[int]) -> Iterator[Box]:
    """Boxes of the positions that are True, no position in two; along each axis they begin at `firsts`.

    >>> [str(box) for box in boxes_of(np.array([[0, 1, 1], [0, 1, 1], [0, 0, 0], [1, 1, 1]]) > 0, (10, 0))]
    ['10 … 11 × 1 … 2', '13 × 0 … 2']
    """
    if attended.ndim == 1:
        yield from (Box((run,)) for run in runs_of(attended, firsts[0]))
        return
    rows = np.flatnonzero(attended.any(tuple(range(1, attended.ndim))))
    if not len(rows):
        return
    packed = np.packbits(attended[rows].reshape(len(rows), -1), axis=1)
    _, like, kind = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    for pattern, row in enumerate(like.tolist()):
        alike = np.zeros(len(attended), bool)
        alike[rows[kind.reshape(-1) == pattern]] = True
        across = [*boxes_of(attended[rows[row]], firsts[1:])]
        for down in runs_of(alike, firsts[0]):
            yield from (Box((down, *box.runs)) for box in across)
