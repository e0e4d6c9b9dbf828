"""kl: KL(q ‖ p) in closed form where there is one, from samples with its standard error otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch import distributions as td

from lattend.errors import DomainError, NamingError, TensorError
from lattend.generative.checks import count, together
from lattend.generative.distributions import Bernoulli, Categorical, Distribution, Gaussian
from lattend.generative.foreign import Foreign, as_torch, read

WAYS = ("auto", "closed", "sample")


@dataclass(frozen=True, eq=False)
class Divergence:
    """KL(q ‖ p) in nats for each of a batch, and its standard error, which is 0 in closed form."""

    value: Tensor
    standard_error: Tensor
    closed: bool

    def __repr__(self) -> str:
        how = "closed form" if self.closed else "from samples"
        if self.value.ndim:
            return f"<KL of shape {tuple(self.value.shape)}, {how}>"
        error = "" if self.closed else f" ± {self.standard_error.item():.2g}"
        return f"<KL {self.value.item():.4f}{error} nats, {how}>"


def kl(
    q: Any,
    p: Any,
    how: str = "auto",
    *,
    samples: int = 1024,
    generator: torch.Generator | None = None,
) -> Divergence:
    """KL(q ‖ p) = E_q[log q(z) − log p(z)], in nats: vectors as a whole, single numbers each on their own.

    `how` is "closed", "sample", or "auto", which samples only where there is no closed form. Gradients flow
    to both.

    >>> kl(Gaussian([1.0, 2.0], 1), Gaussian([0.0, 0.0], 1))  # (1² + 2²) / 2
    <KL 2.5000 nats, closed form>
    """
    first, second = read("q", q, drawn=True), read("p", p)
    parts = None if check_way("how", how) == "sample" else closed(first, second)
    if parts is not None:
        value = parts.sum(-1) if isinstance(first, Gaussian) or isinstance(second, Gaussian) else parts
        return Divergence(value, torch.zeros_like(value), closed=True)
    if how == "closed":
        raise no_closed_form(first, second)
    return _sampled(first, second, count("samples", samples), generator)


def closed(q: Distribution, p: Distribution) -> Tensor | None:
    """The divergence in closed form; None where there is none.

    Where q or p is a Gaussian the last axis has one number for each component, or a single one for the whole
    vector where the components are not independent.

    >>> closed(Gaussian([1.0, 2.0], 1), Gaussian([0.0, 0.0], 1))
    tensor([0.5000, 2.0000])
    """
    match q, p:
        case Gaussian(), Gaussian():
            together("q", q.mean, "p", p.mean)
            if q.shape[-1] != p.shape[-1]:
                raise TensorError(f"vectors of q have {q.shape[-1]} numbers and those of p {p.shape[-1]}")
            return _diagonal(q, p) if q.diagonal and p.diagonal else _full(q, p)
        case Bernoulli(), Bernoulli():
            together("q", q.logits, "p", p.logits)
            return sum(
                (sign * q.logits).sigmoid() * (_log_sigmoid(sign * q.logits) - _log_sigmoid(sign * p.logits))
                for sign in (1, -1)
            )  # pyright: ignore[reportReturnType]
        case Categorical(), Categorical():
            together("q", q.logits, "p", p.logits)
            return _classes(q, p)
        case _:
            return _of_torch(q, p)


def with_gradient(value: Tensor, log_q: Tensor, reparameterised: bool) -> Tensor:
    """The values [samples, ...] with the gradient that samples alone do not carry.

    Where z does not depend on q's parameters smoothly, ∇E_q[f] = E_q[∇f + f ∇log q]; from each f the mean
    of the other samples is taken off, which changes no mean and makes the gradient less noisy.
    """
    if reparameterised or not log_q.requires_grad:
        return value
    many, fixed = len(value), value.detach()
    others = (fixed.sum(0) - fixed) / (many - 1) if many > 1 else 0
    return value + (fixed - others) * (log_q - log_q.detach())


def summed(values: Tensor, axes: int) -> Tensor:
    """The sum over all axes but the first `axes`."""
    return values.flatten(axes).sum(-1) if values.ndim > axes else values


def check_way(name: str, way: str) -> str:
    """One of the ways to get a divergence."""
    if way not in WAYS:
        raise NamingError(f"{name} is one of {', '.join(WAYS)}, not {way!r}")
    return way


def no_closed_form(q: Distribution, p: Distribution) -> DomainError:
    """What is said when a closed form was asked for and there is none."""
    return DomainError(
        f'KL({_word(q)} ‖ {_word(p)}) has no closed form here; take "auto" or "sample", '
        "which draws and gives a standard error"
    )


def _diagonal(q: Gaussian, p: Gaussian) -> Tensor:
    apart = q.log_variance - p.log_variance
    moved = (q.mean - p.mean).square() * (-p.log_variance).exp()
    return (apart.expm1() - apart + moved) / 2


def _full(q: Gaussian, p: Gaussian) -> Tensor:
    """½ (tr(P⁻¹Q) + (m_q − m_p)ᵀ P⁻¹ (m_q − m_p) − d + log det P − log det Q), by Cholesky factors."""
    batch = torch.broadcast_shapes(q.shape[:-1], p.shape[:-1])
    d = q.shape[-1]
    ratio = torch.linalg.solve_triangular(
        p.cholesky.expand(*batch, d, d), q.cholesky.expand(*batch, d, d), upper=False
    )
    trace = ratio.square().sum((-1, -2))
    whole = (trace + p.whiten(q.mean).square().sum(-1) - d + p.log_det - q.log_det) / 2
    return whole[..., None]


def _classes(q: Categorical, p: Categorical) -> Tensor:
    """Σ q (log q − log p); a class that q never takes adds nothing, even where p never takes it."""
    mine, other = q.logits.log_softmax(-1), p.logits.log_softmax(-1)
    never = mine.detach() == -torch.inf
    mine, other = mine.masked_fill(never, 0), other.masked_fill(never, 0)
    return (mine.exp().masked_fill(never, 0) * (mine - other)).sum(-1)


def _of_torch(q: Distribution, p: Distribution) -> Tensor | None:
    first, second = as_torch(q), as_torch(p)
    if first is None or second is None:
        return None
    try:
        found = td.kl_divergence(first, second)
    except NotImplementedError:
        return None
    except RuntimeError as error:
        raise TensorError(f"KL({_word(q)} ‖ {_word(p)}): {error}") from None
    return found[..., None] if first.event_shape else found


def _sampled(q: Distribution, p: Distribution, samples: int, generator: torch.Generator | None) -> Divergence:
    z = q.sample(samples, generator)
    log_q, log_p = q.log_prob(z), p.log_prob(z)
    axes = min(log_q.ndim, log_p.ndim)  # one may have a number for each component, the other one for all
    log_q, log_p = summed(log_q, axes), summed(log_p, axes)
    terms = with_gradient(log_q - log_p, log_q, q.reparameterised)
    error = terms.detach().std(0) / samples**0.5 if samples > 1 else torch.full_like(terms[0], torch.nan)
    return Divergence(terms.mean(0), error.detach(), closed=False)


def _log_sigmoid(logits: Tensor) -> Tensor:
    return torch.nn.functional.logsigmoid(logits)


def _word(given: Distribution) -> str:
    return type(given.inner if isinstance(given, Foreign) else given).__name__
