"""VAE: a variational autoencoder of images or vectors, its training, what it draws and what it costs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lattend.cost.cost import Cost
from lattend.errors import DomainError, NamingError, TensorError
from lattend.study.generative.bound import ELBO, elbo
from lattend.study.generative.checks import (
    choice,
    count,
    counts,
    finite,
    floating,
    real,
    real_tensor,
    require,
)
from lattend.study.generative.distributions import Bernoulli, Categorical, Distribution, Gaussian
from lattend.study.generative.importance_bound import Importance, importance
from lattend.study.generative.nets import MLP, Conv
from lattend.study.generative.training import Epoch, History, TrainingPlan, train

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lattend.draw.picture import Picture

NETS = {"mlp": (256,), "conv": (32, 64)}  # and their usual widths
AT_ONCE = 2**21  # numbers that decoding many z makes at a time


class VAE(nn.Module):
    """Images x [batch, *shape] made from z [batch, latent], z standard normal before x is seen.

    The encoder gives q(z|x), a diagonal Gaussian; the decoder p(x|z), each pixel on its own given z:
    "bernoulli" for pixels 0 or 1, "categorical" for whole numbers below `levels`, "gaussian" for any numbers,
    whose variance `noise` is learnt unless it is given. `net` is "mlp" or "conv", with widths
    `hidden`; "conv" takes (rows, cols) or (channels, rows, cols), and halves the image from width to width.
    `beta` and `free_bits` (nats a latent) change the loss alone, as in `elbo`; `dropout` is for training.

    >>> vae = VAE((8, 8), latent=2, hidden=32)
    >>> sum(p.numel() for p in vae.parameters())  # 64·32 + 32, 32·4 + 4, 2·32 + 32, 32·64 + 64
    4420
    >>> vae.cost().parameters
    4420
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        latent: int,
        decoder: str = "bernoulli",
        net: str = "mlp",
        hidden: int | Sequence[int] | None = None,
        *,
        levels: int | None = None,
        noise: float | None = None,
        beta: float = 1.0,
        free_bits: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.shape = torch.Size(counts("shape", shape))
        self.latent = count("latent", latent)
        self.pixels = observation(decoder, levels, noise)
        self.beta, self.free_bits = real("beta", beta), real("free_bits", free_bits)
        dropout = real("dropout", dropout, "a share from 0 to below 1", lambda part: 0 <= part < 1)
        usual = NETS[choice("net", net, NETS)]
        widths = usual if hidden is None else counts("hidden", hidden)
        self.decoder_name, self.net_name, self.hidden = decoder, net, widths
        self.noise, self.dropout = noise, dropout
        if net == "mlp":
            self.net = MLP(math.prod(self.shape) * self.pixels.levels, self.latent, widths, dropout)
        else:
            self.net = Conv(_image(self.shape), self.pixels.levels, self.latent, widths, dropout)
        self.encoder, self.decoder = self.net.encoder(), self.net.decoder()
        self.history = History()

    def encode(self, x: Tensor) -> Gaussian:
        """q(z|x) of each example: a Gaussian of [batch, latent]."""
        read = self.pixels.read(self._checked("x", x)).to(self.decoder.bias.dtype)
        mean, log_variance = self.encoder(read.flatten(1)).chunk(2, -1)
        return Gaussian(mean, log_variance=log_variance)

    def decode(self, z: Tensor) -> Distribution:
        """p(x|z) for z [..., latent]: a distribution whose draws are [..., *shape]."""
        return self.pixels.given(self._numbers(z))

    def _numbers(self, z: Tensor) -> Tensor:
        """The decoder's numbers, [..., *shape] or [..., *shape, levels]."""
        z = floating("z", z, self.decoder.bias).to(self.decoder.bias)
        if z.shape[-1:] != (self.latent,):
            raise TensorError(f"z is [..., {self.latent}] for this VAE, got shape {tuple(z.shape)}")
        last = (self.pixels.levels,) if self.decoder_name == "categorical" else ()
        return self.decoder(z.reshape(-1, self.latent)).view(*z.shape[:-1], *self.shape, *last)

    def elbo(self, x: Tensor, samples: int = 1, **options: Any) -> ELBO:
        """The bound of x with its two terms, and the loss with this VAE's beta and free bits; see `elbo`."""
        chosen = {"beta": self.beta, "free_bits": self.free_bits, **options}
        return elbo(x, self.encode(x), self.decode, samples=samples, **chosen)

    def forward(self, x: Tensor) -> ELBO:
        """`elbo` from one sample of z: `vae(x).loss.backward()`."""
        return self.elbo(x)

    def importance(self, x: Tensor, k: int = 64, **options: Any) -> Importance:
        """The tighter bound of k samples; see `importance`, whose `at_once` is chosen by the batch's size."""
        q = self.encode(x)
        most = max(1, AT_ONCE // (len(x) * len(self.decoder.bias)))
        return importance(x, q, self.decode, k=k, **{"at_once": most, **options})

    def fit(
        self,
        data: Tensor,
        epochs: int = 30,
        *,
        test: Tensor | None = None,
        batch: int = 32,
        rate: float = 3e-3,
        decay: float = 0.1,
        warm_up: int = 0,
        seed: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Callable[[Epoch], object] | None = None,
    ) -> History:
        """Trains with AdamW and gives the history of this VAE, with its ELBO on `test` after each epoch.

        The learning rate rises to `rate` in the first tenth and falls to 0 along a cosine; beta rises to its
        value over `warm_up` epochs. `decay` is the weight decay. `seed` fixes batches and noise; torch's own
        generator stays as it is. The first call begins with `start`. With a `checkpoint` each epoch ends with
        a file, from which the same call goes on after an interruption to the very same numbers.
        `progress=print` shows each epoch. Afterwards dropout is off.
        """
        self._checked("data", data)
        if test is not None:
            self._checked("test", test)
        train(self, data, test, TrainingPlan(epochs, batch, rate, decay, warm_up, seed), checkpoint, progress)
        return self.history

    @torch.no_grad()
    def start(self, data: Tensor) -> None:
        """Sets the decoder's last bias to what each pixel is on its own, and its last weights to 0.

        So z has only the rest to tell.
        """
        self.decoder.bias.copy_(self.pixels.alone(self._checked("data", data)))
        self.decoder.last.zero_()

    @torch.no_grad()
    def sample(self, n: int = 1, mean: bool = False, generator: torch.Generator | None = None) -> Tensor:
        """N images [n, *shape] from z ~ p(z): drawn from p(x|z), or with `mean` its mean."""
        like = self.decoder.bias
        shape = (count("n", n), self.latent)
        z = torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)
        return self._decoded(z, mean, generator)

    @torch.no_grad()
    def reconstruct(self, x: Tensor, mean: bool = True, generator: torch.Generator | None = None) -> Tensor:
        """The mean of p(x|z) at the mean of q(z|x); with mean=False a draw of both."""
        q = self.encode(x)
        return self._decoded(q.mean if mean else q.sample(generator=generator), mean, generator)

    @torch.no_grad()
    def interpolate(self, a: Tensor, b: Tensor, steps: int = 8) -> Tensor:
        """Means of p(x|z) on the line from the mean of q(z|a) to that of q(z|b), [steps, *shape]."""
        ends = self.encode(torch.stack([self._one("a", a), self._one("b", b)])).mean
        along = torch.linspace(0, 1, count("steps", steps), dtype=ends.dtype, device=ends.device)[:, None]
        return self._decoded((1 - along) * ends[0] + along * ends[1], mean=True)

    def _decoded(self, z: Tensor, mean: bool, generator: torch.Generator | None = None) -> Tensor:
        numbers = self._numbers(z)
        return self.pixels.mean(numbers) if mean else self.pixels.given(numbers).sample(generator=generator)

    def cost(self) -> Cost:
        """What one example costs, forward; with one hidden layer of an mlp this is `lt.cost.vae`."""
        return self.net.cost()

    def draw_samples(self, n: int = 20, seed: int = 0, mean: bool = False) -> Picture:
        """Images drawn from the prior."""
        from lattend.study.generative.pictures import samples

        return samples(self, n, seed, mean)

    def draw_reconstructions(self, x: Tensor) -> Picture:
        """Images, and what comes back through z."""
        from lattend.study.generative.pictures import reconstructions

        return reconstructions(self, x)

    def draw_interpolation(self, a: Tensor, b: Tensor, steps: int = 10) -> Picture:
        """The images on the line from a to b; [many, *shape] gives as many lines."""
        from lattend.study.generative.pictures import interpolation

        return interpolation(self, a, b, steps)

    def draw_latent(self, x: Tensor, labels: Any = None, ax: Axes | None = None) -> Picture:
        """A picture of images in the latent plane, coloured by their labels.

        Of more than two latents the plane has the principal axes.
        """
        from lattend.study.generative.pictures import latent

        return latent(self, x, labels).onto(ax)

    def draw_plane(self, axes: tuple[int, int] = (0, 1), steps: int = 9) -> Picture:
        """A picture of what is decoded along two latents, at even quantiles of the prior."""
        from lattend.study.generative.pictures import plane

        return plane(self, axes, steps)

    def _checked(self, name: str, x: Any) -> Tensor:
        """The images, or an error."""
        wanted = f"[batch, {', '.join(map(str, self.shape))}]"
        x = real_tensor(name, x, wanted)
        if x.shape[1:] != self.shape or not len(x):
            raise TensorError(f"{name} must be {wanted} with at least one example, got {list(x.shape)}")
        self.pixels.check(x)
        return x

    def batch(self, name: str, x: Any) -> Tensor:
        """The images [many, *shape], of one or of several."""
        return self._checked(name, x[None] if isinstance(x, Tensor) and x.shape == self.shape else x)

    def _one(self, name: str, x: Any) -> Tensor:
        """One image, or an error."""
        if real_tensor(name, x, str(list(self.shape))).shape != self.shape:
            raise TensorError(f"{name} is one image {list(self.shape)}, got {list(x.shape)}")
        return x

    def extra_repr(self) -> str:
        """The settings, for the printed module."""
        names = f"decoder={self.decoder_name!r}, net={self.net_name!r}"
        return f"shape={tuple(self.shape)}, latent={self.latent}, {names}"


