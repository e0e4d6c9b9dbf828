"""Checks of what steer is given: shapes, weights, errors and scales, one clear error each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lattend.errors import DomainError, TensorError
from lattend.report.numbers import significant
from lattend.study.steering.fit import Floats
from lattend.study.steering.numbers import check_number, place_of

SUM_SLACK = 1e-6  # at least, that weights may be off 1


def check_shapes(keys: Floats, weights: Floats, slack: float = 0.0) -> tuple[int, ...]:
    """The leading axes; raises where the keys or the weights are none, or have a sum off 1 by the slack."""
    if keys.ndim < 2 or 0 in keys.shape:
        raise TensorError(f"keys has shape {keys.shape}; give [..., m, D], a row for each of m keys")
    many = keys.shape[-2]
    if weights.ndim < 1 or weights.shape[-1] != many:
        shape = f"weights has shape {weights.shape} for {many} keys"
        raise TensorError(f"{shape}; give [..., {many}], one for each key")
    negative = np.argwhere(weights < 0)
    if len(negative):
        place = negative[0]
        raise DomainError(
            f"weights{place_of(place)} is {significant(weights[tuple(place)], 6)}; a weight is at least 0"
        )
    sums = weights.sum(axis=-1)
    off = np.argwhere(np.abs(sums - 1) > max(SUM_SLACK, slack))
    if len(off):
        where = f" of head {tuple(off[0].tolist())}" if sums.ndim else ""
        raise DomainError(
            f"the weights{where} sum to {significant(sums[tuple(off[0])], 6)}, not 1; "
            "divide them by their sum"
        )
    try:
        return np.broadcast_shapes(keys.shape[:-2], weights.shape[:-1])
    except ValueError:
        heads = f"keys have leading axes {keys.shape[:-2]} and weights {weights.shape[:-1]}"
        raise TensorError(f"{heads}; give both the same heads") from None


def check_error(error: Floats, lead: tuple[int, ...]) -> Floats:
    """The error of each head, between 0 and 1."""
    for value in error.flat:
        if not 0 < value < 1:
            raise DomainError(
                f"error is {significant(value, 6)}; the share that may go elsewhere lies between 0 and 1"
            )
    return at_heads("error", error, lead)


def at_heads(name: str, given: Floats, lead: tuple[int, ...]) -> Floats:
    """One number for each head."""
    try:
        return np.broadcast_to(given, lead)
    except ValueError:
        heads = f"one number, or one a head: {lead}" if lead else "one number"
        raise TensorError(f"{name} has shape {given.shape}; give {heads}") from None


def check_values(values: Floats, many: int, lead: tuple[int, ...]) -> Floats:
    """The values of each head, a row for each of so many keys."""
    if values.ndim < 2 or values.shape[-2] != many:
        raise TensorError(f"values has shape {values.shape}; give [..., {many}, v], a row for each key")
    try:
        return np.broadcast_to(values, lead + values.shape[-2:])
    except ValueError:
        raise TensorError(f"values have leading axes {values.shape[:-2]}; the heads are {lead}") from None


def check_scale(scale: Any, width: int) -> float:
    """The factor of the logits, for keys of so many numbers."""
    if isinstance(scale, str) and scale == "sqrt":
        return 1 / math.sqrt(width)
    try:
        found = check_number(scale)
    except DomainError as error:
        raise DomainError(f'scale is a number or "sqrt", for 1/√D: {error}') from None
    if not math.isfinite(found) or found == 0:
        raise DomainError(
            f"scale is {significant(found, 6)}; no query would change a weight, give a finite number but 0"
        )
    return found
