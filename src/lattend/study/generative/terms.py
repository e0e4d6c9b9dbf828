"""What bounds have in common: the terms of their samples, their means, errors and units."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from lattend.errors import NamingError, TensorError
from lattend.report.report import Printed
from lattend.study.generative.checks import choice
from lattend.study.generative.distributions import Distribution, Gaussian
from lattend.study.generative.divergence import summed
from lattend.study.generative.from_torch import read
from lattend.wording import many

UNITS = ("nats", "bits/dim")
Decode = Callable[[Tensor], Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class EvidenceBound(Printed):
    """A lower bound of log p(x), in one of the units."""

    dimensions: int  # numbers in one example
    unit: str = "nats"

    def __post_init__(self) -> None:
        choice("unit", self.unit, UNITS)

    @property
    def factor(self) -> float:
        """What nats are multiplied by to be in the unit: 1, or 1 / (D log 2) for bits in each of D."""
        return 1.0 if self.unit == "nats" else 1 / (self.dimensions * math.log(2))

    def mean_of(self, examples: int) -> str:
        """What the bound is the mean of."""
        return f"mean of {many(examples, 'example')} of {many(self.dimensions, 'number')}"

    def into(self, unit: str) -> Self:
        """The same bound in "nats" or "bits/dim"."""
        return replace(self, unit=unit)

    @property
    @abstractmethod
    def values(self) -> Tensor:
        """The bound of each example, [batch]."""

    @property
    def population_error(self) -> float | None:
        """Of value as the mean over whatever the batch was drawn from; None when there is one example."""
        values = self.values.detach().double()
        return None if len(values) < 2 else values.std().item() / math.sqrt(len(values))

    def error_of(self, estimates: Tensor) -> float | None:
        """Of the mean of estimates [samples, batch] over both, the batch being fixed; None from one sample.

        Each example is the mean of its samples, so its variance is that of one divided by their number.
        """
        samples, batch = estimates.shape
        if samples < 2:
            return None
        variances = estimates.detach().double().var(0)
        return math.sqrt(variances.sum().item() / samples) / batch * self.factor


def pair(x: Tensor, posterior: Any, prior: Any) -> tuple[Distribution, Distribution]:
    """The posterior and the prior; without one, the standard normal of the posterior's vectors."""
    q = read("posterior", posterior, drawn=True)
    if not q.shape or q.shape[0] != len(x):
        raise TensorError(
            f"x has {len(x)} examples and draws of the posterior have shape {tuple(q.shape)}; "
            "the posterior has one distribution for each example, along its first axis"
        )
    if prior is not None:
        p = read("prior", prior)
        if len(p.shape) > len(q.shape):
            raise TensorError(
                f"draws of the posterior have shape {tuple(q.shape)}, those of the prior {tuple(p.shape)}; "
                "the prior has the same axes, or fewer"
            )
        return q, p
    if not q.reparameterised:
        raise NamingError(f"a posterior {q!r} has no usual prior; give prior=")
    kind = q.mean if isinstance(q, Gaussian) else q.sample()
    return q, Gaussian(torch.zeros(q.shape[-1:], dtype=kind.dtype, device=kind.device), 1)


def log_likelihood(x: Tensor, z: Tensor, decode: Decode) -> Tensor:
    """Log p(x|z) [samples, batch], summed over all that one example is made of."""
    if not callable(decode):
        raise TensorError(f"decode must be a function from z to a distribution, got {type(decode).__name__}")
    observed = read("what decode(z) gives", decode(z))
    wanted = (len(z), *x.shape)
    if tuple(observed.shape) != wanted:
        raise TensorError(
            f"z is {_text(z.shape)} and x {_text(x.shape)}, so decode(z) has draws {_text(wanted)}, "
            f"samples and batch first; got {_text(observed.shape)}"
        )
    return summed(observed.log_prob(x), 2)


def log_prob(name: str, p: Distribution, z: Tensor) -> Tensor:
    """Log of the density of z [samples, batch, ...], summed to [samples, batch]."""
    total = summed(p.log_prob(z), 2)
    if total.shape != z.shape[:2]:
        raise TensorError(
            f"{name} gives log-probabilities {_text(total.shape)} for z {_text(z.shape)}; "
            f"[samples, batch] is {_text(z.shape[:2])}"
        )
    return total


def _text(shape: Any) -> str:
    return f"[{', '.join(map(str, shape))}]"
