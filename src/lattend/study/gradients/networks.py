"""Five small networks that read a sequence or an image and give one vector at its last position."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from lattend.errors import NamingError
from lattend.nn.grid.rnn import GridRNN
from lattend.wording import close_names

KERNEL = 5  # taps of the convolution


class LastState(nn.Module):
    """A recurrent net, x [batch, n, width] → its state at the last position."""

    def __init__(self, net: nn.RNN | nn.LSTM) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)[0][:, -1]


class LastCell(nn.Module):
    """A 2-D RNN on a square image, x [batch, side², width] → its state at the last corner."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.net = GridRNN(width, width, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        side = math.isqrt(x.shape[1])
        return self.net(x.unflatten(1, (side, side)))[:, -1, -1]


class ConvStack(nn.Module):
    """Convolutions with ReLU between them and zeros around, as many as reach over the whole sequence."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        layers = max(1, math.ceil((length - 1) / (KERNEL // 2)))
        self.layers = nn.ModuleList(nn.Linear(KERNEL * width, width) for _ in range(layers))
        for weight, bias in (layer.parameters() for layer in self.layers):
            nn.init.kaiming_normal_(weight, nonlinearity="relu")
            nn.init.zeros_(bias)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        for at, layer in enumerate(self.layers):
            padded = functional.pad(functional.relu(x) if at else x, (0, 0, KERNEL // 2, KERNEL // 2))
            x = layer(torch.cat([padded[:, tap : tap + n] for tap in range(KERNEL)], dim=-1))
        return x[:, -1]


class LastToken(nn.Module):
    """One head of attention with learned positions, asked by the last token: causal, so that it sees all."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(length, width) * 0.1)
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        placed = x + self.positions
        return functional.scaled_dot_product_attention(
            self.q(placed[:, -1:]), self.k(placed), self.v(placed)
        )[:, 0]


@dataclass(frozen=True)
class NetworkKind:
    """A kind of network: what it is, how it is made for (width, length), and whether it reads an image."""

    about: str
    make: Callable[[int, int], nn.Module]
    on_image: bool = False

    def distances(self, length: int) -> Tensor:
        """How far each input is from the last one: along the sequence, or along rows and columns."""
        if not self.on_image:
            return torch.arange(length - 1, -1, -1)
        along = torch.arange(self.side(length) - 1, -1, -1)
        return (along[:, None] + along).flatten()

    @staticmethod
    def side(length: int) -> int:
        """The side of the image whose first and last pixel are length - 1 apart, or one more."""
        return length // 2 + 1


KINDS = {
    "rnn": NetworkKind(
        "an RNN with tanh", lambda width, _: LastState(nn.RNN(width, width, batch_first=True))
    ),
    "lstm": NetworkKind("an LSTM", lambda width, _: LastState(nn.LSTM(width, width, batch_first=True))),
    "rnn2d": NetworkKind(
        "a 2-D RNN with tanh; distances along rows and columns", lambda width, _: LastCell(width), True
    ),
    "conv": NetworkKind(
        f"convolutions of {KERNEL} taps with ReLU, as many as reach the first input", ConvStack
    ),
    "attention": NetworkKind("one head with learned positions, asked by the last token", LastToken),
}


def named_kinds(names: Sequence[str]) -> dict[str, NetworkKind]:
    """The kinds of these names; all where there are none."""
    for name in names:
        if name not in KINDS:
            close = close_names(name.lower(), KINDS)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise NamingError(f"no network is named {name}; there are {', '.join(KINDS)}{hint}")
    return {name: KINDS[name] for name in KINDS if not names or name in names}
