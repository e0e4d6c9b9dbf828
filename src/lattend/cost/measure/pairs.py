"""Pairs: which (query, key) pairs an attention attends, from its arguments or by its rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lattend.attend.call.attended_pairs import attended_pairs
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.explain.meta_call import MetaTensor
from lattend.attend.explain.prediction import executed_work, masks_of
from lattend.attend.kernels.dispatch import chosen
from lattend.attend.kernels.triton.kernel import may_take_hopper
from lattend.attend.operators.flop_formulas import call_of
from lattend.cost.measure.tally import Tally
from lattend.errors import LattendError
from lattend.plans.plan import TILE, tile_text  # libraries do not say how they cut causal blocks
from lattend.recent import Recent

LOWEST = -1e9  # a score this low, or lower, has weight 0 in every dtype; half precision has its own lowest
UNKNOWN = "mask not known: attention in {} is counted dense"


@dataclass(frozen=True)
class Pairs:
    """The pairs of a whole attention, all batch elements and heads, and the sizes of a key and a value."""

    needed: int
    executed: int
    dense: int
    head_dim: int
    value_dim: int
    rows: int = 0  # queries that have a key, for the sums of their weights
    note: str = ""
    tiles: str = ""  # or the kernel, that executed pairs are those of; empty where all pairs are

    @property
    def forward(self) -> Tally:
        """Scores and mixing; plain softmax, one exponential and one division a pair."""
        each = self.head_dim + self.value_dim
        return Tally(
            *(pairs * each for pairs in (self.needed, self.executed, self.dense)),
            exponentials=self.needed,
            divisions=self.needed,
            adds=max(0, self.needed - self.rows),
            multiplies=self.needed,
        )

    @property
    def backward(self) -> Tally:
        """Gradients of queries, keys, values and weights: twice the forward; scores are computed again."""
        each = 2 * (self.head_dim + self.value_dim)
        recomputed = each + self.head_dim
        return Tally(self.needed * each, self.executed * recomputed, self.dense * recomputed)

    def scaled(self, products: Tally) -> Tally:
        """Products over all pairs, of which those of the attended ones are needed."""
        return Tally(products.needed * self.needed // max(1, self.dense), products.executed, products.dense)


def pairs_of(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    *,
    grouped: bool = True,
    full_size: bool = False,
) -> Pairs:
    """The pairs of torch's scaled_dot_product_attention; `full_size` says that it computes all of them.

    q and k are [..., n, D] and [..., m, D]. Causal attends k <= q, counted from the first of each; a mask of
    booleans its true entries, one of numbers those that are not lowest.
    """
    n, m = query.shape[-2], key.shape[-2]
    members = _members(query.shape[:-2], key.shape[:-2], grouped)
    dense = members * n * m
    sizes = query.shape[-1], value.shape[-1]
    shift, variant = 0, getattr(mask, "variant", None)
    if variant is not None:  # torch.nn.attention.bias.CausalBias
        causal, shift, mask = True, m - n if variant.name == "LOWER_RIGHT" else 0, None
    if mask is not None:
        attended = attended_in(mask)
        if attended is None:
            return Pairs(dense, dense, dense, *sizes, members * n, UNKNOWN)
        needed = attended * dense // max(1, mask.numel())
        return Pairs(needed, dense, dense, *sizes, min(needed, members * n))
    if not causal:
        return Pairs(dense, dense, dense, *sizes, members * n if m else 0)
    needed, rows = band(n, m, None, shift)
    executed = n * m if full_size else band_tiles(n, m, None, shift)
    tiles = "" if full_size else tile_text()
    return Pairs(members * needed, members * executed, dense, *sizes, members * rows, tiles=tiles)


def _members(query: Sequence[int], key: Sequence[int], grouped: bool) -> int:
    """How many grids of pairs there are: query heads may share kv heads."""
    if grouped and query and len(query) == len(key) and query[-1] % max(1, key[-1]) == 0:
        key = (*key[:-1], query[-1])
    return prod(torch.broadcast_shapes(tuple(query), tuple(key)))


def attended_in(mask: Tensor) -> int | None:
    """How many entries of a mask stand for an attended pair; None where they are not known."""
    if not has_values(mask):
        return None
    shown = mask.detach()
    for axis, (size, stride) in enumerate(zip(shown.shape, shown.stride(), strict=True)):
        if stride == 0 and size > 1:  # expanded: one stands for all
            shown = shown.narrow(axis, 0, 1)
    try:
        return int(torch.count_nonzero(attended_by(shown))) * (mask.numel() // max(1, shown.numel()))
    except RuntimeError:
        return None


def attended_by(mask: Tensor) -> Tensor:
    """A mask as booleans: numbers attend unless they are lowest."""
    return mask if mask.dtype == torch.bool else mask > lowest(mask.dtype)


def lowest(dtype: torch.dtype) -> float:
    """The number at or below which a score has no weight."""
    return max(LOWEST, torch.finfo(dtype).min) if dtype.is_floating_point else LOWEST


def has_values(x: Tensor) -> bool:
    """Whether the numbers of a tensor can be read."""
    from torch._subclasses.fake_tensor import FakeTensor

    return not (x.is_meta or isinstance(x, FakeTensor))


# Bands, as closed sums


def band(n: int, m: int, left: int | None, right: int | None) -> tuple[int, int]:
    """How many pairs q - left <= k <= q + right attends, and how many queries have one.

    >>> band(8, 8, None, 0), band(8, 8, 2, 0)  # causal; a window of 3 keys: 1 + 2 + 6*3
    ((36, 8), (21, 8))
    """
    q = np.arange(n, dtype=np.int64)
    first = np.zeros(n, np.int64) if left is None else np.maximum(0, q - left)
    last = np.full(n, m - 1) if right is None else np.minimum(m - 1, q + right)
    keys = np.maximum(0, last - first + 1)
    return int(keys.sum()), int((keys > 0).sum())


def band_tiles(n: int, m: int, left: int | None, right: int | None) -> int:
    """The pairs of the tiles that q - left <= k <= q + right touches."""
    tops = np.arange(0, n, TILE, dtype=np.int64)
    bottoms = np.minimum(n, tops + TILE)
    ends = np.full(len(tops), m) if right is None else np.clip(bottoms + right, 0, m)  # of the last query
    ends = np.minimum(m, -(-ends // TILE) * TILE)
    begins = np.zeros(len(tops), np.int64) if left is None else np.maximum(0, tops - left) // TILE * TILE
    return int(((bottoms - tops) * np.maximum(0, ends - begins)).sum())


# The fused operators


FUSED = {
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
    "_flash_attention_forward",
    "_efficient_attention_forward",
}
FUSED_BACKWARD = {f"{name.removesuffix('_forward')}_backward" for name in FUSED}


def pairs_of_fused(name: str, arguments: Mapping[str, Any]) -> Pairs:
    """The pairs of a fused operator, forward or backward."""
    query, key, value = (arguments[part] for part in ("query", "key", "value"))
    mask = arguments.get("attn_mask", arguments.get("attn_bias", arguments.get("bias")))
    mask = None if mask is None or mask.numel() == 0 else mask
    if name.startswith(("_flash", "_efficient")):
        return _of_rows(query, key, value, mask, arguments)
    return pairs_of(query, key, value, mask, bool(arguments.get("is_causal", False)))


def _of_rows(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, arguments: Mapping[str, Any]
) -> Pairs:
    """The same where positions come before heads, and sequences of several lengths may be packed."""
    heads, sizes = query.shape[-2], (query.shape[-1], value.shape[-1])
    names = (("cum_seq_q", "cu_seqlens_q"), ("cum_seq_k", "cu_seqlens_k"))
    ends = [arguments.get(a, arguments.get(b)) for a, b in names]
    packed = [end for end in ends if end is not None and end.numel() > 1]
    if packed and not all(map(has_values, packed)):
        dense = query.numel() // query.shape[-1] * key.shape[-3]
        return Pairs(dense, dense, dense, *sizes, note="lengths not known: attention in {} is counted dense")
    if packed:
        lengths = list(zip(*(torch.diff(end).tolist() for end in (packed[0], packed[-1])), strict=True))
    else:
        lengths = [(query.shape[-3], key.shape[-3])] * query.shape[0]
    if mask is not None:
        query, key, value = (x.transpose(-2, -3) for x in (query, key, value))
        return pairs_of(query, key, value, mask, False)
    causal = bool(arguments.get("is_causal", False)) or arguments.get("custom_mask_type", 0) > 0
    corner = arguments.get("custom_mask_type", 2) == 1  # counted from the first of each
    left, right = (arguments.get(f"window_size_{side}") for side in ("left", "right"))
    left, right = (None if side is None or side < 0 else int(side) for side in (left, right))
    needed = executed = dense = rows = 0
    tiles = tile_text() if causal or left is not None or right is not None else ""
    for n, m in lengths:
        shift = 0 if corner else m - n
        least = None if left is None else left - shift
        most = shift if causal else None if right is None else right + shift
        attended, queries = band(n, m, least, most)
        whole = band_tiles(n, m, least, most)
        needed, executed, dense = needed + attended, executed + whole, dense + n * m
        rows += queries
    return Pairs(needed * heads, executed * heads, dense * heads, *sizes, rows * heads, tiles=tiles)


PAIRS = "pairs not known: attention in {} is counted dense"
TILES = "tiles not known: attention in {} is executed dense"
_EXECUTED: Recent[object, int | None] = Recent(256)


def pairs_of_call(arguments: Mapping[str, Any], device: str = "cpu") -> Pairs:
    """The pairs of one call of the operator, forward or backward; meta tensors are taken to be on `device`.

    Executed are those of the tiles of the kernel that runs it.
    """
    q, k, v = arguments["q"], arguments["k"], arguments["v"]
    n, m, members = q.shape[2], k.shape[2], q.shape[0] * q.shape[1]
    call = call_of(arguments)
    each = masks_of(call, q)
    dense = n * m * each.count
    notes: list[str] = []
    needed = executed = None
    tiles = ""
    try:
        needed = attended_pairs(call, each.batch)
    except LattendError as error:
        notes.append(f"{PAIRS} ({error})")
    try:
        name, executed = executed_pairs(call, q, k, v, needed, device)
        tiles = f"by {name}" if executed is not None else ""
    except LattendError as error:
        notes.append(f"{TILES} ({error})")
    needed = dense if needed is None else needed
    executed = dense if executed is None else max(needed, executed)
    repeats = members // max(1, each.count)
    counts = (needed * repeats, executed * repeats, n * m * members)
    return Pairs(*counts, q.shape[-1], v.shape[-1], min(counts[0], n * members), "; ".join(notes), tiles)


def executed_pairs(
    call: AttentionCall, q: Tensor, k: Tensor, v: Tensor, needed: int | None, device: str
) -> tuple[str, int | None]:
    """The kernel that runs the call, and the pairs of its tiles, of all grids that differ."""
    shown = [_supposed(x, device if x.is_meta else x.device) for x in (q, k, v)]
    if any(array.is_meta for array in call.data.values()):
        raise LattendError(f"{next(iter(call.data))} has no values here")
    name = chosen(call, *shown)
    if call.data or call.key_range is not None:
        return name, executed_work(name, call, shown[0], shown[2], needed).executed
    hopper = may_take_hopper(call, shown[0], shown[2])
    at = (name, call.rule.key, tuple(call.rule.values.items()), q.shape, q.dtype, needed, hopper)
    return name, _EXECUTED.find(at, lambda: executed_work(name, call, shown[0], shown[2], needed).executed)


def _supposed(x: Tensor, device: str | torch.device) -> Tensor:
    """A tensor without memory that says it is on that device: nothing is computed with it."""
    stand_in = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta").as_subclass(MetaTensor)
    stand_in.on = torch.device(device)
    return stand_in
