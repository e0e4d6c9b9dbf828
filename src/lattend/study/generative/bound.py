"""elbo: the evidence lower bound as its two terms, reconstruction and KL."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from lattend.errors import DomainError, NamingError, TensorError
from lattend.report.numbers import format_error
from lattend.report.report import Printed, Report
from lattend.report.table import Facts
from lattend.study.generative import divergence
from lattend.study.generative.checks import check_data, choice, count, real
from lattend.study.generative.distributions import Bernoulli, Categorical, Distribution, Gaussian
from lattend.study.generative.divergence import read, summed
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
        """The factor from nats to the unit: 1, or 1 / (D log 2) for bits in each of D."""
        return 1.0 if self.unit == "nats" else 1 / (self.dimensions * math.log(2))

    def mean_of(self, examples: int) -> str:
        """A description of the examples that the bound is a mean over."""
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
        """The standard error of value for the population of the batch; None when there is one example."""
        values = self.values.detach().double()
        return None if len(values) < 2 else values.std().item() / math.sqrt(len(values))

    def error_of(self, estimates: Tensor) -> float | None:
        """The standard error of the mean of estimates [samples, batch] for this batch; None from one sample.

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


@dataclass(frozen=True, eq=False)
class ELBO(EvidenceBound):
    """A lower bound of log p(x), mean over the batch: value = reconstruction − kl, whatever beta is.

    `unit` is that of all numbers but `loss`, which is in nats: −reconstruction + beta · KL, with free bits
    where they were asked for. `value`, `reconstruction`, `kl` and `loss` carry gradients.
    """

    log_likelihoods: Tensor  # log p(x|z), [samples, batch], nats
    divergences: Tensor  # KL of each example, [1, batch] in closed form or [samples, batch], nats
    penalty: Tensor  # what takes the KL's place in the loss, nats
    closed: bool  # whether the KL is in closed form
    probabilities: Tensor | None = None  # q(z|x) of every z, [values, batch], where all z are summed

    @property
    def reconstructions(self) -> Tensor:
        """E_q[log p(x|z)] of each example, [batch]."""
        return _expected(self.log_likelihoods, self.probabilities) * self.factor

    @property
    def kls(self) -> Tensor:
        """KL(q ‖ p) of each example, [batch]."""
        return self.divergences.mean(0) * self.factor

    @property
    def values(self) -> Tensor:
        """The bound of each example, [batch]."""
        return self.reconstructions - self.kls

    @property
    def reconstruction(self) -> Tensor:
        """E_q[log p(x|z)], summed over pixels, mean over the batch."""
        return self.reconstructions.mean()

    @property
    def kl(self) -> Tensor:
        """KL(q(z|x) ‖ p(z)), summed over latents, mean over the batch."""
        return self.kls.mean()

    @property
    def value(self) -> Tensor:
        """The bound: reconstruction − kl."""
        return self.reconstruction - self.kl

    @property
    def loss(self) -> Tensor:
        """The loss of training, in nats."""
        return self.penalty - _expected(self.log_likelihoods, self.probabilities).mean()

    @property
    def standard_error(self) -> float | None:
        """The standard error of value for this batch: 0 where all z are summed, None from one sample."""
        return self._error(self.log_likelihoods - self.divergences)

    @property
    def reconstruction_error(self) -> float | None:
        """The standard error of reconstruction: 0 where all z are summed, None from one sample."""
        return self._error(self.log_likelihoods)

    @property
    def kl_error(self) -> float | None:
        """The standard error of kl: 0 in closed form, None from one sample."""
        return 0.0 if self.closed else self._error(self.divergences)

    def _error(self, estimates: Tensor) -> float | None:
        return self.error_of(estimates) if self.probabilities is None else 0.0

    def json(self) -> dict[str, Any]:
        """The numbers as plain data."""
        return {
            "elbo": self.value.item(),
            "reconstruction": self.reconstruction.item(),
            "kl": self.kl.item(),
            "unit": self.unit,
            "standard_error": self.standard_error,
            "reconstruction_error": self.reconstruction_error,
            "kl_error": self.kl_error,
            "population_error": self.population_error,
            "loss": self.loss.item(),
            "examples": self.log_likelihoods.shape[1],
            "samples": len(self.log_likelihoods) if self.probabilities is None else None,
            "summed": None if self.probabilities is None else len(self.probabilities),
            "dimensions": self.dimensions,
        }

    def report(self) -> Report:
        """The bound and its two terms."""
        samples, examples = self.log_likelihoods.shape
        how = "closed form" if self.closed else "from samples" if self.probabilities is None else "summed"
        drawn = f"{samples:,} z for each" if self.probabilities is None else f"all {samples:,} z summed"
        facts = (
            ("ELBO", f"{format_error(self.value.item(), self.standard_error)} {self.unit}"),
            ("reconstruction", format_error(self.reconstruction.item(), self.reconstruction_error)),
            ("KL", f"{format_error(self.kl.item(), self.kl_error)}, {how}"),
        )
        return Report(f"{self.mean_of(examples)}, {drawn}", [Facts(facts)], self.json())

    def __repr__(self) -> str:
        return f"<ELBO {format_error(self.value.item(), self.standard_error)} {self.unit}>"


