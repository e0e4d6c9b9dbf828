"""The nets of a VAE, and what they cost: d numbers to 2·latent on one side, latent to d on the other.

The encoder's numbers are the means and the log-variances. The decoder ends in a bias of its own for each of
the d numbers, `bias`, so that it can start at what each pixel is on its own.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lattend.cost.cost import Cost
from lattend.cost.layers.conv import conv
from lattend.cost.layers.tokenwise import linear, positions
from lattend.cost.layers.transformer import bend, joined, sample
from lattend.errors import DomainError


class Decoder(nn.Module):
    """A net and its last bias [d]."""

    bias: nn.Parameter

    def __init__(self, net: nn.Module, d: int) -> None:
        super().__init__()
        self.net = net
        self.bias = nn.Parameter(torch.zeros(d))

    @property
    def last(self) -> nn.Parameter:
        """The weights of the last layer."""
        return [weights for weights in self.net.parameters() if weights.ndim > 1][-1]

    def forward(self, z: Tensor) -> Tensor:
        """[batch, latent] to [batch, d]."""
        return self.net(z).flatten(1) + self.bias


@dataclass(frozen=True)
class MLP:
    """Dense layers: d, the widths `hidden`, 2·latent; and back."""

    d: int
    latent: int
    hidden: tuple[int, ...]
    dropout: float = 0.0

    def encoder(self) -> nn.Module:
        return nn.Sequential(*self._layers(self.d, *self.hidden), nn.Linear(self.hidden[-1], 2 * self.latent))

    def decoder(self) -> Decoder:
        back = self._layers(self.latent, *self.hidden[::-1])
        return Decoder(nn.Sequential(*back, nn.Linear(self.hidden[0], self.d, bias=False)), self.d)

    def _layers(self, *widths: int) -> list[nn.Module]:
        modules: list[nn.Module] = []
        for c_in, c_out in itertools.pairwise(widths):
            modules += [nn.Linear(c_in, c_out), nn.SiLU(), nn.Dropout(self.dropout)]
        return modules

    def cost(self) -> Cost:
        """The cost of one example; with one hidden layer this is `lt.cost.vae`."""
        ends = linear(n=1, d_in=self.hidden[-1], d_out=2 * self.latent).named("mean and log-variance")
        back = linear(n=1, d_in=self.hidden[0], d_out=self.d)
        return joined(
            "vae",
            joined("encoder", *self._costs(self.d, *self.hidden)),
            ends,
            sample(n=1, z=self.latent),
            joined("decoder", *self._costs(self.latent, *self.hidden[::-1]), back),
        )

    def _costs(self, *widths: int) -> list[Cost]:
        costs: list[Cost] = []
        for c_in, c_out in itertools.pairwise(widths):
            costs += [linear(n=1, d_in=c_in, d_out=c_out), bend(n=1, d=c_out)]
        return costs


@dataclass(frozen=True)
class Conv:
    """Convolutions 3 × 3: the first keeps the image's size, each further one halves it; and back.

    `image` is (channels, rows, cols), and the nets have `levels` numbers for each of its pixels. On the way
    back a convolution makes four pixels of one: it writes 4·c channels, which are then laid out 2 × 2. Two
    more at the image's size end it.
    """

    image: tuple[int, int, int]
    levels: int
    latent: int
    hidden: tuple[int, ...]
    dropout: float = 0.0

    def __post_init__(self) -> None:
        step = 2 ** (len(self.hidden) - 1)
        _, rows, cols = self.image
        if rows % step or cols % step:
            raise DomainError(
                f"{len(self.hidden)} widths halve an image {_times(len(self.hidden) - 1)}, "
                f"and {rows} × {cols} does not divide by {step}; give fewer widths in hidden, or pad it"
            )

    @property
    def planes(self) -> int:
        """Channels that are read and written."""
        return self.image[0] * self.levels

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Rows and columns after each convolution of the encoder."""
        _, rows, cols = self.image
        return [(rows >> at, cols >> at) for at in range(len(self.hidden))]

    @property
    def smallest(self) -> tuple[int, int, int]:
        return self.hidden[-1], *self.sizes[-1]

    def encoder(self) -> nn.Module:
        layers: list[nn.Module] = [_ToPlanes(self.image, self.levels)]
        for at, (c_in, c_out) in enumerate(itertools.pairwise((self.planes, *self.hidden))):
            layers += [nn.Conv2d(c_in, c_out, 3, stride=2 if at else 1, padding=1), nn.SiLU()]
        ends = nn.Linear(math.prod(self.smallest), 2 * self.latent)
        return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(self.dropout), ends)

    def decoder(self) -> Decoder:
        layers: list[nn.Module] = [nn.Linear(self.latent, math.prod(self.smallest)), nn.SiLU()]
        layers += [nn.Dropout(self.dropout), nn.Unflatten(1, self.smallest)]
        for c_in, c_out in itertools.pairwise(self.hidden[::-1]):
            layers += [nn.Conv2d(c_in, 4 * c_out, 3, padding=1), nn.PixelShuffle(2), nn.SiLU()]
        first = self.hidden[0]
        layers += [nn.Conv2d(first, first, 3, padding=1), nn.SiLU(), nn.Dropout(self.dropout)]
        layers += [
            nn.Conv2d(first, self.planes, 3, padding=1, bias=False),
            _FromPlanes(self.image, self.levels),
        ]
        return Decoder(nn.Sequential(*layers), self.planes * math.prod(self.sizes[0]))

    def cost(self) -> Cost:
        """The cost of one image, without what the layout 2 × 2 moves."""
        encoder: list[Cost] = []
        before = [self.image[1:], *self.sizes]
        for at, (c_in, c_out) in enumerate(itertools.pairwise((self.planes, *self.hidden))):
            encoder += [_conv(before[at], c_in, c_out, stride=2 if at else 1), _bend(self.sizes[at], c_out)]
        inner = math.prod(self.smallest)
        ends = linear(n=1, d_in=inner, d_out=2 * self.latent).named("mean and log-variance")
        back: list[Cost] = [linear(n=1, d_in=self.latent, d_out=inner), bend(n=1, d=inner)]
        for size, grown, (c_in, c_out) in zip(
            self.sizes[:0:-1], self.sizes[-2::-1], itertools.pairwise(self.hidden[::-1]), strict=True
        ):
            back += [_conv(size, c_in, 4 * c_out), _bend(grown, c_out)]
        size, first = self.sizes[0], self.hidden[0]
        back += [_conv(size, first, first), _bend(size, first), _conv(size, first, self.planes, bias=False)]
        back.append(positions(n=math.prod(size), d=self.planes).named("bias of each number"))
        return joined(
            "vae", joined("encoder", *encoder), ends, sample(n=1, z=self.latent), joined("decoder", *back)
        )


