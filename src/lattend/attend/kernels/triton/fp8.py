"""Attention of 8 bits (e4m3): why the kernel for Hopper does not take a call."""

from __future__ import annotations

import torch
from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.kernels.triton.kernel import FEWEST_ROWS, may_take_hopper, missing, whole_16_bytes
from lattend.attend.kernels.triton.shapes import on_hopper, padded
from lattend.attend.kernels.triton.tables import is_wide
from lattend.plans.plan import plan
from lattend.plans.tables.adjacency import in_order

DTYPE = torch.float8_e4m3fn


def why_not(call: AttentionCall, q: Tensor, k: Tensor, v: Tensor) -> str | None:
    """Why the kernel of 8 bits cannot take the call, or None when it can."""
    if q.device.type != "cuda":
        return f"products of 8 bits need a Hopper GPU, and q is on {q.device.type}"
    if missing() is not None:
        return missing()
    if call.kernel not in (None, "triton"):
        return f'kernel="{call.kernel}" has no products of 8 bits'
    others = {
        "a bias": call.term is not None,
        "a softcap": call.softcap is not None,
        "padding": call.key_range is not None,
        "dropout": call.seed is not None,
        "a negative scale": call.scale < 0,
    }
    for what, there in others.items():
        if there:
            return f"the kernel of 8 bits does not take {what}"
    size = max(q.shape[-1], v.shape[-1])
    if next(on_hopper("forward", size, DTYPE), None) is None:
        return f"the kernel of 8 bits takes head dimensions from 33 to 128, and this is {size}"
    if padded(q.shape[-1]) != padded(v.shape[-1]) or not all(map(whole_16_bytes, (q, v))):
        return "the kernel of 8 bits takes head dimensions that are multiples of 16 and alike for q and v"
    if q.shape[:3].numel() < FEWEST_ROWS:
        return f"all heads together have fewer than {FEWEST_ROWS:,} queries, too few to keep the chip busy"
    if not may_take_hopper(call, q, v):
        return "this GPU is no Hopper, or this Triton has another Gluon: products of 8 bits need both"
    found = plan(call.rule)
    if not found.fits or any(is_wide(part, call.data, q, k, v) for part in found.parts):
        return "places or numbers of the rule need 64 bits"
    if not all(part.block_table is None and in_order(part) for part in found.parts):
        return "the kernel of 8 bits takes rules on a line whose keys follow each other"
    return None
