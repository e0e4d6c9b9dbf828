"""Which tiles the kernels of hard heads take, by the sizes of a call."""

from __future__ import annotations

from typing import NamedTuple

import torch

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
