"""Gaussian, Bernoulli, Categorical: what posteriors, priors and decoders are made of."""

from __future__ import annotations

import math
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from lattend.errors import DomainError, NamingError, TensorError
from lattend.report.numbers import significant
from lattend.study.generative.checks import count, finite, floating, real_tensor, require, together

Given = Tensor | float | list[Any]
LOG_2PI = math.log(2 * math.pi)


class Distribution(Protocol):
    """The protocol of posteriors, priors and what decoders give, for `elbo` and `importance`."""

    reparameterised: bool  # whether gradients flow through samples

    @property
    def shape(self) -> torch.Size:
        """The shape of one draw."""
        ...

    def log_prob(self, x: Tensor) -> Tensor: ...

    def sample(self, k: int | None = None, generator: torch.Generator | None = None) -> Tensor: ...


class Gaussian:
    """A Gaussian on vectors, the last axis; the axes before it are a batch of them.

    Diagonal with `variance` or `log_variance`, a number or one for each component; full with `covariance`
    or `cholesky` [..., d, d], where covariance = cholesky · choleskyᵀ. Make a new one when they have changed.
    Numbers of 16 bits are computed with in float32; draws have 16 bits again.

    >>> Gaussian([0.0, 0.0], variance=1).log_prob(torch.zeros(2))  # 2 · −½ log 2π
    tensor(-1.8379)
    """

    reparameterised = True

    def __init__(
        self,
        mean: Given,
        variance: Given | None = None,
        *,
        log_variance: Given | None = None,
        covariance: Given | None = None,
        cholesky: Given | None = None,
    ) -> None:
        spreads = {
            "variance": variance,
            "log_variance": log_variance,
            "covariance": covariance,
            "cholesky": cholesky,
        }
        spread_names = [name for name, spread in spreads.items() if spread is not None]
        if len(spread_names) != 1:
            names = " and ".join(spread_names) or "none"
            raise NamingError(f"a Gaussian takes one of {', '.join(spreads)}, got {names}")
        self.mean = floating("mean", mean)
        if not self.mean.ndim:
            raise TensorError("mean is a vector, or vectors along the last axis; got a single number")
        spread = floating(spread_names[0], spreads[spread_names[0]], self.mean)
        wider = torch.promote_types(self.mean.dtype, spread.dtype)
        self.mean, spread = finite("mean", self.mean).to(wider), finite(spread_names[0], spread).to(wider)
        self._drawn = _type(mean, spread)
        self._log_variance: Tensor | None = None
        self._cholesky: Tensor | None = None
        if spread_names[0] in ("variance", "log_variance"):
            self._diagonal(spread_names[0], spread)
        else:
            self._full(spread_names[0], spread)

    def _diagonal(self, name: str, spread: Tensor) -> None:
        shape = together("mean", self.mean.shape, name, spread.shape)
        if name == "variance":
            require(spread > 0, spread, "a variance must be above 0", "log_variance= takes any number")
            spread = spread.log()
        self.mean, self._log_variance = self.mean.expand(shape), spread.expand(shape)

    def _full(self, name: str, spread: Tensor) -> None:
        d = self.mean.shape[-1]
        if spread.ndim < 2 or spread.shape[-2:] != (d, d):
            raise TensorError(
                f"a {name} for vectors of {d} is [..., {d}, {d}], got shape {tuple(spread.shape)}"
            )
        shape = together("mean", self.mean.shape, f"{name} without its last axis", spread.shape[:-1])
        self._cholesky = lower(spread) if name == "covariance" else triangular(spread)
        self.mean, self._cholesky = self.mean.expand(shape), self._cholesky.expand(*shape, d)

    @property
    def shape(self) -> torch.Size:
        """The shape of one draw."""
        return self.mean.shape

    @property
    def diagonal(self) -> bool:
        """Whether the components are independent."""
        return self._cholesky is None

    @property
    def log_variance(self) -> Tensor:
        """Log of the variance of each component."""
        return self.variance.log() if self._log_variance is None else self._log_variance

    @property
    def variance(self) -> Tensor:
        """The variance of each component."""
        return self.log_variance.exp() if self._cholesky is None else self._cholesky.square().sum(-1)

    @property
    def cholesky(self) -> Tensor:
        """The lower triangular L with covariance L · Lᵀ."""
        return (self.log_variance / 2).exp().diag_embed() if self._cholesky is None else self._cholesky

    @property
    def covariance(self) -> Tensor:
        """The covariance matrix, [..., D, D]."""
        return self.cholesky @ self.cholesky.mT

    @property
    def log_det(self) -> Tensor:
        """Log of the determinant of the covariance."""
        if self._cholesky is None:
            return self.log_variance.sum(-1)
        return 2 * self._cholesky.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def whiten(self, x: Tensor) -> Tensor:
        """L⁻¹ (x − mean): standard normal where x has this distribution."""
        if self._cholesky is None:
            return (x - self.mean) * (-self.log_variance / 2).exp()
        off = (x - self.mean)[..., None]
        return torch.linalg.solve_triangular(self._cholesky.to(off.dtype), off, upper=False)[..., 0]

    def log_prob(self, x: Tensor) -> Tensor:
        """The log-density of vectors x [..., d], summed over the last axis."""
        _fits(x, self.shape, vectors=True)
        require(x.isfinite(), x, "data of a Gaussian must be finite", "remove what is missing")
        white = self.whiten(x)
        return -(white.square().sum(-1) + self.log_det + self.shape[-1] * LOG_2PI) / 2

    def sample(self, k: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        """K draws [k, ..., d], or one [..., d], through which gradients flow: mean + L · noise."""
        shape = self.shape if k is None else (count("k", k), *self.shape)
        noise = torch.randn(shape, generator=generator, dtype=self.mean.dtype, device=self.mean.device)
        if self._cholesky is None:
            return (self.mean + (self.log_variance / 2).exp() * noise).to(self._drawn)
        return (self.mean + (self._cholesky @ noise[..., None])[..., 0]).to(self._drawn)

    def entropy(self) -> Tensor:
        """−E[log q(z)], in nats."""
        return (self.log_det + self.shape[-1] * (1 + LOG_2PI)) / 2

    def __repr__(self) -> str:
        return f"Gaussian({'diagonal' if self.diagonal else 'full'}, shape={tuple(self.shape)})"


class Bernoulli:
    """Numbers that are 0 or 1, each on its own, with p(1) = sigmoid(logits); ±inf is always 1, or never.

    With `soft=True` x may lie between: x log p + (1−x) log(1−p), the mean of log p(X) over X ~ Bernoulli(x),
    which is a bound for the binarised data and no density of x.

    >>> Bernoulli(torch.zeros(3)).log_prob(torch.tensor([0.0, 1.0, 1.0]))  # log ½ each
    tensor([-0.6931, -0.6931, -0.6931])
    """

    reparameterised = False

    def __init__(self, logits: Given, *, soft: bool = False) -> None:
        self.logits = floating("logits", logits)
        numbers = ~self.logits.isnan()
        require(numbers, self.logits, "logits must be numbers or ±inf", "look where they came from")
        self.soft = soft
        self._drawn = _type(logits, self.logits)

    @property
    def shape(self) -> torch.Size:
        """The shape of one draw."""
        return self.logits.shape

    @property
    def mean(self) -> Tensor:
        """The probability of a 1."""
        return self.logits.sigmoid()

    def log_prob(self, x: Tensor) -> Tensor:
        """The log-probability of each number."""
        _fits(x, self.shape)
        if self.soft:
            require(
                (x >= 0) & (x <= 1),
                x,
                "data of a soft Bernoulli lie between 0 and 1",
                "divide by their largest",
            )
        else:
            require(
                (x == 0) | (x == 1),
                x,
                "data of a Bernoulli are 0 or 1",
                "draw them, torch.bernoulli(x), or take Bernoulli(logits, soft=True) for 0 to 1",
            )
        x = x.to(self.logits.dtype)
        one, zero = (functional.logsigmoid(sign * self.logits) for sign in (1, -1))
        return _times(x, one) + _times(1 - x, zero)

    def sample(self, k: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        """K draws [k, ...], or one; no gradient flows through them."""
        chances = self.mean if k is None else self.mean.expand(count("k", k), *self.shape)
        return torch.bernoulli(chances.detach(), generator=generator).to(self._drawn)

    def __repr__(self) -> str:
        return f"Bernoulli(shape={tuple(self.shape)})"


class Categorical:
    """Whole numbers from 0 on, each on its own, with probabilities softmax(logits) [..., classes].

    >>> Categorical(torch.zeros(3, 4)).log_prob(torch.tensor([0, 1, 3]))  # log ¼ each
    tensor([-1.3863, -1.3863, -1.3863])
    """

    reparameterised = False

    def __init__(self, logits: Given) -> None:
        self.logits = floating("logits", logits)
        if not self.logits.ndim or not self.logits.shape[-1]:
            raise TensorError(f"logits are [..., classes], got shape {tuple(self.logits.shape)}")
        above = "logits must be finite, or −inf for what never comes"
        require(self.logits < torch.inf, self.logits, above, "look where they came from")
        most = self.logits.detach().amax(-1)
        require(most > -torch.inf, most, "one of the logits for a number must be finite", "give it a class")

    @property
    def classes(self) -> int:
        """How many values a number can take."""
        return self.logits.shape[-1]

    @property
    def shape(self) -> torch.Size:
        """The shape of one draw."""
        return self.logits.shape[:-1]

    @property
    def probabilities(self) -> Tensor:
        """softmax(logits), [..., classes]."""
        return self.logits.softmax(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        """The log-probability of each number."""
        _fits(x, self.shape)
        if x.is_floating_point() or x.dtype == torch.bool:
            raise TensorError(f"data of a Categorical are whole numbers, got {x.dtype}; cast them: x.long()")
        require(
            (x >= 0) & (x < self.classes),
            x,
            f"data of a Categorical with {self.classes} classes are 0 to {self.classes - 1}",
            "give it as many classes as the data have",
        )
        scores = self.logits.log_softmax(-1)
        shape = together("x", x.shape, "draws", self.shape)
        return scores.expand(*shape, -1).gather(-1, x.long().expand(shape)[..., None])[..., 0]

    def sample(self, k: int | None = None, generator: torch.Generator | None = None) -> Tensor:
        """K draws [k, ...], or one; no gradient flows through them."""
        many = 1 if k is None else count("k", k)
        rows = self.probabilities.detach().reshape(-1, self.classes)
        drawn = torch.multinomial(rows, many, replacement=True, generator=generator)
        drawn = drawn.T.reshape(many, *self.shape)
        return drawn[0] if k is None else drawn

    def __repr__(self) -> str:
        return f"Categorical({self.classes} classes, shape={tuple(self.shape)})"


def lower(covariance: Tensor) -> Tensor:
    """The Cholesky factor of covariances [..., d, d], or an error that names the first without one."""
    matrix = covariance.detach()
    apart = (matrix - matrix.mT).abs()
    allowed = 8 * torch.finfo(matrix.dtype).eps * matrix.abs().amax((-1, -2), keepdim=True)
    require(apart <= allowed, matrix, "a covariance must equal its transpose", "take (S + S.mT) / 2")
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if bool(failed.any()):
        place = failed.nonzero()[0].tolist()
        least = torch.linalg.eigvalsh(matrix[tuple(place)])[0].item()
        where = f" at {place}" if place else ""
        raise DomainError(
            f"a covariance must be positive definite, and the least eigenvalue{where} is "
            f"{significant(least, 3)}; add a small multiple of the identity, or give cholesky="
        )
    return factor


def triangular(factor: Tensor) -> Tensor:
    """The factor itself, where it is lower triangular with a positive diagonal."""
    matrix = factor.detach()
    above = matrix.triu(1)
    require(above == 0, matrix, "a Cholesky factor has zeros above its diagonal", "take L.tril()")
    ends = matrix.diagonal(dim1=-2, dim2=-1)
    require(ends > 0, ends, "the diagonal of a Cholesky factor must be above 0", "take its exp() or softplus")
    return factor


def _fits(x: Tensor, shape: torch.Size, vectors: bool = False) -> None:
    """Nothing where x lines up with draws of this shape from the last axis on; 1 stands for any size."""
    pairs = list(zip(reversed(real_tensor("x", x).shape), reversed(shape), strict=False))
    fits = all(wanted in (mine, 1) for mine, wanted in pairs)
    if not fits or (vectors and x.shape[-1:] != shape[-1:]):
        raise TensorError(f"x has shape {tuple(x.shape)}, and draws of this distribution {tuple(shape)}")


def _times(share: Tensor, logs: Tensor) -> Tensor:
    """Shares of logarithms, where 0 · −∞ is 0."""
    return share * logs.masked_fill((share == 0) & (logs == -torch.inf), 0)


def _type(number: Any, held: Tensor) -> torch.dtype:
    """The type of draws: that of the numbers as given, where they are held in a wider one."""
    narrow = isinstance(number, Tensor) and number.dtype in (torch.float16, torch.bfloat16)
    return number.dtype if narrow and held.dtype == torch.float32 else held.dtype