def _image(shape: Sequence[int]) -> tuple[int, int, int]:
    """Channels, rows and columns."""
    if len(shape) not in (2, 3):
        raise DomainError(
            f'net="conv" takes images (rows, cols) or (channels, rows, cols), got {tuple(shape)}; '
            'net="mlp" takes any shape'
        )
    rows, cols = shape[-2:]
    return (shape[0] if len(shape) == 3 else 1), rows, cols


LEAST = 1e-4  # variance that noise starts with
KINDS = ("bernoulli", "categorical", "gaussian")


class Binary(nn.Module):
    """Pixels that are 0 or 1; the decoder's number is the logit of a 1, and the encoder reads −1 or 1."""

    levels = 1
    scale = (0.0, 1.0)

    def check(self, x: Tensor) -> None:
        require((x == 0) | (x == 1), x, "pixels of a Bernoulli decoder are 0 or 1", "binarise them")

    def read(self, x: Tensor) -> Tensor:
        return 2 * x.long() - 1

    def given(self, numbers: Tensor) -> Distribution:
        return Bernoulli(finite("logits", numbers, "take a lower rate"))

    def mean(self, numbers: Tensor) -> Tensor:
        """The chance of a 1."""
        return numbers.sigmoid()

    def alone(self, x: Tensor) -> Tensor:
        """Log-odds of each pixel, one more than was counted on either side."""
        ones = x.double().sum(0)
        return ((ones + 1) / (len(x) - ones + 1)).log().flatten()


