"""Attention written out as products: scores that are used in more than one way."""

from __future__ import annotations

import pytest
import torch

import lattend as lt


class Sinks(torch.nn.Module):
    """Causal attention with one learned score a head more, as GPT-OSS has it written out in transformers."""

    def __init__(self, first: bool, drops_first: bool) -> None:
        super().__init__()
        self.sinks = torch.nn.Parameter(torch.zeros(2))
        self.first, self.drops_first = first, drops_first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.where(torch.ones(8, 8, device=x.device).tril().bool(), 0.0, torch.finfo(x.dtype).min)
        scores = x @ x.mT * 0.5 + mask
        sinks = self.sinks.reshape(1, -1, 1, 1).expand(x.shape[0], -1, 8, -1)
        both = torch.cat([sinks, scores] if self.first else [scores, sinks], -1)
        both = both - both.max(-1, keepdim=True).values
        weights = both.softmax(-1)
        return (weights[..., 1:] if self.drops_first else weights[..., :-1]) @ x


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_column_of_sinks(first: bool, device: str) -> None:
    """The pairs of the mask are needed, and of the softmax those and the sinks; 3*2 heads of 8 tokens."""
    result = lt.cost.of(Sinks(first, first).to(device), (3, 2, 8, 4))
    assert (result.multiply_adds.needed, result.multiply_adds.dense) == (6 * 36 * (4 + 4), 6 * 64 * (4 + 4))
    assert result.forward.exponentials == result.forward.divisions == 6 * (36 + 8)
    assert result.notes == ()


def test_another_column_than_that_of_the_sinks_is_dropped() -> None:
    """Which weights are left is not followed: the second product is counted whole, and said to be."""
    result = lt.cost.of(Sinks(first=True, drops_first=False), (3, 2, 8, 4))
    assert result.multiply_adds.needed == 6 * (36 * 4 + 64 * 4)
    assert result.notes == ("weights not followed: attention in the module itself is counted dense",)


def test_scores_that_are_used_twice_are_needed_whole() -> None:
    """Each way has its own mask; the product of the scores is counted once, with all its pairs."""
    below, low = torch.ones(8, 8).tril().bool(), -float("inf")

    def twice(x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        scores = x @ x.transpose(-1, -2)
        other = scores if mask is None else scores.masked_fill(~mask, low)
        return scores.masked_fill(~below, low).softmax(-1) @ x + other.softmax(-1) @ x

    class Twice(torch.nn.Module):
        def __init__(self, mask: torch.Tensor | None) -> None:
            super().__init__()
            self.mask = mask

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return twice(x, self.mask)

    x = torch.randn(1, 8, 4)
    assert lt.cost.of(Twice(below.T), x).multiply_adds.needed == 4 * (64 + 36 + 36)
    assert lt.cost.of(Twice(None), x).multiply_adds.needed == 4 * (64 + 36 + 64)
