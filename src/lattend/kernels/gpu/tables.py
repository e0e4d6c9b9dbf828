"""Tile tables that depend on data: made on the device, from arrays that never leave it.

Where a part asks for `doc[q] == doc[k]`, a row's keys lie between the first and the last position with its
entry. Those are found by one stable sort, and a tile's range is cut to those of its rows; nothing is
read back.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lattend.plans.part import Part


def runs(entries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each position of [batch, n]: first and last with its entry, and whether all between have it.

    >>> first, last, whole = runs(torch.tensor([[5, 5, 7, 5]]))
    >>> first.tolist(), last.tolist(), whole.tolist()
    ([[0, 0, 2, 0]], [[3, 3, 2, 3]], [[False, False, True, False]])
    """
    ordered, where = entries.sort(dim=-1, stable=True)
    count = torch.arange(entries.shape[-1], device=entries.device).expand_as(ordered)
    changes = torch.ones_like(ordered, dtype=torch.bool)
    changes[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    begin = torch.where(changes, count, 0).cummax(-1).values
    ends = torch.ones_like(changes)
    ends[:, :-1] = changes[:, 1:]
    end = torch.where(ends, count, entries.shape[-1]).flip(-1).cummin(-1).values.flip(-1)
    first, last = where.gather(-1, begin), where.gather(-1, end)
    whole = last - first == end - begin
    empty = torch.empty_like(where)
    spread = [empty.scatter(-1, where, x) for x in (first, last, whole.long())]
    return spread[0], spread[1], spread[2].bool()


def refined(part: Part, table: Tensor, rows: int, arrays: Mapping[str, Tensor]) -> Tensor:
    """The table [1, heads, tiles, columns] cut to what the data leave, for each batch element."""
    plain = len(part.axes) == 1 and all(
        order.period == 1 for order in (part.axes[0].outer_order, part.axes[0].inner_order)
    )
    if not part.same or not plain or not table.shape[-2]:
        return table
    axis = part.axes[0]
    begin, end, full_begin, full_end = (table[..., column].long() for column in (3, 4, 5, 6))
    base = table[..., 2].long()
    position = table[..., 0, None].long() + table[..., 1, None] + torch.arange(rows, device=table.device)
    inside = (position >= axis.first) & (position <= axis.last)
    at = position.clamp(0, axis.line.outer_size - 1)[0]  # [heads, tiles, rows]
    for name in part.same:
        first, last, whole = runs(arrays[name].flatten(1))
        one = lambda x: x[:, at]  # noqa: E731  [batch, heads, tiles, rows]
        low = torch.where(inside, one(first), axis.line.inner_size)
        high = torch.where(inside, one(last), -1)
        begin = torch.maximum(begin, low.amin(-1) - base)
        end = torch.minimum(end, high.amax(-1) + 1 - base)
        every = (one(whole) | ~inside).all(-1)
        full_begin = torch.maximum(full_begin, torch.where(inside, one(first), -1).amax(-1) - base)
        last_common = torch.where(inside, one(last), axis.line.inner_size).amin(-1) + 1 - base
        full_end = torch.where(every, torch.minimum(full_end, last_common), full_begin)
    end = torch.maximum(begin, end)
    full_begin = torch.minimum(torch.maximum(full_begin, begin), end)
    full_end = torch.minimum(torch.maximum(full_end, full_begin), end)
    found = table.expand(begin.shape[0], *table.shape[1:]).clone()
    for column, values in zip((3, 4, 5, 6), (begin, end, full_begin, full_end), strict=True):
        found[..., column] = values
    return found
