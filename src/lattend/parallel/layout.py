"""Cut and Layout: which positions each rank has, on a line, or along the axes of an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError
from lattend.parallel.intervals import Ints
from lattend.parallel.keyset import Keys, Piece, Pieces

Ends = tuple[Ints, Ints]  # the first position of each rank, and one beyond its last


@dataclass(frozen=True)
class Cut:
    """For each rank the pieces of positions that it has, in the order in which its tensors hold them.

    >>> contiguous(10, 4)
    <Cut contiguous: 0 … 2, 3 … 5, 6 … 7, 8 … 9>
    """

    name: str
    pieces: tuple[tuple[Piece, ...], ...]

    @property
    def ranks(self) -> int:
        return len(self.pieces)

    @property
    def n(self) -> int:
        """How many positions there are."""
        return sum(map(self.length, range(self.ranks)))

    @cached_property
    def ends(self) -> list[Ends]:
        """Where the first, second … pieces of all ranks begin and end; a rank with fewer has empty ones."""
        most = max(map(len, self.pieces), default=0)
        table = np.zeros((most, 2, self.ranks), np.int64)
        for i in range(most):
            some = [rank for rank, pieces in enumerate(self.pieces) if len(pieces) > i]
            table[i][:, some] = np.array([self.pieces[rank][i] for rank in some]).T
        return [(first, end) for first, end in table]

    def length(self, rank: int) -> int:
        """How many positions a rank has."""
        return sum(b - a for a, b in self.pieces[rank])

    def checked(self) -> Cut:
        """The cut; raises where it does not have every position once."""
        at = 0
        for a, b in sorted(piece for some in self.pieces for piece in some if piece[1] > piece[0]):
            if a != at:
                raise DomainError(f"{self!r} does not give each of {self.n} positions to one rank")
            at = b
        return self

    def times(self, unit: int) -> Cut:
        """The same cut for rows of `unit` positions.

        >>> contiguous(3, 2).times(10)
        <Cut contiguous: 0 … 19, 20 … 29>
        """
        if unit == 1:
            return self
        return Cut(self.name, tuple(tuple((a * unit, b * unit) for a, b in some) for some in self.pieces))

    def __repr__(self) -> str:
        shown = [" and ".join(f"{a} … {b - 1}" for a, b in some) or "none" for some in self.pieces]
        return f"<Cut {self.name}: {', '.join(shown)}>"


def contiguous(n: int, ranks: int) -> Cut:
    """Equal shards, one after another; where n is no multiple the first ones have one position more."""
    small, more = divmod(n, ranks)
    return of_lengths([small + (rank < more) for rank in range(ranks)])


def of_lengths(lengths: Sequence[int], name: str = "contiguous") -> Cut:
    """Shards of these lengths, one after another.

    >>> of_lengths([3, 0, 2])
    <Cut contiguous: 0 … 2, none, 3 … 4>
    """
    ends = [0, *accumulate(lengths)]
    return Cut(name, tuple(((a, b),) if b > a else () for a, b in pairwise(ends)))


def zigzag(n: int, ranks: int) -> Cut:
    """Twice as many pieces, the first and the last to one rank, the second and the last but one to the next.

    >>> zigzag(8, 2)
    <Cut zigzag: 0 … 1 and 6 … 7, 2 … 3 and 4 … 5>
    """
    halves = [piece for (piece,) in contiguous(n, 2 * ranks).pieces if piece] if n >= 2 * ranks else []
    if not halves:
        return Cut("zigzag", contiguous(n, ranks).pieces)
    return Cut("zigzag", tuple((halves[rank], halves[-1 - rank]) for rank in range(ranks)))


def balanced(upto: Callable[[NDArray[np.int64]], NDArray[Any]], n: int, ranks: int) -> Cut:
    """Shards one after another with as many pairs each as can be; `upto(a)` counts those of queries below a.

    >>> balanced(lambda a: a * (a + 1) // 2, 100, 4)  # causal: 5,050 pairs, 1,262 or so each
    <Cut balanced: 0 … 49, 50 … 70, 71 … 86, 87 … 99>
    """
    edges = np.unique(np.linspace(0, n, min(n, ranks) + 1).astype(np.int64))
    before = upto(edges)
    shares = np.array([-(-int(before[-1]) * rank // ranks) for rank in range(1, ranks)], object)
    place = np.searchsorted(before, shares, "right")
    low, high = edges[place - 1], np.append(edges, n + 1)[place]  # upto(low) <= share, and > share at high
    at_low, at_high = before[place - 1], np.append(before, before[-1] + 1)[place]
    while len(wide := np.flatnonzero(high - low > 1)):
        # Three guesses: to both sides of where a straight line would have the share, and the middle
        rest = ((shares[wide] - at_low[wide]) / np.maximum(at_high[wide] - at_low[wide], 1)).astype(float)
        near = (high[wide] - low[wide]) >> 9
        line = low[wide] + (rest * (high[wide] - low[wide])).astype(np.int64)
        for wanted in (line - near, line + near + 1, (low[wide] + high[wide]) // 2):
            guess = np.clip(wanted, low[wide], np.minimum(high[wide], n))  # at an end it finds what is known
            counts = upto(guess)
            below = (counts <= shares[wide]).astype(bool)
            low[wide[below]], at_low[wide[below]] = guess[below], counts[below]
            high[wide[~below]], at_high[wide[~below]] = guess[~below], counts[~below]
    after = np.minimum(high, n)
    nearer = (np.where(high > n, at_low, at_high) - shares < shares - at_low).astype(bool)
    ends = np.maximum.accumulate(np.where(nearer, after, low)).tolist()
    return of_lengths([b - a for a, b in pairwise([0, *ends, n])], "balanced")


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
        """Equal shards: mesh[i] along axis i."""
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
        indices = np.unravel_index(rank, [cut.ranks for cut in self.cuts])
        return tuple(int(i) for i in indices)

    def boxes(self, rank: int) -> list[Pieces]:
        """The boxes of positions of one rank, a piece an axis."""
        rest = tuple((0, size) for size in self.sizes[len(self.cuts) :])
        boxes: list[Pieces] = [()]
        for cut, i in zip(self.cuts, self.place(rank), strict=True):
            boxes = [(*box, piece) for box in boxes for piece in cut.pieces[i]]
        return [(*box, *rest) for box in boxes]

    def places(self, rank: int, keys: Keys) -> Ints:
        """Where a rank's tensors hold positions of its own."""
        at = np.unravel_index(keys.flat(self.sizes), self.sizes)
        indices, start = np.full(keys.total, -1), 0
        for pieces in self.boxes(rank):
            shape = [b - a for a, b in pieces]
            held = np.logical_and.reduce([(a <= x) & (x < b) for x, (a, b) in zip(at, pieces, strict=True)])
            inside = tuple(x[held] - a for x, (a, _) in zip(at, pieces, strict=True))
            indices[held] = start + np.ravel_multi_index(inside, shape)
            start += prod(shape)
        if (indices < 0).any():
            raise DomainError(f"positions {keys} are not on rank {rank}")
        return indices

    @cached_property
    def ends(self) -> list[list[Ends]]:
        """Boxes of all ranks, each as the ends along every axis; a rank that has fewer has empty ones."""
        rest = [
            (np.zeros(self.ranks, np.int64), np.full(self.ranks, n)) for n in self.sizes[len(self.cuts) :]
        ]
        places = np.indices([cut.ranks for cut in self.cuts]).reshape(len(self.cuts), -1)
        boxes: list[list[Ends]] = [[]]
        for cut, place in zip(self.cuts, places, strict=True):
            pieces = [(first[place], end[place]) for first, end in cut.ends]
            boxes = [[*box, piece] for box in boxes for piece in pieces]
        return [[*box, *rest] for box in boxes]

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
        """The positions along the first axis of each rank's group of consecutive ranks.

        For blocks, a group holds the ranks beside each other along the first axis only.
        """
        cut, across = self.cuts[0], prod(other.ranks for other in self.cuts[1:])
        each = max(1, group // across)
        shard = np.arange(self.ranks) // across
        first, last = shard // each * each, np.minimum(shard // each * each + each, cut.ranks) - 1
        if len(cut.ends) == 1:  # some may be empty
            ((_, end),) = cut.ends
            ends = np.concatenate([[0], np.maximum.accumulate(end)])
            if (np.diff(ends) == cut.ends[0][1] - cut.ends[0][0]).all():  # a group is one piece
                return [(ends[:-1][first], ends[1:][last])]
        if len(cut.ends) == 2:
            (a, b), (c, d) = cut.ends
            if (b[:-1] == a[1:]).all() and (d[1:] == c[:-1]).all():  # zigzag: the second go backwards
                return [(a[first], b[last]), (c[last], d[first])]
        members = [np.where(first + step <= last, first + step, cut.ranks) for step in range(each)]
        none = np.zeros(1, np.int64)
        return [
            (np.concatenate([a, none])[member], np.concatenate([b, none])[member])
            for member in members
            for a, b in cut.ends
        ]
