"""Packed documents whose lengths are on the device."""

from __future__ import annotations

import torch
from torch import Tensor


def document_ids(cumulative: Tensor, n: int) -> Tensor:
    """The document of each of n positions, from cumulative lengths (0, l1, l1 + l2, …) or rows of them.

    Nothing is copied to the host. Positions after the last document form one more.

    >>> document_ids(torch.tensor([0, 2, 3]), 5).tolist()  # lengths 2 and 1, then 2 unused positions
    [0, 0, 1, 2, 2]
    """
    places = torch.arange(n, device=cumulative.device, dtype=cumulative.dtype)
    places = places.expand(*cumulative.shape[:-1], n).contiguous()
    return torch.searchsorted(cumulative.contiguous(), places, right=True) - 1
