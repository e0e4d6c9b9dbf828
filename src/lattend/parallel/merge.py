"""Parts of a softmax put together: each has an output and the log-sum-exp of its scores."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lattend.parallel.edges import Part


@dataclass
class Merged:
    """What is known so far of every query: the output over the keys seen, and their log-sum-exp."""

    out: Tensor
    lse: Tensor

    @staticmethod
    def like(q: Tensor, v: Tensor) -> Merged:
        """Nothing yet: zeros, and minus infinity."""
        wide = torch.promote_types(q.dtype, torch.float32)
        out = q.new_zeros((*q.shape[:-1], v.shape[-1]), dtype=wide)
        return Merged(out, q.new_full(q.shape[:-1], -torch.inf, dtype=wide))

    def add(self, part: Part, out: Tensor, lse: Tensor) -> None:
        """Takes in what some more keys gave for some queries."""
        before = part.of(self.lse)
        both = torch.logaddexp(before, lse.to(before.dtype))
        base = both.masked_fill(both == -torch.inf, 0)  # rows without any key stay 0
        kept, new = ((x - base).exp_().unsqueeze(-1) for x in (before, lse))
        part.put(self.out, part.of(self.out) * kept + out * new)
        part.put(self.lse, both)
