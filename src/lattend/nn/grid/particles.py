"""Particles: several completions of one image side by side, of which those go on that fit what is known."""

from __future__ import annotations

import torch
from torch import Tensor


class Race:
    """Particles in groups, each weighed by how likely it finds what it meets.

    Where fewer than half of a group carry its weight, all are drawn again by weight (Gordon, Salmond and
    Smith 1993, the bootstrap filter, with evenly spaced draws).
    """

    def __init__(
        self, groups: int, particles: int, generator: torch.Generator | None, device: torch.device
    ) -> None:
        self.logs = torch.zeros(groups, particles, dtype=torch.float64, device=device)
        self.all = torch.arange(particles, device=device).expand(groups, particles)
        self.start = torch.arange(0, groups * particles, particles, device=device)[:, None]
        self.generator = generator

    def after(self, nats: Tensor) -> Tensor | None:
        """Which particles go on once these known pixels were met; None if all do."""
        groups, particles = self.logs.shape
        if particles == 1:
            return None
        self.logs = (self.logs - nats.view(groups, particles)).log_softmax(1)
        tired = (2 * self.logs).exp().sum(1, keepdim=True) * particles > 2  # fewer than half carry the weight
        if not bool(tired.any()):
            return None
        index = torch.where(tired, self._drawn(particles), self.all)
        self.logs = torch.where(tired, 0, self.logs)
        return (self.start + index).flatten()

    def winners(self) -> Tensor:
        """One particle of each group, drawn by weight."""
        return (self.start + self._drawn(1)).flatten()

    def _drawn(self, count: int) -> Tensor:
        """`count` particles of each group by weight, evenly spaced from a random start."""
        groups, particles = self.logs.shape
        if particles == 1:
            return self.all
        start = uniform((groups, 1), self.generator, self.logs.device)
        at = (torch.arange(count, device=start.device) + start) / count
        ends = self.logs.softmax(1).cumsum(1)
        return torch.searchsorted(ends, at, right=True).clamp(max=particles - 1)


def uniform(shape: tuple[int, ...], generator: torch.Generator | None, device: torch.device) -> Tensor:
    """Numbers from 0 to 1, drawn where the generator lives."""
    home = device if generator is None else generator.device
    return torch.rand(shape, generator=generator, device=home, dtype=torch.float64).to(device)
