"""Checks of numbers, names and tensors, and where in a tensor something is."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lattend.errors import DomainError, NamingError, TensorError
from lattend.report.numbers import significant
from lattend.seeds import check_seed


def count(name: str, number: Any, least: int = 1) -> int:
    """A whole number from `least` on."""
    whole_number = _whole(number)
    if whole_number is None or whole_number < least:
        raise DomainError(f"{name} must be a whole number from {least} on, got {number!r}")
    return whole_number


def counts(name: str, value: Any) -> tuple[int, ...]:
    """One or more whole numbers from 1 on, of a single number or of several."""
    try:
        numbers = tuple(value)
    except TypeError:
        numbers = (value,)
    if not numbers:
        raise DomainError(f"{name} needs at least one number")
    return tuple(count(f"a number in {name}", number) for number in numbers)


def seeded(seed: Any, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator that starts from this seed."""
    return torch.Generator(device).manual_seed(check_seed(seed))


def _whole(number: Any) -> int | None:
    try:
        return None if isinstance(number, bool) else operator.index(number)
    except TypeError:
        return None


def real(
    name: str,
    value: Any,
    domain: str = "at least 0",
    good: Callable[[float], bool] = lambda number: number >= 0,
) -> float:
    """A finite number of which `good` is true."""
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, RuntimeError):  # nothing, a list, a vector
        number = math.nan
    if not (math.isfinite(number) and good(number)):
        raise DomainError(f"{name} must be {domain}, got {value!r:.60}")
    return number


def choice(name: str, value: Any, names: Collection[str]) -> str:
    """One of the names."""
    if not isinstance(value, str) or value not in names:
        raise NamingError(f"{name} is one of {', '.join(names)}, not {value!r:.60}")
    return value


def real_tensor(name: str, x: Any, shape: str = "") -> Tensor:
    """A tensor of numbers that are not complex."""
    if not isinstance(x, Tensor):
        raise TensorError(f"{name} must be a tensor{shape and ' '}{shape}, got {type(x).__name__}")
    if x.is_complex():
        raise TensorError(f"{name} must be real, got {x.dtype}")
    return x


def check_data(x: Any) -> Tensor:
    """The data [batch, ...], or an error."""
    x = real_tensor("x", x, "[batch, ...]")
    if not x.numel() or x.ndim < 2:
        raise TensorError(f"x is [batch, ...] with at least one example, got shape {tuple(x.shape)}")
    return x


def floating(name: str, numbers: Any, like: Tensor | None = None) -> Tensor:
    """A tensor of floating numbers; whole numbers and lists become one of the type of `like`.

    Types of 16 bits become float32: they have too few digits for sums of logarithms, and no Cholesky factors.
    """
    if not isinstance(numbers, Tensor):
        try:
            numbers = torch.as_tensor(numbers, dtype=None if like is None else like.dtype)
        except (TypeError, ValueError, RuntimeError):
            raise TensorError(
                f"{name} must be numbers, got {type(numbers).__name__} {numbers!r:.60}"
            ) from None
        if like is not None:
            numbers = numbers.to(like.device)
    numbers = real_tensor(name, numbers)
    if not numbers.is_floating_point():
        numbers = numbers.to(torch.get_default_dtype() if like is None else like.dtype)
    return wide(numbers)


def wide(values: Tensor) -> Tensor:
    """The same numbers in float32, or in float64 where they are that already."""
    return values if values.dtype == torch.float64 else values.float()


def finite(name: str, values: Tensor, advice: str = "look where it came from") -> Tensor:
    """The tensor itself, where no number is nan or infinite."""
    require(values.isfinite(), values, f"{name} must be finite", advice)
    return values


def together(name: str, first: torch.Size, other: str, second: torch.Size) -> torch.Size:
    """The shape that both become, or an error with both."""
    try:
        return torch.Size(np.broadcast_shapes(first, second))  # torch's own loads sympy
    except ValueError:
        raise TensorError(
            f"{name} has shape {tuple(first)} and {other} {tuple(second)}; give both the same"
        ) from None


def require(good: Tensor, values: Tensor, message: str, advice: str) -> None:
    """Nothing where all of `good` is true; else an error with the first value that is not, and its place."""
    if bool(good.all()):
        return
    place = (~good).nonzero()[0].tolist()
    value = values.expand(good.shape)[tuple(place)].item()
    at = f" at {place}" if place else ""
    raise DomainError(f"{message}, got {significant(value, 6)}{at}; {advice}")
