"""Images of several sizes in one batch: a mask that says which pixels are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lattend.errors import DomainError


def ragged_mask(
    sizes: Sequence[tuple[int, int]], rows: int | None = None, cols: int | None = None, device: Any = None
) -> Tensor:
    """The mask [batch, rows, cols] of images of those (rows, cols), each in the top left corner.

    rows and cols are those of the largest unless given.

    >>> ragged_mask([(1, 2), (2, 1)]).int().tolist()
    [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]
    """
    if not isinstance(sizes, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(f"sizes are (rows, cols) of every image, in a list, not {sizes!r}")
    if not sizes:
        raise DomainError("sizes is empty; give (rows, cols) of every image")
    for size in sizes:
        if not _is_size(size):
            raise DomainError(f"sizes: (rows, cols) of an image are two numbers from 0 on, got {size!r}")
    most = [max(axis) for axis in zip(*sizes, strict=True)]
    wanted = [most[0] if rows is None else rows, most[1] if cols is None else cols]
    for name, length, need in zip(("rows", "cols"), wanted, most, strict=True):
        if length < need:
            raise DomainError(f"{name}={length}: an image of sizes has {need}")
    given = torch.tensor([list(size) for size in sizes], device=device)
    row = torch.arange(wanted[0], device=device)[:, None]
    col = torch.arange(wanted[1], device=device)
    return (row < given[:, 0, None, None]) & (col < given[:, 1, None, None])


def _is_size(size: Any) -> bool:
    """Whether these are two whole numbers from 0 on."""
    whole = isinstance(size, (tuple, list)) and all(isinstance(n, int) and n >= 0 for n in size)
    return whole and len(size) == 2
