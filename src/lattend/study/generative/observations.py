"""What an image is made of, as a VAE reads it and writes it: 0 or 1, one of some levels, or any number.

Each kind tells how many numbers the nets have for a pixel, `levels`; what is wrong with data; how they are
read; which distribution the decoder's numbers stand for; its mean; and the numbers that say of each pixel
what it is on its own.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from lattend.errors import NamingError, TensorError
from lattend.study.generative.checks import choice, count, finite, real, require
from lattend.study.generative.distributions import Bernoulli, Categorical, Distribution, Gaussian

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
        said = f"pixels of a categorical decoder with {self.levels} levels are 0 to {self.levels - 1}"
        require((x >= 0) & (x < self.levels), x, said, "give it as many levels as the data have")

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
        said = (
            "needs levels, how many a pixel can have" if levels is None else "has no levels; leave them out"
        )
        raise NamingError(f"a {kind} decoder {said}")
    if noise is not None and kind != "gaussian":
        raise NamingError(f"a {kind} decoder has no noise; leave it out")
    if levels is not None:
        return Levels(count("levels", levels, least=2))
    if noise is not None:
        noise = real("noise", noise, "a variance above 0", lambda found: found > 0)
    return Binary() if kind == "bernoulli" else Numbers(noise)
