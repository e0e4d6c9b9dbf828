"""Checks of tensors that distributions share, and where in a tensor something is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lattend.errors import DomainError, TensorError


def floating(name: str, given: Any, like: Tensor | None = None) -> Tensor:
    """A tensor of floating numbers; whole numbers and lists become one of the type of `like`."""
    if not isinstance(given, Tensor):
        try:
            given = torch.as_tensor(given, dtype=None if like is None else like.dtype)
        except (TypeError, ValueError, RuntimeError):
            raise TensorError(f"{name} must be numbers, got {type(given).__name__} {given!r:.60}") from None
        if like is not None:
            given = given.to(like.device)
    if given.is_complex():
        raise TensorError(f"{name} must be real, got {given.dtype}")
    return (
        given
        if given.is_floating_point()
        else given.to(torch.get_default_dtype() if like is None else like.dtype)
    )


def together(name: str, first: Tensor, other: str, second: Tensor) -> torch.Size:
    """The common shape of two tensors, or an error with both."""
    try:
        return torch.broadcast_shapes(first.shape, second.shape)
    except RuntimeError:
        raise TensorError(
            f"{name} has shape {tuple(first.shape)} and {other} {tuple(second.shape)}; give both the same"
        ) from None


def require(good: Tensor, values: Tensor, said: str, advice: str) -> None:
    """Nothing where all of `good` is true; else an error with the first value that is not, and its place."""
    if bool(good.all()):
        return
    place = (~good).nonzero()[0].tolist()
    value = values.expand(good.shape)[tuple(place)].item()
    at = f" at {place}" if place else ""
    raise DomainError(f"{said}, got {value:g}{at}; {advice}")


def count(name: str, number: Any) -> int:
    """A whole number from 1 on."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise DomainError(f"{name} must be a whole number from 1 on, got {number!r}")
    return number
