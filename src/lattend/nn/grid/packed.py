"""Packed images: pixels in the order they run, so that a diagonal and its neighbours are contiguous slabs.

A packed tensor has a row for every (place, image): places as in wavefront_order, and the images of a batch
next to each other. Framed ones hold the left and top edges as well: 2 images of 1 x 1 have 2 rows, framed 8.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lattend.nn.grid.schedule import diagonals, wavefront_order


class Slabs(NamedTuple):
    """One slab of rows for every step."""

    ranges: list[slice]
    sizes: list[int]  # of the slabs, and of what lies between them

    @classmethod
    def at(cls, starts: list[int], counts: list[int], total: int) -> Slabs:
        ranges = [slice(start, start + count) for start, count in zip(starts, counts, strict=True)]
        marks = [0, *(mark for r in ranges for mark in (r.start, r.stop)), total]
        return cls(ranges, [b - a for a, b in pairwise(marks)])

    def of(self, packed: Tensor) -> tuple[Tensor, ...]:
        """The slabs as views; all in one call, since torch takes its time over each slice."""
        if not any(self.sizes[::2]):
            return packed.split_with_sizes(self.sizes[1::2])
        return packed.split_with_sizes(self.sizes)[1::2]


class Packing(NamedTuple):
    """How images of one size are packed. Tensors hold numbers of rows, for index_select, in 32 bits."""

    pixels: Tensor  # the pixel of each packed row, pixels counted image by image
    rows: Tensor  # the packed row of each pixel
    framed_rows: Tensor  # the packed row of each pixel of framed images
    framing: Tensor  # the pixel without a frame of each framed row; any for those on an edge
    inner_pixels: Tensor  # the framed pixel of each packed row
    left_edge: Tensor  # the framed rows of the left edge, image by image, and of the top edge
    top_edge: Tensor
    near_pixels: Tensor  # the framed pixels left of each packed row and above it, [rows, 2]
    first_col: Tensor  # the packed rows of column 0, image by image
    first_row: Tensor
    inner: Slabs  # the cells of each step in tensors without a frame
    here: Slabs  # the same in framed ones
    left: Slabs  # their left neighbours
    top: Slabs


@lru_cache(maxsize=4)  # some 9 numbers a pixel
def packing(rows: int, cols: int, batch: int) -> Packing:
    """How to pack that many images of rows x cols pixels."""
    inner, framed = wavefront_order(rows, cols), wavefront_order(rows + 1, cols + 1)
    images = np.arange(batch)
    pixels, framed_pixels = rows * cols, (rows + 1) * (cols + 1)

    def by_place(cells: NDArray[Any], size: int) -> Tensor:
        return torch.from_numpy((cells[:, None] + images * size).ravel()).int()

    def by_image(places: NDArray[Any]) -> Tensor:
        return torch.from_numpy((places.ravel() * batch + images[:, None]).ravel()).int()

    row, col = np.divmod(framed.cells, cols + 1)
    edge = (row == 0) | (col == 0)
    row_in, col_in = np.divmod(inner.cells, cols)
    on_left = by_place((row_in + 1) * (cols + 1) + col_in, framed_pixels)
    on_top = by_place(row_in * (cols + 1) + col_in + 1, framed_pixels)
    steps = diagonals(rows, cols)
    counts = [step.cells * batch for step in steps]
    firsts = [0, *np.cumsum(counts)[:-1].tolist()]
    many = framed_pixels * batch
    return Packing(
        pixels=by_place(inner.cells, pixels),
        rows=by_image(inner.places),
        framed_rows=by_image(framed.places),
        framing=by_place(np.where(edge, 0, (row - 1) * cols + col - 1), pixels),
        inner_pixels=by_place((row_in + 1) * (cols + 1) + col_in + 1, framed_pixels),
        left_edge=by_image(framed.places[1:, 0]).long(),  # index_copy_ takes no other
        top_edge=by_image(framed.places[0, 1:]).long(),
        near_pixels=torch.stack((on_left, on_top), 1),
        first_col=by_image(inner.places[:, 0]),
        first_row=by_image(inner.places[0]),
        inner=Slabs.at(firsts, counts, pixels * batch),
        here=Slabs.at([step.here * batch for step in steps], counts, many),
        left=Slabs.at([step.left * batch for step in steps], counts, many),
        top=Slabs.at([step.top * batch for step in steps], counts, many),
    )


def selected(x: Tensor, rows: Tensor, out: Tensor | None = None) -> Tensor:
    """Rows of [D, rows, ..], the same for every direction; copied one after the other, which is fastest."""
    if x.shape[0] == 1 and out is None:
        return x[0].index_select(0, rows)[None]
    if out is None:
        out = x.new_empty(x.shape[0], len(rows), *x.shape[2:])
    for each, to in zip(x, out, strict=True):
        torch.index_select(each, 0, rows, out=to)
    return out
