"""Values mixed by heads that look at positions alone, so that all images of a batch have the same weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lattend.attend.attention import attention
from lattend.attend.bias import Bias
from lattend.rules.rule import Rule

WIDEST = 256  # numbers a key that the kernels of a GPU hold


def mixed(
    values: Tensor, heads: int, n: int, rule: Rule, bias: Bias | None, numbers: dict[str, Any]
) -> Tensor:
    """What each head sees at n queries, [heads, n, N, D], of values [N, heads or 1, m, D].

    On a CPU the batch joins the width of the values, so that softmax runs once for all images.
    """
    batch, _, m, width = values.shape
    together = joined(values)
    if together:
        values = values.permute(1, 2, 0, 3).flatten(2)[None]
    nothing = values.new_zeros(1, 1, 1, 1)  # scores come from the bias alone, or do not matter
    q, k = (nothing.expand(len(values), heads, size, 1) for size in (n, m))
    found = [
        attention(q, k, part.expand(-1, heads, -1, -1), rule, bias=bias, scale=1.0, **numbers)
        for part in ((values,) if together else values.split(WIDEST, 3))
    ]
    whole = found[0] if len(found) == 1 else torch.cat(found, 3)
    return whole[0].unflatten(2, (batch, width)) if together else whole.permute(1, 2, 0, 3)


def joined(values: Tensor) -> bool:
    """Whether the batch may join the width, which has no limit on a CPU."""
    return values.device.type == "cpu"
