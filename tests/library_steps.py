"""Decoding steps by torch's own attention on a CPU: its functions for GPUs, written out in float64."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
import torch
from torch import Tensor

from lattend.attend.decode import dynamic, fused_step, step
from lattend.attend.decode.step import Scoring
from lattend.attend.kernels import gpu_crossovers
from lattend.attend.kernels.triton import decode_step

# The function, the number of keys that it reads, and whether it is causal; of cuDNN whether it has a bias
Call = tuple[str, int, bool]


def takes(q: Tensor, v: Tensor, how: Scoring) -> bool:
    """library_takes without a look at the device and the dtype."""
    return how.bias is None and how.softcap is None and how.scale > 0 and q.numel() > 0


def by_cudnn(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, how: Scoring) -> bool:
    """The same for step.by_cudnn."""
    return takes(q, v, how) and not how.return_lse and (mask.ndim == 2 or mask.shape[-3] == 1)


def used(monkeypatch: pytest.MonkeyPatch, numbers: float = 0, cudnn_rows: float = inf) -> list[Call]:
    """Lets torch's own attention take every step that it can, from so many numbers on; lists the calls.

    FlashAttention takes a token of a dynamic cache unless it has so many rows of kv heads.
    """
    calls: list[Call] = []

    def flash(q: Tensor, k: Tensor, v: Tensor, *, scale: float, is_causal: bool = False) -> Any:
        calls.append(("flash", k.shape[2], is_causal))
        return written_out(q, k, v, scale, is_causal)

    def cudnn(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, with_lse: bool, *, scale: float) -> Any:
        calls.append(("cudnn", k.shape[2], bias is not None))
        out, lse = written_out(q, k, v, scale, False, bias)
        return out, lse[..., None] if with_lse else torch.empty(0)

    monkeypatch.setattr(fused_step, "FLASH", flash)
    for module in (fused_step, step, decode_step):
        monkeypatch.setattr(module, "CUDNN", cudnn)
    monkeypatch.setattr(fused_step, "library_takes", takes)
    monkeypatch.setattr(dynamic, "library_takes", takes)
    monkeypatch.setattr(step, "by_cudnn", by_cudnn)
    monkeypatch.setattr(decode_step, "flash_takes", lambda q, v: True)
    known = {"decoding": {"token": numbers, "draft": numbers, "cudnn rows": cudnn_rows}}
    monkeypatch.setattr(gpu_crossovers, "measured", lambda: known)
    return calls


def written_out(
    q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp; a last query that is causal attends to the last key.

    A NaN or inf in any key or value that is read reaches the output, whatever the bias.
    """
    group = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    scores = q.double() @ k.mT * scale
    if bias is not None:
        scores = scores + bias.double()
    if causal:
        n, m = scores.shape[2:]
        scores = scores.masked_fill(~torch.ones(n, m).tril(m - n).bool(), -inf)
    out, wide = scores.softmax(-1) @ v, torch.promote_types(q.dtype, torch.float32)
    return out.to(q.dtype), scores.logsumexp(-1).to(wide)