def elbo(
    x: Tensor,
    posterior: Any,
    decode: Decode,
    prior: Any = None,
    *,
    samples: int | None = None,
    kl: str = "auto",
    beta: float = 1.0,
    free_bits: float = 0.0,
    unit: str = "nats",
    generator: torch.Generator | None = None,
) -> ELBO:
    """E_q[log p(x|z)] − KL(q(z|x) ‖ p(z)), a lower bound of log p(x), with both terms by name.

    x [batch, ...]; `posterior` has one distribution for each example, as Gaussian(mean [batch, latent],
    log_variance=…); `decode` turns z [samples, batch, latent] into the distribution of x, whose draws are
    [samples, *x.shape]; without `prior` it is the standard normal. All may come from torch.distributions.

    Sums run over the pixels of an example and over its latents, means over the batch and the samples of z.
    Without `samples`, all z of a Categorical or Bernoulli posterior are summed, exactly, where an example has
    at most 4,096 of them; else one z is drawn.
    unit="bits/dim" divides by log 2 and by the numbers in an example; papers print its negative.
    `beta` and `free_bits` change the loss alone: −reconstruction + beta · Σ_j max(free_bits, mean KL_j), with
    the mean over the batch, KL_j that of latent j, and free_bits in nats a latent.

    >>> from lattend.study.generative import Bernoulli, Gaussian
    >>> x, q = torch.ones(1, 2), Gaussian([[0.0]], 1)
    >>> elbo(x, q, lambda z: Bernoulli(torch.zeros(*z.shape[:2], 2)))  # 2 log ½ − 0
    <ELBO −1.3863 nats>
    """
    check_data(x)
    choice("unit", unit, UNITS)
    beta, free_bits = real("beta", beta), real("free_bits", free_bits)
    q, p = pair(x, posterior, prior)
    every = every_z(q) if samples is None and kl != "sample" else None
    z = q.sample(count("samples", 1 if samples is None else samples), generator) if every is None else every
    parts = None if choice("kl", kl, divergence.WAYS) == "sample" else divergence.closed(q, p)
    if parts is None and kl == "closed":
        raise divergence.no_closed_form(q, p)
    known = parts is not None and q.reparameterised
    log_q = torch.zeros(z.shape[:2], device=z.device) if known else log_prob("posterior", q, z)
    probabilities = None if every is None else log_q.exp()
    carried = q.reparameterised or every is not None  # gradients flow through z, or probabilities
    likelihoods = divergence.with_gradient(log_likelihood(x, z, decode), log_q, carried)
    if parts is not None:
        divergences = _by_example(parts, x)[None]
    else:
        terms = log_q - log_prob("prior", p, z)
        sampled = divergence.with_gradient(terms, log_q, carried)
        divergences = sampled if probabilities is None else _expected(sampled, probabilities)[None]
    penalty = _freed(parts, q, free_bits) if free_bits else divergences.mean()
    closed = parts is not None
    return ELBO(
        likelihoods, divergences, beta * penalty, closed, probabilities, dimensions=x[0].numel(), unit=unit
    )


def _expected(values: Tensor, probabilities: Tensor | None) -> Tensor:
    """The mean over samples [samples, batch]; with probabilities the sum over all z, where 0 · −∞ is 0."""
    if probabilities is None:
        return values.mean(0)
    return (probabilities * values.masked_fill(probabilities.detach() == 0, 0)).sum(0)


def _by_example(parts: Tensor, x: Tensor) -> Tensor:
    """Divergences in closed form, summed to [batch]."""
    if not parts.ndim or len(parts) != len(x):
        raise TensorError(
            f"x has {len(x)} examples and the KL shape {tuple(parts.shape)}; "
            "posterior and prior have the batch along their first axis, or the prior none"
        )
    return divergence.summed(parts, 1)


def _freed(parts: Tensor | None, q: Distribution, free_bits: float) -> Tensor:
    """Σ_j max(free_bits, KL_j), each KL_j the mean over the batch."""
    if parts is None or parts.shape != q.shape:
        raise DomainError(
            "free_bits are given to each latent, so the KL must be in closed form for each: take a diagonal "
            "Gaussian posterior and prior, or leave free_bits out"
        )
    return parts.mean(0).clamp(min=free_bits).sum()


MOST_VALUES = 4096  # of z, all its numbers together; beyond them z is drawn


def every_z(q: Distribution) -> Tensor | None:
    """All z of discrete posteriors [values, batch, ...]; None where there are too many, or q is continuous.

    >>> every_z(Categorical(torch.zeros(1, 2, 2)))[:, 0].tolist()  # two numbers, each 0 or 1
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    if not isinstance(q, Bernoulli | Categorical):
        return None
    classes = q.classes if isinstance(q, Categorical) else 2
    numbers = q.shape[1:].numel()
    if classes**numbers > MOST_VALUES:
        return None
    each = torch.arange(classes, device=q.logits.device)
    values = torch.cartesian_prod(*[each] * numbers).reshape(-1, 1, *q.shape[1:])
    kind = values.dtype if isinstance(q, Categorical) else q.logits.dtype
    return values.to(kind).expand(-1, *q.shape)
