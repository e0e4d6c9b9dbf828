"""kl: KL(q ‖ p) in closed form where there is one, from samples with its standard error otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch import distributions as td

from lattend.errors import DomainError, TensorError
from lattend.report.numbers import format_error
from lattend.report.shown import Shown
from lattend.study.generative.checks import choice, count, together, wide
from lattend.study.generative.distributions import Bernoulli, Categorical, Distribution, Gaussian
from lattend.study.generative.from_torch import Foreign, as_torch, event_axes, log_odds, read

WAYS = ("auto", "closed", "sample")


@dataclass(frozen=True, eq=False)
class Divergence(Shown):
    """KL(q ‖ p) in nats for each of a batch, and its standard error, which is 0 in closed form."""

    value: Tensor
    standard_error: Tensor
    closed: bool

    def __repr__(self) -> str:
        how = "closed form" if self.closed else "from samples"
        if self.value.ndim:
            return f"<KL of shape {tuple(self.value.shape)}, {how}>"
        return f"<KL {format_error(self.value.item(), self.standard_error.item())} nats, {how}>"


def kl(
    q: Any,
    p: Any,
    how: str = "auto",
    *,
    samples: int = 1024,
    generator: torch.Generator | None = None,
) -> Divergence:
    """KL(q ‖ p) = E_q[log q(z) − log p(z)], in nats: vectors as a whole, single numbers each on their own.

    Of torch.distributions, as there, what is summed are the axes of an event.

    `how` is "closed", "sample", or "auto", which samples only where there is no closed form. Gradients flow
    to both.

    >>> kl(Gaussian([1.0, 2.0], 1), Gaussian([0.0, 0.0], 1))  # (1² + 2²) / 2
    <KL 2.5000 nats, closed form>
    """
    event = max(event_axes(q), event_axes(p))
    first, second = read("q", q, drawn=True, vectors=event > 0), read("p", p, vectors=event > 0)
    shape = together("q", first.shape, "p", second.shape)
    parts = None if choice("how", how, WAYS) == "sample" else closed(first, second)
    if parts is not None:
        value = summed(parts, len(shape) - event)
        return Divergence(value, torch.zeros_like(value), closed=True)
    if how == "closed":
        raise no_closed_form(first, second)
    samples = count("samples", samples)
    z = _draws(first, shape, samples, generator)
    log_q, log_p = first.log_prob(z), second.log_prob(z)
    axes = min(log_q.ndim, log_p.ndim, 1 + len(shape) - event)  # one of your own may sum more than its axes
    log_q, log_p = summed(log_q, axes), summed(log_p, axes)
    terms = with_gradient(log_q - log_p, log_q, first.reparameterised)
    error = terms.detach().std(0) / samples**0.5 if samples > 1 else torch.full_like(terms[0], torch.nan)
    return Divergence(terms.mean(0), error.detach(), closed=False)


def closed(q: Distribution, p: Distribution) -> Tensor | None:
    """The divergence in closed form; None where there is none.

    There is one number for each component, or a single one for a vector whose components are not independent.

    >>> closed(Gaussian([1.0, 2.0], 1), Gaussian([0.0, 0.0], 1))
    tensor([0.5000, 2.0000])
    """
    match q, p:
        case Gaussian(), Gaussian():
            together("q", q.shape, "p", p.shape)
            if q.shape[-1] != p.shape[-1]:
                raise TensorError(f"vectors of q have {q.shape[-1]} numbers and those of p {p.shape[-1]}")
            return _diagonal(q, p) if q.diagonal and p.diagonal else _full(q, p)
        case Bernoulli(), Bernoulli():
            together("q", q.shape, "p", p.shape)
            return _classes(_both(q), _both(p))
        case Categorical(), Categorical():
            together("q", q.shape, "p", p.shape)
            if q.classes != p.classes:
                raise TensorError(f"q has {q.classes} classes and p {p.classes}; give both the same")
            return _classes(q.logits.log_softmax(-1), p.logits.log_softmax(-1))
        case Foreign(inner=td.Binomial() as mine), Foreign(inner=td.Binomial() as other) if bool(
            (mine.total_count == other.total_count).all()
        ):  # as so many Bernoullis; torch clamps the chances of these two
            return mine.total_count * _classes(*(_both(Bernoulli(log_odds(one))) for one in (mine, other)))
        case Foreign(inner=td.Geometric() as mine), Foreign(inner=td.Geometric() as other):
            return _classes(*(_both(Bernoulli(log_odds(one))) for one in (mine, other))) / mine.probs
        case _:
            return _of_torch(q, p)


def with_gradient(value: Tensor, log_q: Tensor, reparameterised: bool) -> Tensor:
    """The values [samples, ...] with the gradient that samples alone do not carry.

    Where z does not depend on q's parameters smoothly, ∇E_q[f] = E_q[∇f + f ∇log q]; from each f the mean
    of the other samples is taken off, which changes no mean and makes the gradient less noisy. An f that is
    infinite has no gradient, and its example stays infinite.
    """
    if reparameterised or not log_q.requires_grad:
        return value
    many, fixed = len(value), value.detach()
    others = (fixed.sum(0) - fixed) / (many - 1) if many > 1 else 0
    return value + score(fixed - others, log_q)


def score(f: Tensor, log_q: Tensor) -> Tensor:
    """0, with the gradient f ∇log q where f is finite."""
    return f.nan_to_num(0, 0, 0) * (log_q - log_q.detach())


def summed(values: Tensor, axes: int) -> Tensor:
    """The sum over all axes but the first `axes`, in float32 or wider."""
    return wide(values).flatten(axes).sum(-1) if values.ndim > axes else wide(values)


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
    shape, d = together("q", q.shape, "p", p.shape), q.shape[-1]
    wider = torch.promote_types(q.mean.dtype, p.mean.dtype)
    below, above = (one.cholesky.expand(*shape, d).to(wider) for one in (p, q))
    ratio = torch.linalg.solve_triangular(below, above, upper=False)
    trace = ratio.square().sum((-1, -2))
    return (trace + p.whiten(q.mean).square().sum(-1) - d + p.log_det - q.log_det) / 2


def _classes(log_q: Tensor, log_p: Tensor) -> Tensor:
    """Σ q (log q − log p) over the last axis.

    A class that q never takes adds nothing, even where p never takes it; one that p alone never takes makes
    it infinite, however seldom q does.
    """
    log_q, log_p = torch.broadcast_tensors(log_q, log_p)
    never = log_q.detach() == -torch.inf
    alone = ~never & (log_p.detach() == -torch.inf)
    log_q, log_p = log_q.masked_fill(never, 0), log_p.masked_fill(never | alone, 0)
    return (log_q.exp() * (log_q - log_p)).masked_fill(never, 0).masked_fill(alone, torch.inf).sum(-1)


def _both(bernoulli: Bernoulli) -> Tensor:
    """Log-probabilities of a 1 and a 0."""
    return torch.nn.functional.logsigmoid(torch.stack((bernoulli.logits, -bernoulli.logits), -1))


def _of_torch(q: Distribution, p: Distribution) -> Tensor | None:
    first, second = as_torch(q), as_torch(p)
    if first is None or second is None:
        return None
    try:
        return td.kl_divergence(first, second)
    except NotImplementedError:
        return None
    except RuntimeError as error:
        raise TensorError(f"KL({_word(q)} ‖ {_word(p)}): {error}") from None


def _draws(q: Distribution, shape: torch.Size, samples: int, generator: torch.Generator | None) -> Tensor:
    """Draws [samples, *shape], where q may have fewer axes than the shape."""
    more = shape[: len(shape) - len(q.shape)]
    z = q.sample(samples * math.prod(more), generator)
    return z.unflatten(0, (samples, *more)).expand(samples, *shape)


def _word(distribution: Distribution) -> str:
    return type(distribution.inner if isinstance(distribution, Foreign) else distribution).__name__