class Levels(nn.Module):
    """Pixels that are whole numbers below `levels`; a number for each level, read as 0s and a 1."""

    def __init__(self, levels: int) -> None:
        super().__init__()
        self.levels = levels
        self.scale = (0.0, levels - 1.0)

    def check(self, x: Tensor) -> None:
        if x.is_floating_point() or x.dtype == torch.bool:
            raise TensorError(
                f"pixels of a categorical decoder are whole numbers, got {x.dtype}; cast them: x.long()"
            )
        message = f"pixels of a categorical decoder with {self.levels} levels are 0 to {self.levels - 1}"
        require((x >= 0) & (x < self.levels), x, message, "give it as many levels as the data have")

    def read(self, x: Tensor) -> Tensor:
        return functional.one_hot(x.long(), self.levels)

    def given(self, numbers: Tensor) -> Distribution:
        return Categorical(numbers)

    def mean(self, numbers: Tensor) -> Tensor:
        """The mean level."""
        levels = torch.arange(self.levels, dtype=numbers.dtype, device=numbers.device)
        return (numbers.softmax(-1) * levels).sum(-1)

    def alone(self, x: Tensor) -> Tensor:
        """Log of each pixel's share of levels, one more than was counted of each."""
        counts = functional.one_hot(x.long(), self.levels).double().sum(0) + 1
        return (counts / counts.sum(-1, keepdim=True)).log().flatten()


class Numbers(nn.Module):
    """Pixels that are any numbers, read as they are; the decoder's number is the mean.

    `noise` is the variance of every pixel; None makes it a parameter.
    """

    levels = 1
    scale = None

    def __init__(self, noise: float | None) -> None:
        super().__init__()
        self.learnt = noise is None
        start = torch.tensor(0.0 if noise is None else math.log(noise))
        self.log_variance: Tensor
        if self.learnt:
            self.log_variance = nn.Parameter(start)
        else:
            self.register_buffer("log_variance", start)

    def check(self, x: Tensor) -> None:
        if not x.is_floating_point():
            raise TensorError(f"pixels of a Gaussian decoder are floating, got {x.dtype}; cast: x.float()")
        finite("pixels of a Gaussian decoder", x, "remove what is missing")

    def read(self, x: Tensor) -> Tensor:
        return x

    def given(self, numbers: Tensor) -> Distribution:
        return Gaussian(numbers, log_variance=self.log_variance)

    def mean(self, numbers: Tensor) -> Tensor:
        return numbers

    def alone(self, x: Tensor) -> Tensor:
        """The mean of each pixel; noise that is learnt starts at what is left."""
        means = x.double().mean(0)
        if self.learnt:
            left = (x.double() - means).square().mean().clamp_min(LEAST)
            with torch.no_grad():
                self.log_variance.copy_(left.log())
        return means.flatten()


Observation = Binary | Levels | Numbers


def observation(kind: str, levels: int | None, noise: float | None) -> Observation:
    """The kind of pixels a decoder's name stands for."""
    choice("decoder", kind, KINDS)
    if (kind == "categorical") != (levels is not None):
        message = (
            "needs levels, how many a pixel can have" if levels is None else "has no levels; leave them out"
        )
        raise NamingError(f"a {kind} decoder {message}")
    if noise is not None and kind != "gaussian":
        raise NamingError(f"a {kind} decoder has no noise; leave it out")
    if levels is not None:
        return Levels(count("levels", levels, least=2))
    if noise is not None:
        noise = real("noise", noise, "a variance above 0", lambda found: found > 0)
    return Binary() if kind == "bernoulli" else Numbers(noise)
