"""steer: the query that makes attention return the wanted mixture, its exact error and its bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lattend.errors import NamingError
from lattend.study.steering.fit import Floats, apart, softmax
from lattend.study.steering.numbers import (
    NumberArray,
    at_heads,
    check_error,
    check_scale,
    check_shapes,
    check_values,
    read,
)
from lattend.study.steering.ray import Ray, aim, sharpness_of
from lattend.study.steering.steered import Steered, SteeredHeads

USUAL_ERROR = 1e-3


def steer(
    keys: Any,
    weights: Any,
    sharpness: Any = None,
    error: Any = None,
    values: Any = None,
    scale: float | str = 1,
) -> Steered | SteeredHeads:
    """The query q for which attention over `keys` [m, D] returns the wanted `weights` [m].

    Logits are scale·Kq; scale "sqrt" is 1/√D. Weights of 0 are only neared: `sharpness` β makes the mean
    wanted weight e^β times the greatest other, `error` ε takes the β at which at most ε goes elsewhere, and
    0.001 does unless one is given. Leading axes are heads. Tensors give tensors, with gradients.

    >>> found = steer([[1, 0], [0, 1]], [1, 0], sharpness=5)
    >>> found.query
    array([5., 0.])
    >>> round(found.error, 6)  # 1/(e⁵ + 1) goes to the other key
    0.006693
    """
    if sharpness is not None and error is not None:
        raise NamingError("sharpness and error are both given; each decides the other, so leave one out")
    arguments = (keys, weights, sharpness, error, values)
    if any(type(x).__module__.partition(".")[0] == "torch" for x in arguments):
        from lattend.study.steering.tensors import steer_tensors

        return steer_tensors(keys, weights, sharpness, error, values, scale)
    rows, wanted = read("keys", keys), read("weights", weights)
    lead = check_shapes(rows.floats, wanted.floats, wanted.small)
    far = None if sharpness is None else at_heads("sharpness", read("sharpness", sharpness).floats, lead)
    most = None if error is None else check_error(read("error", error).floats, lead)
    carried = (
        None if values is None else check_values(read("values", values).floats, rows.floats.shape[-2], lead)
    )
    factor = check_scale(scale, rows.floats.shape[-1])
    heads: list[Steered] = []
    for place in np.ndindex(lead):
        ray = aim(at_head(rows, place, lead, 2), normal(at_head(wanted, place, lead, 1)))
        heads.append(
            shoot(
                ray,
                None if far is None else float(far[place]),
                None if most is None else float(most[place]),
                None if carried is None else carried[place],
                factor,
            )
        )
    return heads[0] if not lead else SteeredHeads(lead, tuple(heads), np.stack)


def shoot(
    ray: Ray,
    sharpness: float | None,
    error: float | None,
    values: Floats | None,
    scale: float,
    rounded: Callable[[Floats], Floats] = np.asarray,
) -> Steered:
    """The query on the ray that is asked for, and what attention returns for it as it is rounded."""
    beta = chosen_sharpness(ray, sharpness, error)
    with np.errstate(over="ignore", invalid="ignore"):  # such a query is refused
        query = rounded(ray.query(beta) / scale + 0.0)
        logits, about = ray.measured(query, scale)
    distance = ray.error(about)
    bound = max(ray.promised(beta), distance)  # above what is promised by rounding alone
    weights = softmax(about)
    fields: dict[str, Any] = {}
    if values is not None:
        fields["output"], fields["wanted_output"] = weights @ values, ray.wanted @ values
        one, other = farthest(values)
        missed = float(np.linalg.norm(apart(about, ray.face, ray.wanted) @ values))
        limit = max(bound * float(np.linalg.norm(values[one] - values[other])), missed)
        fields["output_error"], fields["output_bound"] = missed, limit
    return Steered(query, ray.wanted, logits, weights, distance, bound, beta, ray, scale, **fields)


def chosen_sharpness(ray: Ray, sharpness: float | None, error: float | None) -> float:
    """The sharpness that is given, or that keeps the weight elsewhere below the error."""
    if sharpness is not None:
        return sharpness
    return sharpness_of(USUAL_ERROR if error is None else error, len(ray.keys), int(ray.face.sum()))


def farthest(values: Floats) -> tuple[int, int]:
    """The two of the values [m, v] that are farthest apart."""
    squares = np.square(values).sum(axis=1)
    pair, most = (0, 0), 0.0
    for first in range(0, len(values), 256):  # blocks of rows, so that m × m distances need not be held
        block = slice(first, first + 256)
        distances = squares[block, None] + squares - 2 * values[block] @ values.T
        row, column = np.unravel_index(distances.argmax(), distances.shape)
        if distances[row, column] > most:
            pair, most = (first + int(row), int(column)), distances[row, column]
    return pair


def normal(weights: NumberArray) -> NumberArray:
    """The weights with sum 1; exact only where they have it exactly."""
    if weights.fractions is not None and sum(weights.fractions) == 1:
        return weights
    return NumberArray(weights.floats / weights.floats.sum(), None, weights.small)


def at_head(array: NumberArray, place: tuple[int, ...], lead: tuple[int, ...], axes: int) -> NumberArray:
    """The numbers of one head; those with fewer leading axes are for all."""

    def one(numbers: Any) -> Any:
        return np.broadcast_to(numbers, lead + numbers.shape[numbers.ndim - axes :])[place]

    return NumberArray(
        one(array.floats), None if array.fractions is None else one(array.fractions), array.small
    )
