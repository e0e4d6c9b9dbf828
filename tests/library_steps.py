"""Decoding steps by torch's own attention on a CPU: its functions for GPUs, written out in float64."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
import torch
from torch import Tensor

from lattend.attend.decode import at_once, dynamic
from lattend.attend.decode.step import Scoring
from lattend.attend.kernels import gpu_crossovers

Call = tuple[str, int, bool]  # the function, the number of keys, and whether it is causal


def takes(q: Tensor, v: Tensor, how: Scoring) -> bool:
    """library_takes without a look at the device and the dtype."""
    return how.bias is None and how.softcap is None and how.scale > 0 and q.numel() > 0


def used(monkeypatch: pytest.MonkeyPatch, numbers: float = 0) -> list[Call]:
    """Lets torch's own attention take every step that it can, from so many numbers on; lists the calls."""
    calls: list[Call] = []

    def flash(q: Tensor, k: Tensor, v: Tensor, *, scale: float, is_causal: bool = False) -> Any:
        calls.append(("flash", k.shape[2], is_causal))
        return written_out(q, k, v, scale, is_causal)

    def cudnn(q: Tensor, k: Tensor, v: Tensor, bias: None, with_lse: bool, *, scale: float) -> Any:
        calls.append(("cudnn", k.shape[2], False))
        out, lse = written_out(q, k, v, scale, False)
        return out, lse[..., None] if with_lse else torch.empty(0)

    monkeypatch.setattr(at_once, "FLASH", flash)
    monkeypatch.setattr(at_once, "CUDNN", cudnn)
    monkeypatch.setattr(dynamic, "library_takes", takes)
    known = {"decoding": dict.fromkeys(("token", "window", "draft"), numbers)}
    monkeypatch.setattr(gpu_crossovers, "measured", lambda: known)
    return calls


def written_out(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp; a last query that is causal attends to the last key."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    scores = q.double() @ k.mT * scale
    if causal:
        n, m = scores.shape[2:]
        scores = scores.masked_fill(~torch.ones(n, m).tril(m - n).bool(), -inf)
    out, wide = scores.softmax(-1) @ v, torch.promote_types(q.dtype, torch.float32)
    return out.to(q.dtype), scores.logsumexp(-1).to(wide)
