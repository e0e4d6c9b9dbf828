"""In which order a kernel holds pixels, [D, pixels, ..]: image by image for the GPU, packed for the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lattend.nn.grid.packed import packing, selected

MANY = 4096  # packed rows whose neighbours are laid out at a time, so that they stay in the cache


class RowMajorLayout:
    """Pixels image by image, row by row."""

    def __init__(self, directions: int, batch: int, rows: int, cols: int) -> None:
        self.shape = (directions, batch, rows, cols)

    def take(self, x: Tensor) -> Tensor:
        """A tensor [D, batch, rows, cols, ..] in the kernel's order."""
        return x.reshape(x.shape[0], -1, *x.shape[4:]).contiguous()

    def give(self, x: Tensor) -> Tensor:
        """A tensor in the kernel's order as [D, batch, rows, cols, ..]."""
        return x.view(*self.shape, *x.shape[2:])

    def first_col(self, x: Tensor) -> Tensor:
        """What a tensor in the kernel's order has in column 0, [D, batch, rows, ..]."""
        return self.give(x)[:, :, :, 0]

    def first_row(self, x: Tensor) -> Tensor:
        """What a tensor in the kernel's order has in row 0, [D, batch, cols, ..]."""
        return self.give(x)[:, :, 0]

    def near(self, h: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """States left and above side by side, [D, pixels, 2h], some of the pixels at a time.

        h is [D, batch, rows + 1, cols + 1, h].
        """
        size, along = h.shape[-1], h.shape[3]
        at_left, at_top = (framed_part(h, offset * size) for offset in (along, 1))
        yield slice(None), torch.cat((at_left, at_top), -1).view(len(h), -1, 2 * size)


class PackedLayout(RowMajorLayout):
    """Pixels in the order they run."""

    def __init__(self, directions: int, batch: int, rows: int, cols: int) -> None:
        super().__init__(directions, batch, rows, cols)
        self.packing = packing(rows, cols, batch)

    def take(self, x: Tensor) -> Tensor:
        return selected(x.flatten(1, 3), self.packing.pixels)

    def give(self, x: Tensor) -> Tensor:
        return selected(x, self.packing.rows).view(*self.shape, *x.shape[2:])

    def first_col(self, x: Tensor) -> Tensor:
        directions, batch, rows, _ = self.shape
        return selected(x, self.packing.first_col).view(directions, batch, rows, *x.shape[2:])

    def first_row(self, x: Tensor) -> Tensor:
        directions, batch, _, cols = self.shape
        return selected(x, self.packing.first_row).view(directions, batch, cols, *x.shape[2:])

    def near(self, h: Tensor) -> Iterator[tuple[slice, Tensor]]:
        directions, many, pixels = len(h), len(self.packing.pixels), self.packing.near_pixels
        states = h.flatten(1, 3)
        room = h.new_empty(directions, min(MANY, many) * 2, h.shape[-1])
        for start in range(0, many, MANY):
            index = pixels[start : start + MANY].flatten()
            found = selected(states, index, room[:, : len(index)])
            yield slice(start, start + len(index) // 2), found.view(directions, -1, 2 * h.shape[-1])


def framed_part(framed: Tensor, offset: int) -> Tensor:
    """[D, batch, rows, cols, h] of contiguous states [D, batch, rows + 1, cols + 1, h], so many numbers on.

    One operation, where two slices are four.
    """
    directions, batch, rows, cols, size = framed.shape
    shape = (directions, batch, rows - 1, cols - 1, size)
    return framed.as_strided(shape, framed.stride(), framed.storage_offset() + offset)
