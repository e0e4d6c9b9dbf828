"""every_z: all values that z can take, where it has few of them, so that expectations are sums."""

from __future__ import annotations

import torch
from torch import Tensor

from lattend.study.generative.distributions import Bernoulli, Categorical, Distribution

MOST_VALUES = 4096  # of z, all its numbers together; beyond them z is drawn


def every_z(q: Distribution) -> Tensor | None:
    """All z of discrete posteriors [values, batch, ...]; None where there are too many, or q is continuous.

    >>> every_z(Categorical(torch.zeros(1, 2, 2)))[:, 0].tolist()  # two numbers, each 0 or 1
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    if not isinstance(q, Bernoulli | Categorical):
        return None
    classes = q.classes if isinstance(q, Categorical) else 2
    numbers = q.shape[1:].numel()
    if classes**numbers > MOST_VALUES:
        return None
    each = torch.arange(classes, device=q.logits.device)
    values = torch.cartesian_prod(*[each] * numbers).reshape(-1, 1, *q.shape[1:])
    kind = values.dtype if isinstance(q, Categorical) else q.logits.dtype
    return values.to(kind).expand(-1, *q.shape)
