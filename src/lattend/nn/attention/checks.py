"""Checks of what a layer is given: sizes, and the kind of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lattend.errors import DomainError, TensorError
from lattend.rules.rule import check_integer


def check_positive(**sizes: Any) -> None:
    """Raises unless each of these is a whole number of at least 1."""
    for name, size in sizes.items():
        check_integer(name, size)
        if size < 1:
            raise DomainError(f"{name} must be at least 1, got {size}")


def read_places(name: str, given: int | Sequence[int]) -> tuple[int, ...]:
    """The sizes (n,) of a line or (rows, cols) of an image."""
    found = tuple(given) if isinstance(given, Sequence) else (given,)
    if len(found) not in (1, 2):
        raise DomainError(f"{name} are (n,) on a line and (rows, cols) on an image, not {given!r}")
    for size in found:
        check_positive(**{name: size})
    return found


def check_tensor(name: str, given: object) -> None:
    """Raises unless it is a tensor."""
    if not isinstance(given, Tensor):
        raise TensorError(f"{name} must be a tensor, got {type(given).__name__}")


def check_kind(name: str, given: Tensor, weight: Tensor) -> None:
    """Raises unless a tensor meets a weight on its device and in its dtype, which autocast may change."""
    if given.device != weight.device:
        raise TensorError(
            f"{name} is on {given.device} and the weights are on {weight.device}; move one of them"
        )
    if given.dtype == weight.dtype:
        return
    device = given.device.type
    cast = device != "meta" and torch.is_autocast_enabled(device)
    # autocast leaves float64 as it is
    if not (cast and given.is_floating_point() and torch.float64 not in (given.dtype, weight.dtype)):
        raise TensorError(f"{name} is {_word(given)} and the weights are {_word(weight)}; cast one of them")


def _word(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
