"""read: a distribution of ours, of torch.distributions, or anything with the same methods, as one of ours."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch import distributions as td

from lattend.errors import DomainError, NamingError, TensorError
from lattend.study.generative.checks import count
from lattend.study.generative.distributions import Bernoulli, Categorical, Distribution, Gaussian


class Foreign:
    """A torch.distributions object with the methods of ours."""

    def __init__(self, inner: td.Distribution) -> None:
        self.inner = inner
        self.reparameterised = bool(inner.has_rsample)

    @property
    def shape(self) -> torch.Size:
        """Of one draw."""
        return self.inner.batch_shape + self.inner.event_shape

    def log_prob(self, x: Tensor) -> Tensor:
        """What the object itself says, its own errors as ours."""
        try:
            return self.inner.log_prob(x)
        except ValueError as error:
            raise DomainError(f"{_name(self.inner)}: {error}") from None
        except RuntimeError as error:
            raise TensorError(f"{_name(self.inner)}: {error}") from None

    def sample(self, k: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        """K draws [k, ...], or one; gradients flow through them where the object allows it."""
        if generator is not None:
            raise NamingError(
                f"torch.distributions takes no generator, and this is {_name(self.inner)}; "
                "use torch.manual_seed, or a Gaussian of lt.study.generative"
            )
        shape = torch.Size(() if k is None else (count("k", k),))
        return self.inner.rsample(shape) if self.reparameterised else self.inner.sample(shape)

    def __repr__(self) -> str:
        return repr(self.inner)


def read(name: str, distribution: Any, drawn: bool = False, vectors: bool = True) -> Distribution:
    """The distribution as one of ours; Gaussians, Bernoullis and Categoricals of torch become ours.

    One that is `drawn` from also says whether gradients flow through its draws. Normals of torch stand for
    the components of vectors, unless `vectors` is off.
    """
    if isinstance(distribution, td.Normal) and not vectors:
        return Foreign(distribution)
    if isinstance(distribution, td.Distribution):
        return _translated(distribution)
    if not all(hasattr(distribution, part) for part in ("log_prob", "shape")):
        raise TensorError(
            f"{name} must be a distribution, such as Gaussian(mean, log_variance=…), "
            f"got {type(distribution).__name__}"
        )
    for part in ("sample", "reparameterised") if drawn else ():
        if not hasattr(distribution, part):
            raise TensorError(f"{name} is drawn from, and a {type(distribution).__name__} has no {part}")
    return distribution


def event_axes(distribution: Any) -> int:
    """How many axes of a draw are one event, whose log-probability is one number."""
    return (
        len(distribution.event_shape)
        if isinstance(distribution, td.Distribution)
        else int(isinstance(distribution, Gaussian))
    )


def as_torch(distribution: Distribution) -> td.Distribution | None:
    """The same as a torch.distributions object, where there is one."""
    match distribution:
        case Foreign():
            return distribution.inner
        case Gaussian(diagonal=True):
            return td.Normal(distribution.mean, distribution.variance.sqrt())
        case Gaussian():
            return td.MultivariateNormal(distribution.mean, scale_tril=distribution.cholesky)
        case Bernoulli():
            return td.Bernoulli(logits=distribution.logits)
        case Categorical():
            return td.Categorical(logits=distribution.logits)
        case _:
            return None


def _translated(distribution: td.Distribution) -> Distribution:
    while isinstance(distribution, td.Independent):  # all axes after the batch are summed in any case
        distribution = distribution.base_dist
    match distribution:
        case td.Normal() if (
            distribution.batch_shape
        ):  # without a shape it stands for each component of any vector
            return Gaussian(distribution.loc, distribution.scale.square())
        case td.MultivariateNormal():
            return Gaussian(distribution.loc, cholesky=distribution.scale_tril)
        case td.Bernoulli():
            return Bernoulli(log_odds(distribution))
        case td.Categorical():
            return Categorical(
                _log(distribution.probs) if _given_chances(distribution) else distribution.logits
            )
        case _:
            return Foreign(distribution)


def log_odds(distribution: td.Bernoulli | td.Binomial | td.Geometric) -> Tensor:
    """The logits that were given, or those of the chances: torch clamps them, so that 0 is none."""
    return (
        _log(distribution.probs) - _log(1 - distribution.probs)
        if _given_chances(distribution)
        else distribution.logits
    )


def _given_chances(distribution: Any) -> bool:
    """Whether it was made from chances: what was not given is made later, when it is asked for."""
    return next(name for name in vars(distribution) if name in ("probs", "logits")) == "probs"


def _log(chances: Tensor) -> Tensor:
    """Their logarithms, −inf with no gradient for 0."""
    never = chances.detach() == 0
    return chances.masked_fill(never, 1).log().masked_fill(never, -torch.inf)


def _name(distribution: td.Distribution) -> str:
    return f"torch.distributions.{type(distribution).__name__}"
