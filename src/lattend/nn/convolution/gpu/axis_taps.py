"""Taps along one axis, and tiles of programs: the tap u of position j sees by·j + begin + step·u.

The gradient of an image looks back. Of a convolution with a stride, pixels stride apart have the same taps:
each such class is a convolution without a stride, which fills its own pixels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from lattend.nn.convolution.geometry import Along


class AxisTaps(NamedTuple):
    """`outputs` positions, written at first, first + every, …; taps are numbered tap, tap + next, …."""

    outputs: int
    first: int
    every: int
    by: int
    begin: int
    step: int
    taps: int
    tap: int
    next: int

    @property
    def last(self) -> int:
        """How far the last tap's key is from the first's."""
        return self.step * max(0, self.taps - 1)

    def edges(self, size: int) -> tuple[int, int]:
        """How many pixels before the first of `size` and after the last are looked at.

        >>> forward(Along(3, before=1, after=1), 8).edges(8)
        (1, 1)
        """
        if not self.taps:
            return 0, 0
        least, most = self.begin + min(0, self.last), self.by * (self.outputs - 1) + self.begin
        return max(0, -least), max(0, most + max(0, self.last) - (size - 1))


def forward(along: Along, size: int) -> AxisTaps:
    """Every output sees its keys."""
    begin = -along.before
    return AxisTaps(along.outputs(size), 0, 1, along.stride, begin, along.dilation, along.taps, 0, 1)


def backward(along: Along, size: int) -> list[AxisTaps]:
    """Every pixel sees the queries whose key it is, a class of pixels at a time.

    >>> [look.taps for look in backward(Along(3, stride=2, before=1, after=1), 8)]  # the middle, both sides
    [1, 2]
    """
    return [_class(along, size, rest) for rest in range(min(along.stride, size))]


def _class(along: Along, size: int, rest: int) -> AxisTaps:
    """Pixels rest, rest + stride, …; of tap t the query is (pixel + before − dilation·t) / stride."""
    far = [rest + along.before - along.dilation * tap for tap in range(along.taps)]
    taps = [tap for tap in range(along.taps) if far[tap] % along.stride == 0]
    tap, apart = taps[0] if taps else 0, taps[1] - taps[0] if len(taps) > 1 else 1
    return AxisTaps(
        outputs=-(-(size - rest) // along.stride),
        first=rest,
        every=along.stride,
        by=1,
        begin=far[tap] // along.stride,
        step=-(along.dilation * apart // along.stride),
        taps=len(taps),
        tap=tap,
        next=apart,
    )


PROGRAMS = 264  # of the sums over all queries: two for each multiprocessor of a large GPU


class ProgramTile(NamedTuple):
    """Rows and columns of a program, length of a product at a time, warps, loads ahead."""

    rows: int
    columns: int
    length: int
    warps: int
    stages: int


def padded(channels: int) -> int:
    """Channels as they are laid out: whole 16, past 32 whole 32.

    >>> [padded(channels) for channels in (3, 32, 80)]
    [16, 32, 96]
    """
    whole = 16 if channels <= 32 else 32
    return -(-channels // whole) * whole


def heads_tile(dtype: torch.dtype, queries: int, columns: int, depth: int) -> ProgramTile:
    """The tile of outputs and of gradients of images: `depth` channels of a key, `columns` of an output."""
    longest = 32 if dtype == torch.float32 else 64
    length = next(k for k in (64, 32, 16) if k <= longest and depth % k == 0)
    wide = min(128, power_of_two(columns))
    rows = 128 if queries * columns >= 128 * 128 * 100 or wide < 128 else 64
    return ProgramTile(rows, wide, length, 8 if wide == rows == 128 else 4, 3)


def gradient_tile(dtype: torch.dtype, rows: int, columns: int, out_cols: int) -> ProgramTile:
    """The tile of the gradient of the weights, over lines of `out_cols` queries."""
    longest = 32 if dtype == torch.float32 else 64
    length = min(longest, power_of_two(out_cols))
    wide, high = min(128, power_of_two(columns)), min(128, power_of_two(rows))
    return ProgramTile(high, wide, length, 8 if wide == high == 128 else 4, 3)


def power_of_two(size: int) -> int:
    """The next power of two; a matrix product takes at least 16."""
    return max(16, 1 << (size - 1).bit_length())
