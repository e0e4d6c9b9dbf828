"""steer: the query that makes attention return a wanted mixture, its exact error and its bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.errors import NamingError
from lattend.report.report import Printed, Report
from lattend.report.shown import Drawn
from lattend.study.steering.linear import Floats, apart, softmax
from lattend.study.steering.numbers import (
    NumberArray,
    at_heads,
    check_error,
    check_scale,
    check_shapes,
    check_values,
    read,
)
from lattend.study.steering.ray import EXACTLY, Certificate, Ray, aim, sharpness_of

if TYPE_CHECKING:
    from lattend.draw.picture import Picture


def plain(numbers: Any) -> Any:
    """Numbers or a tensor as a numpy array in float64."""
    return np.asarray(numbers.detach().cpu().double() if hasattr(numbers, "detach") else numbers, dtype=float)


def one(number: Any) -> float:
    """A number or a tensor of one as a float."""
    return float(plain(number))


@dataclass(frozen=True, eq=False, repr=False)
class Steered(Drawn, Printed):
    """A query steered to wanted weights over m keys; tensors where tensors were given.

    `query` [D] gives `logits` scale·Kq [m] and `weights` softmax(logits). `error` is the total-variation
    distance of these weights from the wanted ones, half the sum of the differences, measured for this very
    query; it is never above `bound`, which is what is promised of the sharpness, or the error where the
    rounding of the query to floats costs more. With values there are `output` and `wanted_output`, and the
    length of their difference with its bound.
    """

    query: Any
    wanted: Any
    logits: Any
    weights: Any
    error: Any
    bound: Any
    sharpness: Any
    ray: Ray
    scale: float = 1.0
    output: Any = None
    wanted_output: Any = None
    output_error: Any = None
    output_bound: Any = None

    @property
    def reach(self) -> str:
        """How the wanted weights are reached: "exactly", "in the limit" of great sharpness, or "never"."""
        return self.ray.reach

    @property
    def exact(self) -> bool:
        """Whether this query gives the wanted weights themselves."""
        return self.reach == EXACTLY

    @property
    def certificate(self) -> Certificate | None:
        """Why no query gives the wanted weights; None where they are reached, if only in the limit."""
        return self.ray.certificate

    @property
    def how(self) -> str:
        """How the query comes about, in a sentence or two."""
        from lattend.study.steering.reports import how

        return how(self)

    def draw(self) -> Picture:
        """The weights against the sharpness, the error with its bound, and keys of two numbers as a map."""
        from lattend.study.steering.pictures import figure_of_query

        return figure_of_query(self)

    def json(self) -> dict[str, Any]:
        """All of it as plain data."""
        data: dict[str, Any] = {
            "reach": self.reach,
            "exact": self.exact,
            "how": self.how,
            "scale": self.scale,
            "sharpness": one(self.sharpness),
            "query": plain(self.query).tolist(),
            "logits": plain(self.logits).tolist(),
            "wanted": self.ray.wanted.tolist(),
            "weights": plain(self.weights).tolist(),
            "error": one(self.error),
            "bound": one(self.bound),
            "certificate": None,
        }
        if self.certificate is not None:
            why = self.certificate
            data["certificate"] = {
                "relation": plain(why.relation).tolist(),
                "total": why.total if math.isfinite(why.total) else None,
                "nats": why.nats,
                "weights": why.weights.tolist(),
                "within": why.within,
            }
        if self.output is not None:
            data["output"] = plain(self.output).tolist()
            data["wanted_output"] = plain(self.wanted_output).tolist()
            data["output_error"], data["output_bound"] = one(self.output_error), one(self.output_bound)
        return data

    def report(self) -> Report:
        """The query's facts, and the keys in a table."""
        from lattend.study.steering.reports import steered_report

        return steered_report(self)

    __repr__ = Printed.__str__


def _stacked(name: str) -> Any:
    """The numbers of this name of all heads, with the leading axes."""

    def together(steered: SteeredHeads) -> Any:
        parts = [getattr(head, name) for head in steered.heads]
        if parts[0] is None:
            return None
        stacked = steered.stack(parts)
        return stacked.reshape(steered.shape + tuple(stacked.shape[1:]))

    return property(together)


@dataclass(frozen=True, eq=False, repr=False)
class SteeredHeads(Drawn, Printed):
    """Many queries at once: the numbers of `Steered` with the leading axes of the keys; `[head]` is one."""

    JSON = "shape heads"

    shape: tuple[int, ...]
    heads: tuple[Steered, ...]
    stack: Callable[[list[Any]], Any]

    query = _stacked("query")
    wanted = _stacked("wanted")
    logits = _stacked("logits")
    weights = _stacked("weights")
    error = _stacked("error")
    bound = _stacked("bound")
    sharpness = _stacked("sharpness")
    output = _stacked("output")
    wanted_output = _stacked("wanted_output")
    output_error = _stacked("output_error")
    output_bound = _stacked("output_bound")

    @property
    def exact(self) -> bool:
        """Whether every query gives its wanted weights themselves."""
        return all(head.exact for head in self.heads)

    @property
    def reach(self) -> list[str]:
        """How the wanted weights of each head are reached, heads in order."""
        return [head.reach for head in self.heads]

    @property
    def certificate(self) -> list[Certificate | None]:
        """The certificate of each head, heads in order."""
        return [head.certificate for head in self.heads]

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Steered]:
        return iter(self.heads)

    def __getitem__(self, place: int | tuple[int, ...]) -> Steered:
        index = np.arange(len(self.heads)).reshape(self.shape)[place]
        if np.ndim(index):
            raise IndexError(f"[{place}] is {np.size(index)} heads; give a number for each of {self.shape}")
        return self.heads[int(index)]

    def draw(self) -> Picture:
        """The error of the first heads against their sharpness, and a table of all."""
        from lattend.study.steering.pictures import figure_of_heads

        return figure_of_heads(self)

    def report(self) -> Report:
        """The heads in a table."""
        from lattend.study.steering.reports import heads_report

        return heads_report(self)

    __repr__ = Printed.__str__


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
