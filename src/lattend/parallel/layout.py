"""Layout: which positions each rank has: a cut of a line, of an image's rows, or of rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError
from lattend.parallel.boxes import Keys
from lattend.parallel.cut import Cut, Piece, contiguous, of_lengths

Ints = NDArray[np.int64]
Ends = tuple[Ints, Ints]  # the first position of each rank, and one beyond its last


@dataclass(frozen=True)
class Layout:
    """A cut along each axis that is cut; ranks count through the last of them first.

    >>> Layout((contiguous(6, 2), contiguous(4, 2)), (6, 4)).boxes(3)
    [((3, 6), (2, 4))]
    """

    cuts: tuple[Cut, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of_mesh(sizes: tuple[int, ...], mesh: tuple[int, ...]) -> Layout:
        """Equal shards, so many along each of the first axes."""
        return Layout(tuple(map(contiguous, sizes, mesh)), sizes)

    @property
    def name(self) -> str:
        """What the cut is called: `contiguous`, or `4 × 2 blocks`."""
        if len(self.cuts) == 1:
            return self.cuts[0].name
        return f"{' × '.join(str(cut.ranks) for cut in self.cuts)} blocks"

    @property
    def ranks(self) -> int:
        return prod(cut.ranks for cut in self.cuts)

    @staticmethod
    def on_line(cut: Cut) -> Layout:
        """A cut of positions on a line."""
        return Layout((cut,), (cut.n,))

    def place(self, rank: int) -> tuple[int, ...]:
        """Which shard of each cut a rank has."""
        found = np.unravel_index(rank, [cut.ranks for cut in self.cuts])
        return tuple(int(i) for i in found)

    def boxes(self, rank: int) -> list[tuple[Piece, ...]]:
        """The boxes of positions of one rank, a piece an axis."""
        rest = tuple((0, size) for size in self.sizes[len(self.cuts) :])
        found: list[tuple[Piece, ...]] = [()]
        for cut, i in zip(self.cuts, self.place(rank), strict=True):
            found = [(*box, piece) for box in found for piece in cut.pieces[i]]
        return [(*box, *rest) for box in found]

    def places(self, rank: int, keys: Keys) -> Ints:
        """Where a rank's tensors hold positions of its own."""
        at = np.unravel_index(keys.flat(self.sizes), self.sizes)
        found, start = np.full(keys.total, -1), 0
        for pieces in self.boxes(rank):
            shape = [b - a for a, b in pieces]
            here = np.logical_and.reduce([(a <= x) & (x < b) for x, (a, b) in zip(at, pieces, strict=True)])
            inside = tuple(x[here] - a for x, (a, _) in zip(at, pieces, strict=True))
            found[here] = start + np.ravel_multi_index(inside, shape)
            start += prod(shape)
        if (found < 0).any():
            raise DomainError(f"positions {keys} are not on rank {rank}")
        return found

    @cached_property
    def ends(self) -> list[list[Ends]]:
        """Boxes of all ranks, each as the ends along every axis; a rank that has fewer has empty ones."""
        rest = [
            (np.zeros(self.ranks, np.int64), np.full(self.ranks, n)) for n in self.sizes[len(self.cuts) :]
        ]
        places = np.indices([cut.ranks for cut in self.cuts]).reshape(len(self.cuts), -1)
        found: list[list[Ends]] = [[]]
        for cut, place in zip(self.cuts, places, strict=True):
            pieces = [(first[place], end[place]) for first, end in cut.ends]
            found = [[*box, piece] for box in found for piece in pieces]
        return [[*box, *rest] for box in found]

    @cached_property
    def lengths(self) -> Ints:
        """How many positions each rank has."""
        volumes = (prod(end - first for first, end in box) for box in self.ends)
        return np.zeros(self.ranks, np.int64) + sum(volumes)

    @property
    def flat(self) -> Cut:
        """The cut of a line; of an image as many positions for each rank, one after another."""
        return self.cuts[0] if len(self.sizes) == 1 else of_lengths(self.lengths.tolist())

    def spans_of(self, group: int) -> list[Ends]:
        """Along the first axis, the positions of each rank's group of so many ranks; pieces one by one.

        Of blocks, those of the ranks beside each other along the first axis only.
        """
        cut, across = self.cuts[0], prod(other.ranks for other in self.cuts[1:])
        each = max(1, group // across)
        place = np.arange(self.ranks) // across
        first, last = place // each * each, np.minimum(place // each * each + each, cut.ranks) - 1
        if len(cut.ends) == 2:  # zigzag: the second pieces go backwards
            (a, b), (c, d) = cut.ends
            return [(a[first], b[last]), (c[last], d[first])]
        ends = np.concatenate([[0], *(np.maximum.accumulate(b) for _, b in cut.ends)])  # some may be empty
        return [(ends[:-1][first], ends[1:][last])] if cut.ends else []