def _conv(size: tuple[int, ...], c_in: int, c_out: int, stride: int = 1, bias: bool = True) -> Cost:
    rows, cols = size
    return conv(rows=rows, cols=cols, c_in=c_in, c_out=c_out, kernel=3, stride=stride, padding=1, bias=bias)


def _bend(size: tuple[int, int], channels: int) -> Cost:
    return bend(n=math.prod(size), d=channels)


def _times(many: int) -> str:
    return {1: "once", 2: "twice"}.get(many, f"{many} times")


class _ToPlanes(nn.Module):
    """[batch, channels·rows·cols·levels] as planes [batch, channels·levels, rows, cols]."""

    def __init__(self, image: tuple[int, int, int], levels: int) -> None:
        super().__init__()
        self.shape = (*image, levels)

    def forward(self, x: Tensor) -> Tensor:
        return x.view(-1, *self.shape).movedim(-1, 2).flatten(1, 2)


class _FromPlanes(nn.Module):
    """Planes [batch, channels·levels, rows, cols] as [batch, channels, rows, cols, levels]."""

    def __init__(self, image: tuple[int, int, int], levels: int) -> None:
        super().__init__()
        self.image, self.levels = image, levels

    def forward(self, planes: Tensor) -> Tensor:
        return planes.unflatten(1, (self.image[0], self.levels)).movedim(2, -1)
