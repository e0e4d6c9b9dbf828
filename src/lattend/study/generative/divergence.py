"""kl: KL(q ‖ p) in closed form where there is one, from samples with its standard error otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch import distributions as td

from lattend.errors import DomainError, NamingError, TensorError
from lattend.report.numbers import format_error
from lattend.report.shown import Shown
from lattend.study.generative.checks import choice, count, together, wide
from lattend.study.generative.distributions import Bernoulli, Categorical, Distribution, Gaussian

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
    """The error for a closed form that does not exist."""
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


class Foreign:
    """A torch.distributions object with the methods of ours."""

    def __init__(self, inner: td.Distribution) -> None:
        self.inner = inner
        self.reparameterised = bool(inner.has_rsample)

    @property
    def shape(self) -> torch.Size:
        """The shape of one draw."""
        return self.inner.batch_shape + self.inner.event_shape

    def log_prob(self, x: Tensor) -> Tensor:
        """The log-probability by the object itself, with its errors as ours."""
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
