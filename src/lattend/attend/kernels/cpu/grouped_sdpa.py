"""Small work on a CPU: each group of tiles is one call of torch's own attention, which takes fewer steps.

It takes plain scores only: no bias, softcap, dropout or padding. Tensors are [B, positions, D] with
B = batch * heads; narrow floats are widened to float32 first. Tiles are read where they lie and may overlap.
A query that is in several groups has their results weighed by their log-sum-exps; gradients are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod

import torch
from torch import Tensor

from lattend.attend.call.attention_call import AttentionCall, BackwardInputs
from lattend.attend.kernels.cpu.tile_group import Positions, Strided, TileGroup

MAX_WORK = 1 << 24  # multiply-adds of a product; beyond, products of many tiles at once are faster


def takes(call: AttentionCall, groups: Sequence[TileGroup], q: Tensor, v: Tensor) -> bool:
    """Whether scores are plain ones and the work is small."""
    if not is_plain(call, q, v):
        return False
    return q.shape[0] * q.shape[2] * sum(prod(group.shape) for group in groups) <= MAX_WORK


def is_plain(call: AttentionCall, q: Tensor, v: Tensor) -> bool:
    """Whether there is nothing but scores, of heads as wide as their values."""
    if call.term is not None or call.softcap is not None or call.seed is not None:
        return False
    if call.key_range is not None or call.key_mask is not None:
        return False
    return q.shape[-1] == v.shape[-1] and 0 not in q.shape and 0 not in v.shape


def forward(
    groups: Sequence[TileGroup], scale: float, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """The output [B, n, D] and the log-sum-exp [B, n]: 0 and -inf for a query without keys."""
    run = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    q, k, v = (_wide(x) for x in (q, k, v))
    if len(groups) == 1 and _in_order(groups[0].queries, q.shape[1]):
        (group,) = groups
        given = _read(q, group.queries), _read(k, group.keys), _read(v, group.keys)
        out, lse = run(*given, 0.0, False, attn_mask=group.additive(q.dtype), scale=scale)
        return out.reshape(q.shape), _with_empty(group, lse).reshape(q.shape[:-1])
    out, lse = torch.zeros_like(q), q.new_full((*q.shape[:-1], 1), -inf)
    for group in groups:
        given = _read(q, group.queries), _read(k, group.keys), _read(v, group.keys)
        found, sums = run(*given, 0.0, False, attn_mask=group.additive(q.dtype), scale=scale)
        sums = _with_empty(group, sums)[..., None]
        if not group.first:
            found, sums = _merged(found, sums, _read(out, group.queries), _read(lse, group.queries))
        _put(out, group.queries, found)
        _put(lse, group.queries, sums)
    return out, lse[..., 0]


def backward(
    groups: Sequence[TileGroup], scale: float, given: BackwardInputs
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of q, k and v."""
    run = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    grad, q, k, v, out, lse = (_wide(x) for x in given if x is not None)
    lse = lse.masked_fill(lse == -inf, 0)[..., None]  # exp(-inf - 0) is 0, and -inf + inf is NaN
    dq, dk, dv = (torch.zeros_like(x) for x in (q, k, v))
    for group in groups:
        grad_, q_, out_, lse_ = (_read(x, group.queries) for x in (grad, q, out, lse))
        tensors = (grad_, q_, _read(k, group.keys), _read(v, group.keys), out_, lse_[..., 0])
        grads = run(*tensors, 0.0, False, attn_mask=group.additive(q.dtype), scale=scale)
        for x, at, found in zip((dq, dk, dv), (group.queries, group.keys, group.keys), grads, strict=True):
            _add(x, at, found)
    return dq, dk, dv


def _wide(x: Tensor) -> Tensor:
    """In float32 at least, the numbers of a row side by side."""
    x = x.detach().to(torch.promote_types(x.dtype, torch.float32))
    return x if x.stride(-1) == 1 else x.contiguous()


def _in_order(at: Positions, n: int) -> bool:
    """Whether tiles have all of n positions, one after another."""
    if not isinstance(at, Strided) or (at.start, at.row_step, at.tiles * at.rows) != (0, 1, n):
        return False
    return at.tiles == 1 or at.tile_step == at.rows


def _with_empty(group: TileGroup, lse: Tensor) -> Tensor:
    """The log-sum-exps, -inf where a query has no key in its tile: torch says 0 there."""
    return lse if group.empty is None else lse.masked_fill(group.empty, -inf)


def _merged(found: Tensor, sums: Tensor, before: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Results over two sets of keys as those over both."""
    both = torch.logaddexp(sums, known)
    base = both.masked_fill(both == -inf, 0)
    return found * (sums - base).exp() + before * (known - base).exp(), both


def _view(x: Tensor, at: Strided) -> Tensor:
    """Strided positions in x [B, positions, D], as [B, tiles, rows, D]."""
    by_member, by_row, by_column = x.stride()
    steps = (by_member, at.tile_step * by_row, at.row_step * by_row, by_column)
    return x.as_strided(
        (len(x), at.tiles, at.rows, x.shape[2]), steps, x.storage_offset() + at.start * by_row
    )


def _read(x: Tensor, at: Positions) -> Tensor:
    """The same of any positions, copied where they are not strided."""
    if isinstance(at, Strided):
        return _view(x, at)
    found = x.new_empty(len(x), at.numel(), x.shape[2])
    for member, part in zip(x, found, strict=True):  # threads share the work only on a matrix
        torch.index_select(member, 0, at.flatten(), out=part)
    return found.view(len(x), *at.shape, x.shape[2])


def _put(x: Tensor, at: Positions, found: Tensor) -> None:
    if isinstance(at, Strided):
        _view(x, at).copy_(found)
    else:
        x.index_copy_(1, at.flatten(), found.flatten(1, 2))


def _add(x: Tensor, at: Positions, found: Tensor) -> None:
    """Adds [B, tiles, rows, D] to x; tiles that share positions in sequence."""
    if isinstance(at, Strided):
        view, phases = _view(x, at), at.phases
        for phase in range(min(phases, at.tiles)):
            view[:, phase::phases].add_(found[:, phase::phases])
        return
    for member, part in zip(x, found.flatten(1, 2), strict=True):
        member.index_add_(0, at.flatten(), part)
