"""LinearGaussian: the model whose evidence, posterior and ELBO are known exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lattend.errors import DomainError, TensorError
from lattend.report.numbers import format_fixed, format_gap, format_number, significant
from lattend.report.report import Printed, Report
from lattend.report.table import Facts
from lattend.study.generative.checks import count, finite, floating, require, together
from lattend.study.generative.distributions import LOG_2PI, Distribution, Gaussian
from lattend.study.generative.divergence import kl, read
from lattend.wording import many


@dataclass(frozen=True, eq=False)
class Identity(Printed):
    """Both sides of elbo + gap = log_prob for each example, [batch], in nats; each is computed on its own."""

    reconstruction: Tensor  # E_q[log p(x|z)]
    kl: Tensor  # KL(q ‖ prior)
    gap: Tensor  # KL(q ‖ posterior)
    log_prob: Tensor  # log p(x)

    @property
    def elbo(self) -> Tensor:
        return self.reconstruction - self.kl

    @property
    def error(self) -> float:
        """The largest |elbo + gap − log_prob| of the batch: rounding, and nothing else."""
        return (self.elbo + self.gap - self.log_prob).abs().max().item()

    def json(self) -> dict[str, Any]:
        """Means over the batch as plain data."""
        names = ("reconstruction", "kl", "elbo", "gap", "log_prob")
        return {**{name: getattr(self, name).mean().item() for name in names}, "error": self.error}

    def report(self) -> Report:
        """The terms and both sides, means over the batch."""
        data = self.json()
        terms = f"reconstruction {format_fixed(data['reconstruction'], 4)}, KL {format_fixed(data['kl'], 4)}"
        facts = (
            ("ELBO", f"{format_fixed(data['elbo'], 4)} nats: {terms}"),
            ("gap", f"{format_gap(data['gap'])}, the KL of q and the posterior"),
            ("log p(x)", format_fixed(data["log_prob"], 4)),
            ("identity", f"ELBO + gap = log p(x) within {format_number(self.error, 1)}, for each example"),
        )
        return Report(f"mean of {many(self.log_prob.numel(), 'example')}", [Facts(facts)], data)

    def __repr__(self) -> str:
        data = self.json()
        return f"<Identity ELBO {format_fixed(data['elbo'], 4)} + gap {format_gap(data['gap'])} nats>"


class LinearGaussian:
    """x = W z + b + noise with z ~ N(0, I): factor analysis, and probabilistic PCA where the noise is even.

    W [D, latent]; b [D]; `noise` is the variance of the noise, a number or one for each of the D. Here
    log p(x), the posterior and the ELBO of any Gaussian q have closed forms, so that

        ELBO(q) + KL(q ‖ posterior) = log p(x)

    holds to the last digits. Take float64 for that.

    >>> model = LinearGaussian([[1.0]], b=[0.0], noise=1.0)  # x ~ N(0, 1 + 1)
    >>> model.posterior(torch.tensor([[3.0]])).mean  # half of x, as signal and noise are alike
    tensor([[1.5000]])
    """

    def __init__(self, W: Any, b: Any = 0.0, noise: Any = 1.0) -> None:
        self.W = floating("W", W)
        if self.W.ndim != 2 or not self.W.numel():
            raise TensorError(f"W is [D, latent], got shape {tuple(self.W.shape)}")
        finite("W", self.W)
        b, noise = self._each("b", b), self._each("noise", noise)
        require(noise > 0, noise, "noise must be a variance above 0", "take a small one")
        self.b, self.noise = b.expand(len(self.W)), noise.expand(len(self.W))

    def _each(self, name: str, value: Any) -> Tensor:
        """A number, or one for each of the D."""
        numbers = floating(name, value, self.W)
        if numbers.dtype != self.W.dtype:
            raise TensorError(f"{name} is {numbers.dtype} and W {self.W.dtype}; cast one of them")
        if numbers.shape not in ((), (1,), self.W.shape[:1]):
            raise TensorError(
                f"{name} is a number, or one for each of {len(self.W)}; got shape {tuple(numbers.shape)}"
            )
        return finite(name, numbers)

    @classmethod
    def random(
        cls, D: int, latent: int, noise: float = 1.0, generator: torch.Generator | None = None
    ) -> LinearGaussian:
        """A model drawn at random, in float64, with b = 0.

        The columns of W have a part in common, so that latents are correlated once x is seen.
        """
        shapes = (count("D", D), 1), (D, count("latent", latent))
        shared, own = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
        return cls(shared / 2 + own / 3, 0.0, noise)

    @classmethod
    def fit(cls, x: Tensor, latent: int) -> LinearGaussian:
        """The model with even noise under which x [batch, D] is likeliest (Tipping and Bishop 1999).

        With the eigenvalues of the covariance of x in falling order, the noise is the mean of those after
        the first `latent`, and a column of W an eigenvector times √(eigenvalue − noise).
        """
        data = finite("x", floating("x", x), "remove what is missing")
        if data.ndim != 2 or len(data) < 2:
            raise TensorError(f"x is [batch, D] with at least two examples, got shape {tuple(data.shape)}")
        D = data.shape[1]
        if count("latent", latent) >= D:
            raise DomainError(f"latent must be below the {D} numbers of an example, got {latent}")
        values, vectors = torch.linalg.eigh(data.T.cov(correction=0))
        noise = values[: D - latent].mean()
        if noise <= torch.finfo(data.dtype).eps * values[-1]:
            raise DomainError(
                f"x varies in no more than {latent} of {D} directions, so that no variance is left as noise; "
                "give other rows, or fewer latents"
            )
        W = vectors[:, D - latent :].flip(1) * (values[D - latent :].flip(0) - noise).clamp(min=0).sqrt()
        return cls(W, data.mean(0), noise)

    @property
    def prior(self) -> Gaussian:
        """The prior of z: the standard normal."""
        return Gaussian(self.W.new_zeros(self.W.shape[1]), 1)

    @property
    def evidence(self) -> Gaussian:
        """The distribution of x: mean b, covariance W Wᵀ + noise."""
        return Gaussian(self.b, cholesky=self._root(self.W @ self.W.T + self.noise.diag()))

    def decode(self, z: Tensor) -> Gaussian:
        """The distribution of x given z [..., latent]."""
        hidden = floating("z", z, self.W).to(self.W.dtype)
        if hidden.shape[-1:] != self.W.shape[1:]:
            raise TensorError(f"z is [..., {self.W.shape[1]}], got shape {tuple(hidden.shape)}")
        return Gaussian(hidden @ self.W.T + self.b, self.noise)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """N draws of x, [n, D]."""
        return self.decode(self.prior.sample(count("n", n), generator)).sample(generator=generator)

    def log_prob(self, x: Tensor) -> Tensor:
        """Log p(x) of each example, exactly; [batch]."""
        return self.evidence.log_prob(self.read(x))

    @property
    def precision(self) -> Tensor:
        """The precision of the posterior, the same for every x: I + Wᵀ noise⁻¹ W."""
        eye = torch.eye(self.W.shape[1], dtype=self.W.dtype, device=self.W.device)
        return eye + self.W.T @ (self.W / self.noise[:, None])

    def posterior(self, x: Tensor) -> Gaussian:
        """p(z|x) for each example: a Gaussian whose mean is linear in x, with one covariance for all."""
        pulled = ((self.read(x) - self.b) / self.noise) @ self.W
        root = self._root(self.precision)
        mean = torch.cholesky_solve(pulled[..., None], root)[..., 0]
        covariance = torch.cholesky_inverse(root)
        return Gaussian(mean, cholesky=self._root((covariance + covariance.mT) / 2))

    def mean_field(self, x: Tensor) -> Gaussian:
        """The diagonal q nearest to the posterior: its mean, and 1 / precision as variances.

        No other diagonal q has a higher ELBO.
        """
        return Gaussian(self.posterior(x).mean, 1 / self.precision.diagonal())

    def elbo(self, x: Tensor, posterior: Any) -> Identity:
        """The ELBO of a Gaussian q in closed form, with its gap and log p(x), for each example.

        E_q[log p(x|z)] = log N(x; W m + b, noise) − ½ tr(Wᵀ noise⁻¹ W S), for q = N(m, S).
        """
        data, q = self.read(x), self._posterior(posterior)
        together("x without its last axis", data.shape[:-1], "the posterior", q.shape[:-1])
        mean, covariance = q.mean.to(data), q.covariance.to(data)
        seen = self.precision - torch.eye(len(self.precision), dtype=data.dtype, device=data.device)
        blurred = (seen * covariance).sum((-1, -2))
        off = (data - self.b - mean @ self.W.T).square() / self.noise
        constant = self.noise.log().sum() + len(self.noise) * LOG_2PI
        reconstruction = -(off.sum(-1) + constant + blurred) / 2
        gap = kl(q, self.posterior(x), "closed").value
        return Identity(reconstruction, kl(q, self.prior, "closed").value, gap, self.log_prob(x))

    def _posterior(self, x: Any) -> Gaussian:
        q: Distribution = read("posterior", x)
        if not isinstance(q, Gaussian):
            raise DomainError(f"the exact ELBO is known for a Gaussian posterior, got {q!r}")
        if q.shape[-1] != self.W.shape[1]:
            raise TensorError(f"z has {self.W.shape[1]} numbers, and the posterior is of {q.shape[-1]}")
        return q

    def _root(self, matrix: Tensor) -> Tensor:
        """The Cholesky factor of a matrix that has one unless the noise is lost in rounding."""
        root, failed = torch.linalg.cholesky_ex(matrix)
        if bool(failed.any()) or not bool(root.isfinite().all()):
            least = self.noise.min().item()
            raise DomainError(
                f"noise {significant(least, 3)} is lost in the rounding of {self.W.dtype} beside W; "
                "take a larger one"
            )
        return root

    def read(self, x: Tensor) -> Tensor:
        """The data [..., D] in the model's type, or an error."""
        data = finite("x", floating("x", x, self.W), "remove what is missing").to(self.W.dtype)
        if not data.ndim or data.shape[-1] != len(self.W):
            raise TensorError(f"x is [batch, {len(self.W)}], got shape {tuple(data.shape)}")
        return data

    def __repr__(self) -> str:
        return f"LinearGaussian(D={self.W.shape[0]}, latent={self.W.shape[1]})"
