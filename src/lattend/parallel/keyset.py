"""KeySet: the keys that ranks need, as unions of products of strided intervals, one an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import TooLarge
from lattend.parallel.intervals import (
    IntervalTable,
    Ints,
    StridedInterval,
    intervals_of_mask,
    intervals_of_spans,
)
from lattend.rules.flat import unflattened
from lattend.rules.language.expr import Lookup, Name, Term

if TYPE_CHECKING:
    from lattend.parallel.layout import Layout

Piece = tuple[int, int]  # positions from the first up to, but not with, the second
Pieces = tuple[Piece, ...]  # one an axis
Mask = NDArray[np.bool_]
Along = Sequence[IntervalTable]  # along one axis: no key lies in two of them
Product = Sequence[Along]  # one for each axis
POSITIONS = "positions of keys"  # the array in which listed keys are looked up; no rule can call one so
MOST_PIXELS = 1 << 26  # of an image whose boxes of keys are listed


@dataclass(frozen=True)
class Box:
    """The product of a strided interval along each axis, in the order of its rows.

    >>> Box((StridedInterval(4, 2), StridedInterval(0, 1, 3, 2))).flat((9, 5)).tolist()  # columns 0 and 3
    [20, 23, 25, 28]
    """

    along: tuple[StridedInterval, ...]

    @staticmethod
    def of(pieces: Sequence[Piece]) -> Box:
        """All positions between these ends."""
        return Box(tuple(StridedInterval(a, b - a) for a, b in pieces))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(one.total for one in self.along)

    @property
    def total(self) -> int:
        return prod(self.sizes)

    @property
    def hull(self) -> Pieces:
        """The ends along each axis."""
        return tuple((one.start, one.end) for one in self.along)

    def flat(self, sizes: Sequence[int]) -> Ints:
        """The positions in an image of these sizes that is read row by row."""
        flat = np.zeros((), np.int64)
        for one, size in zip(self.along, sizes, strict=True):
            flat = flat[..., None] * size + one.positions()
        return flat.reshape(-1)

    def positions(self, numbers: Sequence[Term]) -> list[Term]:
        """The position along each axis, by the numbers of rows and columns in the box."""
        return [one.position(number) for one, number in zip(self.along, numbers, strict=True)]

    def numbers(self, name: str) -> list[Term]:
        """The numbers of rows and columns, by the number in the box that has this name."""
        return unflattened(Name(name), self.sizes)

    def __str__(self) -> str:
        return " × ".join(map(str, self.along))


@dataclass(frozen=True, eq=False)
class ListedKeys:
    """Keys that would be too many boxes: a list of positions in an image of these sizes, read row by row."""

    listed: Ints
    image: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.total,)

    @property
    def total(self) -> int:
        return len(self.listed)

    @property
    def hull(self) -> Pieces:
        """The ends along each axis."""
        return tuple((int(at.min()), int(at.max()) + 1) for at in np.unravel_index(self.listed, self.image))

    def flat(self, sizes: Sequence[int]) -> Ints:
        """The positions in the image."""
        assert tuple(sizes) == self.image
        return self.listed

    def positions(self, numbers: Sequence[Term]) -> list[Term]:
        """The position along each axis, looked up."""
        (number,) = numbers
        return unflattened(Lookup(POSITIONS, (number,)), self.image)

    def numbers(self, name: str) -> list[Term]:
        """The number in the list."""
        return [Name(name)]

    def __str__(self) -> str:
        return f"{self.total:,} of {self.listed.min():,} … {self.listed.max():,}"


Keys = Box | ListedKeys


def boxes_of(mask: Mask, firsts: Sequence[int]) -> Iterator[Box]:
    """Boxes of the positions that are True, no position in two; along each axis they begin at `firsts`.

    >>> [str(box) for box in boxes_of(np.array([[0, 1, 1], [0, 1, 1], [0, 0, 0], [1, 1, 1]]) > 0, (10, 0))]
    ['10 … 11 × 1 … 2', '13 × 0 … 2']
    """
    if mask.ndim == 1:
        yield from (Box((one,)) for one in intervals_of_mask(mask, firsts[0]))
        return
    rows = np.flatnonzero(mask.any(tuple(range(1, mask.ndim))))
    if not len(rows):
        return
    packed = np.packbits(mask[rows].reshape(len(rows), -1), axis=1)
    _, like, kind = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    for pattern, row in enumerate(like.tolist()):
        alike = np.zeros(len(mask), bool)
        alike[rows[kind.reshape(-1) == pattern]] = True
        across = [*boxes_of(mask[rows[row]], firsts[1:])]
        for down in intervals_of_mask(alike, firsts[0]):
            yield from (Box((down, *box.along)) for box in across)


class KeySet:
    """The keys that each rank of a layout reaches, its own among them: a union of products."""

    def __init__(self, layout: Layout, products: Sequence[Product]) -> None:
        self.layout, self.products = layout, products

    @cached_property
    def _terms(self) -> list[tuple[int, Product]]:
        """The terms of inclusion and exclusion: a sign, and the keys that some of the products share."""
        terms: list[tuple[int, Product]] = []
        for size in range(1, len(self.products) + 1):
            for some in combinations(self.products, size):
                shared = [[*reduce(_common, axis)] for axis in zip(*some, strict=True)]
                if all(shared):  # otherwise no rank has a key in all of them
                    terms.append((-((-1) ** size), shared))
        return terms

    def count(self, boxes: Sequence[Sequence[tuple[Any, Any]]], ranks: Sequence[int] | None = None) -> Ints:
        """How many keys of boxes, no key in two, each rank has.

        The ends of a box along each axis are numbers, or arrays with one a rank. With `ranks`, the keys of
        each of these are counted in every box: a row for each of them.
        """
        terms = self._terms
        if ranks is not None:
            terms = [(sign, [[one.rows(ranks) for one in axis] for axis in term]) for sign, term in terms]
        columns = np.size(boxes[0][0][0]) if boxes else self.layout.ranks
        total: Any = np.zeros(self.layout.ranks if ranks is None else (len(ranks), columns), np.int64)
        for box, (sign, term) in product(boxes, terms):
            keys: Any = sign
            for tables, (first, end) in zip(term, box, strict=True):
                keys = keys * sum(one.between(first, end) for one in tables)
            total = total + keys
        return total

    @cached_property
    def halo(self) -> Ints:
        """How many keys of other ranks each rank reaches."""
        return self.count([[(0, size) for size in self.layout.sizes]]) - self.own

    @cached_property
    def own(self) -> Ints:
        """How many of its own keys each rank reaches."""
        return self.count(self.layout.ends)

    def table(self, ranks: Sequence[int]) -> Ints:
        """How many keys each of these ranks reaches on every rank, itself included: one row per rank."""
        return self.count(self.layout.ends, ranks)

    def to_each(self, rank: int) -> Ints:
        """How many of a rank's keys each rank reaches."""
        return self.count([[(first[rank], end[rank]) for first, end in box] for box in self.layout.ends])

    def inside(self, group: int) -> Ints:
        """How many keys each rank reaches on the ranks of its group of consecutive ranks."""
        rest = [(0, size) for size in self.layout.sizes[1:]]
        return self.count([[ends, *rest] for ends in self.layout.spans_of(group)])

    def boxes(self, rank: int, source: int) -> tuple[Box, ...]:
        """The keys of `source` that a rank reaches."""
        pieces = self.layout.boxes(source)
        if len(self.layout.sizes) > 1:
            return tuple(box for some in pieces for box in self._boxes_in(rank, some))
        tables = (one for part in self.products for one in part[0])
        spans = [one.spans_in(rank, *box[0]) for one, box in product(tables, pieces)]
        return tuple(Box((one,)) for one in intervals_of_spans(*_joined(spans)))

    def _boxes_in(self, rank: int, pieces: Pieces) -> Iterator[Box]:
        """The keys of an image between these ends that a rank reaches."""
        shape = [b - a for a, b in pieces]
        if prod(shape) > MOST_PIXELS:
            raise TooLarge(
                f"boxes of keys are listed in parts of images of at most {MOST_PIXELS:,} pixels, and one has "
                f"{prod(shape):,}; keys_from(rank) has their number"
            )
        mask = np.zeros(shape, bool)
        for part in self.products:
            along = [np.zeros(size, bool) for size in shape]
            for keys, tables, (a, b) in zip(along, part, pieces, strict=True):
                for first, end in zip(*_joined([one.spans_in(rank, a, b) for one in tables]), strict=True):
                    keys[first - a : end - a] = True
            mask |= reduce(np.logical_and.outer, along)
        yield from boxes_of(mask, [a for a, _ in pieces])


def _joined(spans: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    none = np.zeros(0, np.int64)
    first, end = (np.concatenate([none, *(pair[side] for pair in spans)]) for side in (0, 1))
    return first, end


def _common(left: Along, right: Along) -> Along:
    shared = (a & b for a, b in product(left, right))
    return [one for one in shared if one.windows]
