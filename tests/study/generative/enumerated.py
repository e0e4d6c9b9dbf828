"""Draws set in advance, so that an expectation over draws can be summed exactly instead of sampled."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor

from lattend.study.generative.distributions import Categorical


class Fixed(Categorical):
    """A Categorical whose draws are known: the rows of `draws`, one after another."""

    def __init__(self, logits: Tensor, draws: Tensor) -> None:
        super().__init__(logits)
        self.left = draws

    def sample(self, k=None, generator=None):
        drawn, self.left = self.left[:k], self.left[k:]
        return drawn


def expectation(logits: Tensor, draws: int, estimate: Callable[[Fixed], Tensor]) -> Tensor:
    """The exact mean of an estimate from so many draws of one Categorical, logits [1, classes].

    The chance of a list of draws is held fixed, so that gradients are those the estimates carry.
    """
    chances = logits.detach().softmax(-1)[0]
    total = logits.new_zeros(())
    for places in itertools.product(range(logits.shape[-1]), repeat=draws):
        chance = chances[list(places)].prod()
        total = total + chance * estimate(Fixed(logits, torch.tensor(places)[:, None]))
    return total
