"""From where on torch's own attention is faster than ours on a GPU, as gpu_crossovers.json has it.

That file is data: `python benchmarks/calibrate_crossovers.py --save` measures both kernels and writes it. A
block is small while its keys have fewer `numbers` (keys times D) and all blocks together fewer `products`
(rows times keys times D, of causal blocks half): then ours is over sooner, often before torch's is launched.
Windows, many blocks that torch's own attention takes as heads, have limits of their own; so has float32 where
products may be of TF32, of which torch's own attention makes three for each, whatever is allowed.
"""

from __future__ import annotations

import json
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.kernels.crossover import KernelCrossover
from lattend.attend.kernels.diagonal_blocks import diagonal_blocks
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.attend.kernels.triton.kernel import may_take_hopper
from lattend.attend.kernels.triton.shapes import padded
from lattend.plans.plan import plan

FILE = Path(__file__).with_name("gpu_crossovers.json")
WIDTHS = (128, 256)  # head dimensions up to these have crossovers of their own
HALF = (torch.bfloat16, torch.float16)
PRECISIONS = ("half", "float32", "TF32")
# Head dimensions up to 128 are the file's; of others, the keys from which on Hopper's was seen ahead of cuDNN
OTHER_HEADS = {64: 16_384, 256: 4096}


class Small(NamedTuple):
    """Numbers in the keys of a block, and products in all of them, below which our forward is over sooner:
    inf where it was at all sizes, up to so many keys.
    """

    numbers: float
    products: float
    measured: int = 0


class HopperCausal(NamedTuple):
    """Causal blocks on which Hopper's forward is ahead of cuDNN: from so many keys on, and before so many
    rows in all heads of all batch elements, whose keys no longer stay in the cache.
    """

    keys: int
    rows: int


@lru_cache(maxsize=1)
def measured() -> dict[str, Any]:
    """The file; where it has no limit, that is inf."""
    return json.loads(FILE.read_text(), object_hook=_without_none)


def _without_none(found: dict[str, Any]) -> dict[str, Any]:
    return {name: inf if one is None else one for name, one in found.items()}


@lru_cache(maxsize=32)
def small_blocks(precision: str, causal: bool, width: int) -> Small:
    """What was found for one of PRECISIONS, causal or full blocks, and a head dimension."""
    limit = next((limit for limit in WIDTHS if width <= limit), WIDTHS[-1])
    return Small(**measured()["forward"][precision]["causal" if causal else "full"][f"D to {limit}"])


def precision_of(q: Tensor, width: int) -> str:
    """Which of PRECISIONS products of such queries have; TF32 was measured up to the last of WIDTHS."""
    if q.dtype in HALF:
        return "half"
    return "TF32" if q.dtype == torch.float32 and uses_tf32() and width <= WIDTHS[-1] else "float32"


def forward(call: AttentionCall, q: Tensor, v: Tensor) -> KernelCrossover | None:
    """Up to which blocks a kernel of ours is over sooner; None where torch's own attention comes first.

    That is so for a training step whose gradients may differ from run to run: small ones last as long as
    the host takes, and torch needs no Python to differentiate its own. Of such steps only those of TF32 and
    float32 ones whose heads share keys may be ours, and these gradients are summed head by head, which takes
    longer. Any other forward pass is chosen by itself, since the backward pass is ours whichever it is.
    """
    found = diagonal_blocks(plan(call.rule)) if q.device.type == "cuda" else None
    if found is None:
        return None
    keys, width, whole = found.window or v.shape[2], max(q.shape[3], v.shape[3]), found.window is None
    precision, heads, kv_heads = precision_of(q, width), max(1, q.shape[1]), v.shape[1]
    torchs = precision == "half" or (precision == "float32" and heads == kv_heads)
    if call.trains and not call.deterministic and whole and torchs:
        return None
    if found.causal and whole and _ahead_on_hopper(call, q, v):
        return KernelCrossover(
            "forward", keys, width, _hopper_causal(width).rows / q.shape[:2].numel() * width
        )
    small = small_blocks(precision, found.causal, width) if whole else Small(**measured()["windows"])
    rows = max(1, q.shape[:3].numel()) * (0.5 if found.causal else 1)
    share = kv_heads / heads if call.trains and not call.deterministic else 1
    return KernelCrossover(
        "forward", keys, width, min(small.numbers, small.products / rows) * share, small.measured * width
    )


def backward(call: AttentionCall, q: Tensor) -> KernelCrossover | None:
    """From which windows on torch's own backward pass is faster; None where there are no windows."""
    found = diagonal_blocks(plan(call.rule)) if q.device.type == "cuda" else None
    if found is None or found.window is None:
        return None
    return KernelCrossover("backward", found.window, q.shape[-1], measured()["backward"]["windows"])


def cached_keys(step: str, keys: Tensor) -> float:
    """From how many keys in a row of a cache, [batch, kv_heads, slots, D], torch's own attention is faster.

    `step` is a "token", or a "draft" of several tokens.
    """
    rows, width = keys.shape[:2].numel(), keys.shape[3]
    return measured()["decoding"][step] / max(1, rows * width)


def cudnn_decodes(keys: Tensor) -> bool:
    """Whether cuDNN decodes a token faster than FlashAttention, which needs few kv heads to be as fast."""
    return keys.shape[:2].numel() >= measured()["decoding"]["cudnn rows"]


def _ahead_on_hopper(call: AttentionCall, q: Tensor, v: Tensor) -> bool:
    """Whether Hopper's kernel is ahead of cuDNN on a causal block, if it is not too large."""
    limits = _hopper_causal(max(q.shape[3], v.shape[3]))
    long = v.shape[2] >= limits.keys and q.shape[:3].numel() < limits.rows and q.shape[2] == v.shape[2]
    return long and q.dtype in HALF and may_take_hopper(call, q, v)


def _hopper_causal(width: int) -> HopperCausal:
    """The limits for a head dimension: of a wide one fewer rows fit the cache."""
    known, size = HopperCausal(**measured()["hopper causal"]), padded(width)
    if size == WIDTHS[0]:
        return known
    return HopperCausal(OTHER_HEADS.get(size, 1 << 62), min(known.rows, known.rows * WIDTHS[0] // size))
