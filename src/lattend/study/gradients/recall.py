"""The task that a network is trained on: name the first symbol of a sequence at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lattend.study.gradients.jacobian import by_distance, jacobian_sizes
from lattend.study.gradients.networks import NetworkKind

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
        """So many sequences of random symbols."""
        return torch.randint(SYMBOLS, (many, len(self.distances)), generator=self.random)

    def train_for(self, steps: int, told: Callable[[int, float], object]) -> None:
        """Adam on new sequences at every step; `told` hears the step and its loss now and then."""
        optimiser = torch.optim.Adam(self.parameters(), RATE)
        for step in range(1, steps + 1):
            symbols = self.draw(BATCH)
            loss = functional.cross_entropy(self(symbols), symbols[:, 0])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.parameters(), LONGEST)
            optimiser.step()
            if step % TOLD == 0 or step == steps:
                told(step, float(loss.detach()))

    def measure(self) -> Learned:
        """Gradients of the network's vector in the vectors of the symbols, in float64."""
        symbols = self.draw(MEASURED)
        self.double()
        try:
            found = jacobian_sizes(self.network, self.symbols(symbols))
        finally:
            self.float()
        sizes = by_distance(found, self.distances)[: self.length]
        with torch.no_grad():
            symbols = self.draw(TESTED)
            right = self(symbols).argmax(-1) == symbols[:, 0]
        return Learned(sizes, float(right.float().mean()))
