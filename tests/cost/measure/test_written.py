"""Attention written out as products: scores that are used in more than one way."""

from __future__ import annotations

import torch

import lattend as lt


def test_scores_that_are_used_twice_are_needed_whole() -> None:
    """Each way has its own mask; the product of the scores is counted once, with all its squares."""
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
    assert lt.cost.of(Twice(below.T), x).needed == 4 * (64 + 36 + 36)
    assert lt.cost.of(Twice(None), x).needed == 4 * (64 + 36 + 64)
