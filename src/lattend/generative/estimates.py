"""What a bound is estimated from: the terms of its samples, their means, errors and units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lattend.errors import DomainError, NamingError, TensorError
from lattend.generative.distributions import Distribution, Gaussian
from lattend.generative.divergence import summed
from lattend.generative.foreign import read

UNITS = ("nats", "bits/dim")
LEAST = 1e-6  # an error below it is rounding
Decode = Callable[[Tensor], Any]


def check_data(x: Any) -> Tensor:
    """The data [batch, ...], or an error."""
    if not isinstance(x, Tensor):
        raise TensorError(f"x must be a tensor [batch, ...], got {type(x).__name__}")
    if not x.numel() or x.ndim < 2:
        raise TensorError(f"x is [batch, ...] with at least one example, got shape {tuple(x.shape)}")
    return x


def check_unit(unit: str) -> str:
    """One of the units."""
    if unit not in UNITS:
        raise NamingError(f"unit is one of {', '.join(UNITS)}, not {unit!r}")
    return unit


def pair(x: Tensor, posterior: Any, prior: Any) -> tuple[Distribution, Distribution]:
    """The posterior and the prior; without one, the standard normal of the posterior's vectors."""
    q = read("posterior", posterior, drawn=True)
    if not q.shape or q.shape[0] != len(x):
        raise TensorError(
            f"x has {len(x)} examples and draws of the posterior have shape {tuple(q.shape)}; "
            "the posterior has one distribution for each example, along its first axis"
        )
    if prior is not None:
        return q, read("prior", prior)
    if not q.reparameterised:
        raise NamingError(f"a posterior {q!r} has no usual prior; give prior=")
    kind = q.mean if isinstance(q, Gaussian) else q.sample()
    return q, Gaussian(torch.zeros(q.shape[-1:], dtype=kind.dtype, device=kind.device), 1)


def log_likelihood(x: Tensor, z: Tensor, decode: Decode) -> Tensor:
    """Log p(x|z) [samples, batch], summed over all that one example is made of."""
    given = decode(z)
    observed = read("what decode(z) gives", given)
    wanted = (len(z), *x.shape)
    if tuple(observed.shape) != wanted:
        raise TensorError(
            f"z is {_text(z.shape)} and x {_text(x.shape)}, so decode(z) has draws {_text(wanted)}, "
            f"samples and batch first; got {_text(observed.shape)}"
        )
    return summed(observed.log_prob(x), 2)


def log_prob(name: str, given: Distribution, z: Tensor) -> Tensor:
    """Log of the density of z [samples, batch, ...], summed to [samples, batch]."""
    found = summed(given.log_prob(z), 2)
    if found.shape != z.shape[:2]:
        raise TensorError(
            f"{name} gives log-probabilities {_text(found.shape)} for z {_text(z.shape)}; "
            f"[samples, batch] is {_text(z.shape[:2])}"
        )
    return found


def standard_error(estimates: Tensor) -> float | None:
    """Of the mean of estimates [samples, batch] over both, the batch being fixed; None from one sample.

    Each example is the mean of its samples, so its variance is that of one divided by their number.
    """
    samples, batch = estimates.shape
    if samples < 2:
        return None
    return math.sqrt(estimates.detach().double().var(0).sum().item() / samples) / batch


def population_error(values: Tensor) -> float | None:
    """Of the mean of values [batch], for the population the examples were drawn from; None from one."""
    if len(values) < 2:
        return None
    return values.detach().double().std().item() / math.sqrt(len(values))


def factor(unit: str, dimensions: int) -> float:
    """What nats of an example are multiplied by: 1, or 1 / (D log 2) for bits in each of its D numbers."""
    return 1.0 if unit == "nats" else 1 / (dimensions * math.log(2))


def check_number(name: str, value: float) -> float:
    """A number that is finite and not negative."""
    if not (math.isfinite(value) and value >= 0):
        raise DomainError(f"{name} must be at least 0, got {value}")
    return value


def number(value: Tensor | float, error: float | None = None) -> str:
    """A number with two digits of its error, or four places where there is none.

    >>> number(-84.3123, 0.0512)
    '−84.312 ± 0.051'
    """
    error = error if error and error >= LEAST else None
    places = 4 if error is None else max(0, 1 - math.floor(math.log10(error)))
    plain = value.item() if isinstance(value, Tensor) else value
    shown = round(plain, places) + 0.0  # no −0.0000
    said = "" if error is None else f" ± {error:,.{places}f}"
    return f"{shown:,.{places}f}".replace("-", "−") + said


def many(number: int, name: str) -> str:
    """`1 example`, `1,797 examples`."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _text(shape: Any) -> str:
    return f"[{', '.join(map(str, shape))}]"
