"""What a kernel starts from: pixels in its order, [D, pixels, ..], their sums W_in x + b, and framed states.

The order is image by image for the GPU, and packed by diagonal for the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lattend.nn.grid.packed import packing, selected

if TYPE_CHECKING:
    from lattend.nn.grid.cells import Edges, Flips

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


SMALL = 1 << 20  # numbers that are cleared faster than a second operation starts


def flipped(flips: Flips, x: Tensor) -> Tensor:
    """The image as each direction meets it, [D, batch, rows, cols, ..]."""
    return x[None] if flips == ((),) else torch.stack([x.flip(axes) if axes else x for axes in flips])


def unflipped_sum(flips: Flips, x: Tensor) -> Tensor:
    """The sum over directions, each turned back into the order of the image."""
    if flips == ((),):
        return x[0]
    return torch.stack([e.flip(axes) if axes else e for e, axes in zip(x, flips, strict=True)]).sum(0)


def pixels(flips: Flips, layout: RowMajorLayout, x: Tensor) -> Tensor:
    """The pixels of an image as each direction meets them, in the kernel's order, [D, pixels, ..]."""
    return layout.take(flipped(flips, x))


def input_sums(flips: Flips, layout: RowMajorLayout, x: Tensor, into: Tensor, bias: Tensor | None) -> Tensor:
    """W_in x + b of all pixels, in the kernel's order."""
    seen, into = pixels(flips, layout, x), by_direction(flips, into).mT
    return torch.bmm(seen, into) if bias is None else torch.baddbmm(bias.view(len(flips), 1, -1), seen, into)


def by_direction(flips: Flips, weights: Tensor) -> Tensor:
    """Weights [D*gates*h, ..], with an axis for the directions: [D, gates*h, ..]."""
    return weights.view(len(flips), -1, weights.shape[-1])


def framed(
    layout: RowMajorLayout, size: int, like: Tensor, left: Tensor | None, top: Tensor | None
) -> Tensor:
    """Room for states [D, batch, rows + 1, cols + 1, h], with the edges in row 0 and column 0."""
    directions, batch, rows, cols = layout.shape
    shape = (directions, batch, rows + 1, cols + 1, size)
    if directions * batch * (rows + 1) * (cols + 1) * size <= SMALL:
        found = like.new_zeros(shape)  # one call rather than two
    else:
        found = like.new_empty(shape)
        found[:, :, 0], found[:, :, :, 0] = 0, 0
    if left is not None:
        found[:, :, 1:, 0] = left
    if top is not None:
        found[:, :, 0, 1:] = top
    return found


def framed_states(
    cell: str, layout: RowMajorLayout, size: int, like: Tensor, edges: Edges
) -> tuple[Tensor, Tensor | None]:
    """Room for h and, of an lstm, for c, with their edges."""
    c = framed(layout, size, like, edges.left_c, edges.top_c) if cell == "lstm" else None
    return framed(layout, size, like, edges.left, edges.top), c


def side_by_side(flips: Flips, maps: Sequence[Tensor]) -> Tensor:
    """The maps [batch, rows, cols, h] of all directions in the order of the image, [.., D*h]."""
    turned = [m.flip(axes) if axes else m for m, axes in zip(maps, flips, strict=True)]
    return torch.cat(turned, -1) if len(turned) > 1 else turned[0]


def joined(flips: Flips, h: Tensor) -> Tensor:
    """The states of the pixels side by side, [batch, rows, cols, D*h], out of those with their edges."""
    if flips != ((),):
        return side_by_side(flips, inner(h, None)[0].unbind())
    _, batch, rows, cols, size = h.shape
    offset = h.storage_offset() + (cols + 1) * size
    return h.as_strided((batch, rows - 1, cols - 1, size), h.stride()[1:], offset)


def parted(flips: Flips, grad: Tensor) -> Tensor:
    """The gradient at `joined` as each direction meets it, [D, batch, rows, cols, h]."""
    if flips == ((),):
        return grad[None]
    parts = zip(grad.chunk(len(flips), -1), flips, strict=True)
    return torch.stack([part.flip(axes) if axes else part for part, axes in parts])


def inner(h: Tensor, c: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The states of the pixels alone, [D, batch, rows, cols, h]."""
    offset = (h.shape[3] + 1) * h.shape[4]
    return framed_part(h, offset), None if c is None else framed_part(c, offset)
