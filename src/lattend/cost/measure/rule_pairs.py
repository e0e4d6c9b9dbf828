"""The pairs of lt.attention: needed by its rule, executed by the tiles of the kernel that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lattend.attend.call.attended_pairs import attended_pairs
from lattend.attend.call.attention_call import AttentionCall
from lattend.attend.explain.meta_call import MetaTensor
from lattend.attend.explain.prediction import executed_work, masks_of
from lattend.attend.kernels.dispatch import chosen
from lattend.attend.kernels.triton.kernel import may_take_hopper
from lattend.attend.operators.flop_formulas import call_of
from lattend.cost.measure.pairs import Pairs
from lattend.errors import LattendError
from lattend.recent import Recent

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
