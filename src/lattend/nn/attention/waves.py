"""Waves: sines and cosines of positions, on a line or on each axis of an image."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lattend.errors import DomainError

LONGEST = 10000.0  # the slowest wave turns once in about 2π times as many positions


def waves(places: Sequence[int], d: int, longest: float = LONGEST, *, like: Tensor | None = None) -> Tensor:
    """The sines, then the cosines, of each axis at every position: [*places, axes, 2, d / (2 axes)].

    Along an axis wave i is sin and cos of ω_i·position, ω_i = longest^(-i/f) for f = d/(2 axes) waves.

    >>> waves([3], 2)[2].flatten()  # sin 2, cos 2
    tensor([ 0.9093, -0.4161], dtype=torch.float64)
    """
    axes = len(places)
    check_width(d, axes)
    many = d // (2 * axes)
    device = None if like is None else like.device
    speeds = longest ** (-torch.arange(many, dtype=torch.float64, device=device) / many)
    found: list[Tensor] = []
    for axis, size in enumerate(places):
        angles = torch.arange(size, dtype=torch.float64, device=device)[:, None] * speeds
        both = torch.stack([angles.sin(), angles.cos()], 1)  # [size, 2, many]
        along = [size if other == axis else 1 for other in range(axes)]
        found.append(both.view(*along, 2, many).expand(*places, 2, many))
    whole = torch.stack(found, -3)
    return whole if like is None else whole.to(like.dtype)


def rotated(numbers: Tensor, at: Tensor) -> Tensor:
    """Numbers g that meet waves of k - q, as numbers that meet waves of k: rotated by the waves `at` q.

    sin(k-q) = sin k cos q - cos k sin q and cos(k-q) = cos k cos q + sin k sin q, so that
    g_s sin(k-q) + g_c cos(k-q) = (g_s cos q + g_c sin q) sin k + (g_c cos q - g_s sin q) cos k.
    """
    g_s, g_c = numbers.unflatten(-1, at.shape[-3:]).unbind(-2)
    s, c = at.unbind(-2)
    return torch.stack([g_s * c + g_c * s, g_c * c - g_s * s], -2).flatten(-3)


def check_width(d: int, axes: int) -> None:
    """Raises unless d numbers are a sine and a cosine for each axis, the same number of times."""
    if d % (2 * axes):
        where = "a line" if axes == 1 else "an image"
        raise DomainError(
            f"{d} numbers are no sines and cosines of each axis of {where}; take a multiple of {2 * axes}"
        )
