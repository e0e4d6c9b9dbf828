"""Five small networks, the recall task that trains them, and their gradients by distance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lattend.errors import NamingError
from lattend.nn.grid.rnn import GridRNN
from lattend.study.training import take_step
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


def jacobian_sizes(network: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """‖∂y/∂xᵢ‖ for each position i [batch, n], of y = network(x), x [batch, n, width] → y [batch, outputs].

    The length of a Jacobian is the root of the sum of its squared entries. Every sequence is copied once for
    each output, and copy j asks for the gradient of output j: as sequences of a batch do not mix, a single
    backward pass gives all rows of all Jacobians.

    >>> jacobian_sizes(lambda x: 3 * x[:, 0] + 4 * x[:, 1].flip(-1), torch.zeros(1, 3, 2))  # √2 times 3, 4, 0
    tensor([[4.2426, 5.6569, 0.0000]])
    """
    with torch.no_grad():
        outputs = network(x[:1]).shape[-1]
    copies = x.detach().repeat_interleave(outputs, 0).requires_grad_()
    y = network(copies).unflatten(0, (len(x), outputs))
    (gradient,) = torch.autograd.grad(y.diagonal(dim1=1, dim2=2).sum(), copies)
    return gradient.unflatten(0, (len(x), outputs)).square().sum((1, 3)).sqrt()


def by_distance(sizes: Tensor, distances: Tensor) -> Tensor:
    """The root mean square of the sizes [batch, n] at each distance, from 0 to the greatest.

    >>> by_distance(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([1, 0, 1]))  # √((9 + 4)/2) at 1
    tensor([1.0000, 2.5495])
    """
    squares = sizes.square().mean(0)
    many = torch.bincount(distances)
    return (torch.zeros(len(many), dtype=sizes.dtype).index_add(0, distances, squares) / many).sqrt()


INITIAL, TRAINED = "at initialisation", "after training"
SYMBOLS = 4
BATCH, RATE, LONGEST = 32, 3e-3, 1.0  # sequences a step, of Adam, of a gradient that is not cut
MEASURED, TESTED = 8, 512  # sequences that gradients are averaged over, and that are named for the accuracy
TOLD = 500  # steps between two reports


class Learned(NamedTuple):
    """One network after so many steps: its gradients by distance, and its share of first symbols named."""

    sizes: Tensor
    accuracy: float


class Recall(nn.Module):
    """Symbols become vectors, a network makes one vector of them, and that names the first symbol."""

    def __init__(self, kind: NetworkKind, width: int, length: int, seed: int) -> None:
        super().__init__()
        self.random = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.symbols = nn.Embedding(SYMBOLS, width)
            self.network = kind.make(width, length)
            self.answer = nn.Linear(width, SYMBOLS)
        self.distances = kind.distances(length)
        self.length = length

    def forward(self, symbols: Tensor) -> Tensor:
        return self.answer(self.network(self.symbols(symbols)))

    def draw(self, many: int) -> Tensor:
        """Draws sequences of random symbols."""
        return torch.randint(SYMBOLS, (many, len(self.distances)), generator=self.random)

    def train_for(self, steps: int, report: Callable[[int, float], object]) -> None:
        """Adam on new sequences at every step; `report` hears the step and its loss now and then."""
        optimiser = torch.optim.Adam(self.parameters(), RATE)
        for step in range(1, steps + 1):
            symbols = self.draw(BATCH)
            loss = functional.cross_entropy(self(symbols), symbols[:, 0])
            take_step(self, optimiser, loss, [RATE], LONGEST)
            if step % TOLD == 0 or step == steps:
                report(step, float(loss.detach()))

    def measure(self) -> Learned:
        """Gradients of the network's vector in the vectors of the symbols, in float64."""
        symbols = self.draw(MEASURED)
        self.double()
        try:
            jacobian = jacobian_sizes(self.network, self.symbols(symbols))
        finally:
            self.float()
        sizes = by_distance(jacobian, self.distances)[: self.length]
        with torch.no_grad():
            symbols = self.draw(TESTED)
            right = self(symbols).argmax(-1) == symbols[:, 0]
        return Learned(sizes, float(right.float().mean()))
