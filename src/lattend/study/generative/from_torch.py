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


def read(name: str, given: Any, drawn: bool = False, vectors: bool = True) -> Distribution:
    """The distribution as one of ours; Gaussians, Bernoullis and Categoricals of torch become ours.

    One that is `drawn` from also says whether gradients flow through its draws. Normals of torch stand for
    the components of vectors, unless `vectors` is off.
    """
    if isinstance(given, td.Normal) and not vectors:
        return Foreign(given)
    if isinstance(given, td.Distribution):
        return _translated(given)
    if not all(hasattr(given, part) for part in ("log_prob", "shape")):
        raise TensorError(
            f"{name} must be a distribution, such as Gaussian(mean, log_variance=…), "
            f"got {type(given).__name__}"
        )
    for part in ("sample", "reparameterised") if drawn else ():
        if not hasattr(given, part):
            raise TensorError(f"{name} is drawn from, and a {type(given).__name__} has no {part}")
    return given


def event_axes(given: Any) -> int:
    """How many axes of a draw are one event, whose log-probability is one number."""
    return len(given.event_shape) if isinstance(given, td.Distribution) else int(isinstance(given, Gaussian))


def as_torch(given: Distribution) -> td.Distribution | None:
    """The same as a torch.distributions object, where there is one."""
    match given:
        case Foreign():
            return given.inner
        case Gaussian(diagonal=True):
            return td.Normal(given.mean, given.variance.sqrt())
        case Gaussian():
            return td.MultivariateNormal(given.mean, scale_tril=given.cholesky)
        case Bernoulli():
            return td.Bernoulli(logits=given.logits)
        case Categorical():
            return td.Categorical(logits=given.logits)
        case _:
            return None


def _translated(given: td.Distribution) -> Distribution:
    while isinstance(given, td.Independent):  # all axes after the batch are summed in any case
        given = given.base_dist
    match given:
        case td.Normal() if given.batch_shape:  # without a shape it stands for each component of any vector
            return Gaussian(given.loc, given.scale.square())
        case td.MultivariateNormal():
            return Gaussian(given.loc, cholesky=given.scale_tril)
        case td.Bernoulli():
            return Bernoulli(log_odds(given))
        case td.Categorical():
            return Categorical(_log(given.probs) if _given_chances(given) else given.logits)
        case _:
            return Foreign(given)


def log_odds(given: td.Bernoulli | td.Binomial | td.Geometric) -> Tensor:
    """The logits that were given, or those of the chances: torch clamps them, so that 0 is none."""
    return _log(given.probs) - _log(1 - given.probs) if _given_chances(given) else given.logits


def _given_chances(given: Any) -> bool:
    """Whether it was made from chances: what was not given is made later, when it is asked for."""
    return next(name for name in vars(given) if name in ("probs", "logits")) == "probs"


def _log(chances: Tensor) -> Tensor:
    """Their logarithms, −inf with no gradient for 0."""
    never = chances.detach() == 0
    return chances.masked_fill(never, 1).log().masked_fill(never, -torch.inf)


def _name(given: td.Distribution) -> str:
    return f"torch.distributions.{type(given).__name__}"
