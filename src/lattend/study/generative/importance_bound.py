"""importance: the bound of k samples, E[log (1/k) Σ w], which rises to log p(x) with k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lattend.report.numbers import format_error, format_fixed
from lattend.report.report import Report
from lattend.report.table import Facts
from lattend.study.generative.bound import UNITS, Decode, EvidenceBound, log_likelihood, log_prob, pair
from lattend.study.generative.checks import check_data, choice, count
from lattend.study.generative.distributions import Distribution
from lattend.study.generative.divergence import score
from lattend.wording import many


@dataclass(frozen=True, eq=False)
class Importance(EvidenceBound):
    """A lower bound of log p(x) from k weighted samples, mean over the batch and over independent repeats.

    `value` and `loss` carry gradients; `loss` is in nats, all else in `unit`.
    """

    log_weights: Tensor  # log p(x|z) + log p(z) − log q(z), [samples, k, batch], nats
    bounds: Tensor  # log of the mean weight, [samples, batch], nats

    @property
    def k(self) -> int:
        """How many weighted samples each bound has."""
        return self.log_weights.shape[1]

    @property
    def values(self) -> Tensor:
        """The bound of each example, [batch]."""
        return self.bounds.mean(0) * self.factor

    @property
    def value(self) -> Tensor:
        """The bound, mean over the batch."""
        return self.values.mean()

    @property
    def loss(self) -> Tensor:
        """The loss of training: −value, in nats."""
        return -self.bounds.mean()

    @property
    def standard_error(self) -> float | None:
        """The standard error of value for this batch, from the repeats; None when k = samples = 1.

        When samples = 1 it comes from the spread of the weights: the variance of the log of their mean is
        about (Σ w² / (Σ w)² − 1/k) · k / (k − 1), too small where few weights count.
        """
        return self.error_of(self.bounds) if len(self.bounds) > 1 else self._from_weights()

    def _from_weights(self) -> float | None:
        if self.k == 1:
            return None
        logs = self.log_weights[0].detach().double()
        shares = ((2 * logs).logsumexp(0) - 2 * logs.logsumexp(0)).exp()
        variances = (shares - 1 / self.k).clamp(min=0) * self.k / (self.k - 1)
        return math.sqrt(variances.sum().item()) / self.bounds.shape[1] * self.factor

    @property
    def effective_sample_size(self) -> float:
        """How many of the k weights count: the mean of (Σ w)² / Σ w², from 1 to k, or 0 where all w are 0.

        Near 1, one weight is nearly the whole sum: log p(x) is then likely to be far above the bound.
        """
        logs = self.log_weights.detach().double()
        counted = (2 * logs.logsumexp(1) - (2 * logs).logsumexp(1)).exp()
        return counted.masked_fill(logs.amax(1) == -torch.inf, 0).mean().item()

    def json(self) -> dict[str, Any]:
        """The numbers as plain data."""
        return {
            "bound": self.value.item(),
            "k": self.k,
            "unit": self.unit,
            "standard_error": self.standard_error,
            "population_error": self.population_error,
            "effective_sample_size": self.effective_sample_size,
            "examples": self.bounds.shape[1],
            "samples": len(self.bounds),
            "dimensions": self.dimensions,
        }

    def report(self) -> Report:
        """The bound, and how many of its weights count."""
        repeats, examples = self.bounds.shape
        bound = f"{format_error(self.value.item(), self.standard_error)} {self.unit}, k = {self.k:,}"
        effective = f"{format_fixed(self.effective_sample_size, 1)} of {many(self.k, 'weight')}"
        facts = (("bound", bound), ("effective sample size", effective))
        return Report(f"{self.mean_of(examples)}, {many(repeats, 'time')}", [Facts(facts)], self.json())

    def __repr__(self) -> str:
        return f"<Importance {format_error(self.value.item(), self.standard_error)} {self.unit}, k={self.k}>"


def importance(
    x: Tensor,
    posterior: Any,
    decode: Decode,
    prior: Any = None,
    *,
    k: int = 64,
    samples: int = 1,
    unit: str = "nats",
    at_once: int | None = None,
    generator: torch.Generator | None = None,
) -> Importance:
    """E[log (1/k) Σᵢ w(zᵢ)], w = p(x|z) p(z) / q(z|x), with zᵢ from q: the ELBO at k = 1, then tighter.

    The bound of Burda, Grosse and Salakhutdinov (2016). The arguments are those of `elbo`. The whole is
    estimated `samples` times, whose spread gives the standard error. `at_once` draws and decodes so many z
    at a time, which saves memory; another `at_once` draws other z from the same generator.

    >>> from lattend.study.generative import Bernoulli, Gaussian
    >>> x, q = torch.ones(1, 2), Gaussian([[0.0]], 1)
    >>> importance(x, q, lambda z: Bernoulli(torch.zeros(*z.shape[:2], 2)), k=8)  # every w is ¼
    <Importance −1.3863 nats, k=8>
    """
    check_data(x)
    choice("unit", unit, UNITS)
    k, samples = count("k", k), count("samples", samples)
    total = k * samples
    part = total if at_once is None else count("at_once", at_once)
    q, p = pair(x, posterior, prior)
    parts = [
        _log_weights(x, q, p, decode, q.sample(min(part, total - done), generator))
        for done in range(0, total, part)
    ]
    log_w, log_q = (torch.cat(kind).unflatten(0, (samples, k)) for kind in zip(*parts, strict=True))
    bounds = log_w.logsumexp(1) - math.log(k)
    if not q.reparameterised and log_q.requires_grad:  # ∇E[f] = E[∇f + f Σ ∇log q(zᵢ)]
        bounds = bounds + score(bounds.detach(), log_q.sum(1))
    return Importance(log_w, bounds, dimensions=x[0].numel(), unit=unit)


def _log_weights(
    x: Tensor, q: Distribution, p: Distribution, decode: Decode, z: Tensor
) -> tuple[Tensor, Tensor]:
    log_q = log_prob("posterior", q, z)
    return log_likelihood(x, z, decode) + log_prob("prior", p, z) - log_q, log_q
