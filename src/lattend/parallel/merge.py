"""Parts put together: of a softmax by their log-sum-exps, of a gradient by their sum."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lattend.parallel.edges import BoxView


@dataclass
class Merged:
    """What is known so far of every query: the output over the keys seen, and their log-sum-exp."""

    out: Tensor
    lse: Tensor
    empty: bool = True

    @staticmethod
    def like(q: Tensor, v: Tensor) -> Merged:
        """Nothing yet: zeros, and minus infinity."""
        wide = widened(q.dtype)
        out = q.new_zeros((*q.shape[:-1], v.shape[-1]), dtype=wide)
        return Merged(out, q.new_full(q.shape[:-1], -torch.inf, dtype=wide))

    def add(self, part: BoxView, out: Tensor, lse: Tensor) -> None:
        """Takes in what some more keys gave for some queries."""
        first, self.empty = self.empty, False
        if first and out.shape == self.out.shape and part.is_whole:
            self.out, self.lse = out.to(self.out.dtype), lse.to(self.lse.dtype)
            return
        before = part.of(self.lse)
        both = torch.logaddexp(before, lse.to(before.dtype))
        base = both.masked_fill(both == -torch.inf, 0)  # rows without any key stay 0
        kept, new = ((x - base).exp_().unsqueeze(-1) for x in (before, lse))
        part.put(self.out, part.of(self.out) * kept + out * new)
        part.put(self.lse, both)


@dataclass
class Summed:
    """A sum of parts of tensors like one; the first that is whole is taken as it is."""

    like: Tensor
    total: Tensor | None = None

    @property
    def found(self) -> Tensor:
        """The sum; zeros where nothing was added."""
        if self.total is None:
            self.total = torch.zeros_like(self.like, dtype=widened(self.like.dtype))
        return self.total

    def add(self, part: BoxView, x: Tensor) -> None:
        """Adds to some positions."""
        if self.total is None and x.shape == self.like.shape and part.is_whole:
            self.total = x.to(widened(x.dtype))
        else:
            part.add(self.found, x)


def widened(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which parts are added."""
    return torch.promote_types(dtype, torch.float32)
