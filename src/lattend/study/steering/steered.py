"""Steered: the query, what attention returns for it, its error and bound, and why it cannot be better."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.report.report import Printed, Report
from lattend.report.shown import Drawn
from lattend.study.steering.ray import EXACTLY, Certificate, Ray

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
