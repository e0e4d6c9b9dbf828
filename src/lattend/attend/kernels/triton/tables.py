"""Tile tables that depend on data: made on the device, from arrays that never leave it.

Where a part asks for `doc[q] == doc[k]`, a row's keys lie between the first and the last position with its
entry. Those are found by one stable sort, and a tile's range is cut to those of its rows, and to bounds that
look up data, `k >= begin[q]`. Where a part looks up a table of blocks, the attended blocks of each row of
that table are listed; the lists lie behind the tile table, and each tile says where its own begins. Nothing
is read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from lattend.attend.tensor_terms import ELEMENT, evaluate
from lattend.plans.part import Part
from lattend.plans.tiles import (
    FULL_END,
    FULL_FIRST,
    INNER_BASE,
    INNER_END,
    INNER_FIRST,
    OUTER_BASE,
    OUTER_SLOT,
    Tiles,
)
from lattend.rules.axes import HEAD

OFFSET_BITS = 31
RANGE = (INNER_FIRST, INNER_END, FULL_FIRST, FULL_END)  # columns of a tile on a line


def runs(outer: Tensor, inner: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each position of outer [batch, n]: first and last of inner [batch, m] with its entry, and whether
    all between have it. Where none has it, the first is m and the last -1.

    >>> first, last, whole = runs(torch.tensor([[5, 7, 9]]), torch.tensor([[5, 5, 7, 5]]))
    >>> first.tolist(), last.tolist(), whole.tolist()
    ([[0, 2, 4]], [[3, 2, -1]], [[False, True, False]])
    """
    batch, size = max(len(outer), len(inner)), inner.shape[-1]
    kind = torch.promote_types(outer.dtype, inner.dtype)
    outer, inner = (x.to(kind).expand(batch, -1).contiguous() for x in (outer, inner))
    ordered, where = inner.sort(dim=-1, stable=True)
    begin, end = (torch.searchsorted(ordered, outer, right=right) for right in (False, True))
    there = end > begin
    if not size:
        return torch.zeros_like(begin), begin - 1, there
    first = where.gather(-1, begin.clamp(max=size - 1)).masked_fill(~there, size)
    last = where.gather(-1, (end - 1).clamp(min=0)).masked_fill(~there, -1)
    return first, last, there & (last - first == end - begin - 1)


def refined(part: Part, table: Tensor, rows: int, arrays: Mapping[str, Tensor]) -> Tensor:
    """The table [1, heads, tiles, columns] cut to what the data leave, for each batch element."""
    found = cut(part, table, rows, arrays)
    return found if part.block_table is None else _listed(part, found, arrays[part.block_table.array])


def with_known_lists(found: Tiles, device: torch.device) -> Tensor:
    """The table [1, heads, tiles, columns] on the device, with the lists that the plan knows."""
    table = torch.as_tensor(found.table, device="cpu").to(device)[None]
    if found.lists is None:
        return table
    return _packed(table, table[..., 2].long(), torch.as_tensor(found.lists, device="cpu").to(device))


def cut(part: Part, table: Tensor, rows: int, arrays: Mapping[str, Tensor]) -> Tensor:
    """The table [batch or 1, heads, tiles, columns] cut to the entries that must be equal, and to the bounds
    that look up data.
    """
    if not part.cut_by or not table.shape[-2]:
        return table
    axis = part.axes[0]
    if len(part.axes) > 1 or axis.outer_order.period != 1 or axis.inner_order.period != 1:
        found = table.clone()
        found[..., FULL_END] = found[..., FULL_FIRST]
        return found
    begin, end, full_begin, full_end = (table[..., column].long() for column in RANGE)
    base = table[..., INNER_BASE].long()
    position = table[..., OUTER_SLOT, None].long() + table[..., OUTER_BASE, None]
    position = position + torch.arange(rows, device=table.device)
    inside = (position >= axis.first) & (position <= axis.last)
    at = position.clamp(0, axis.outer_size - 1)[0]  # [heads, tiles, rows]
    for first, last, whole in _row_ranges(part, at, arrays):  # [batch, heads, tiles, rows]
        low = torch.where(inside, first, axis.inner_size)
        high = torch.where(inside, last, -1)
        begin = torch.maximum(begin, low.amin(-1) - base)
        end = torch.minimum(end, high.amax(-1) + 1 - base)
        every = (whole | ~inside).all(-1)
        full_begin = torch.maximum(full_begin, torch.where(inside, first, -1).amax(-1) - base)
        last_common = torch.where(inside, last, axis.inner_size).amin(-1) + 1 - base
        full_end = torch.where(every, torch.minimum(full_end, last_common), full_begin)
    end = torch.maximum(begin, end)
    full_begin = torch.minimum(torch.maximum(full_begin, begin), end)
    full_end = torch.minimum(torch.maximum(full_end, full_begin), end)
    found = table.expand(begin.shape[0], *table.shape[1:]).clone()
    for column, values in zip(RANGE, (begin, end, full_begin, full_end), strict=True):
        found[..., column] = values
    return found


def _row_ranges(
    part: Part, at: Tensor, arrays: Mapping[str, Tensor]
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The first and last inner position that data leave the rows `at`, and whether they leave all between."""
    for same in part.same:
        found = runs(arrays[same.outer.array].flatten(1), arrays[same.inner.array].flatten(1))
        first, last, whole = (x[:, at] for x in found)
        yield first, last, whole
    batch, device = max(len(array) for array in arrays.values()), at.device
    names: dict[str, Any] = {**part.numbers, part.axes[0].outer: at}
    names[HEAD] = torch.arange(at.shape[0], device=device)[:, None, None]
    names[ELEMENT] = torch.arange(batch, device=device).view(-1, 1, 1, 1)
    shape, size = (batch, *at.shape), part.axes[0].inner_size
    everywhere = torch.ones(shape, dtype=torch.bool, device=device)
    lowest, highest = (torch.full((), end, device=device).expand(shape) for end in (0, size - 1))
    for place, terms in enumerate(part.data_bounds):
        for term in terms:
            bound = evaluate(term, names, arrays).long().clamp(-1, size).expand(shape)
            yield (bound, highest, everywhere) if place == 0 else (lowest, bound, everywhere)


def _listed(part: Part, table: Tensor, entries: Tensor) -> Tensor:
    """The table with its inner slots in the attended blocks; see plans/tiles.py, with_lists."""
    if part.block_table is None:
        raise ValueError("the part has no table of blocks")
    size, (heads, rows, columns) = part.block_table.inner, part.blocks
    attended = part.block_table.attended(entries, part.blocks)  # [batch, heads, rows, columns]
    batch, device = len(attended), table.device
    before = torch.nn.functional.pad(attended.cumsum(-1, dtype=torch.int32), (1, 0))
    column = torch.arange(columns, dtype=torch.int32, device=device)
    # attended blocks first, then the others: no place is written twice
    place = torch.where(attended, before[..., :-1], before[..., -1:] + column - before[..., :-1])
    lists = torch.empty_like(place).scatter_(-1, place.long(), column.expand_as(place))
    table = table.expand(max(batch, len(table)), *table.shape[1:]).clone()
    each, head = (torch.arange(count, device=device) for count in table.shape[:2])
    row = (each[:, None, None] % batch * heads + head[:, None] % heads) * rows + table[
        ..., 1
    ] // part.block_table.outer
    begin, end = table[..., 3].long(), table[..., 4].long()
    last = torch.where(end > begin, -(-end // size), begin // size)
    first, after = (
        before.flatten()[row * (columns + 1) + x.clamp(0, columns)] for x in (begin // size, last)
    )
    ends = (last == columns) & attended[..., -1].flatten()[row] & (after > first)
    beyond = columns * size - part.axes[0].inner_size  # the last block may not be whole
    table[..., 3] = 0
    table[..., 4] = (after - first) * size - ends * beyond
    return _packed(table, row * columns + first, lists)


def _packed(table: Tensor, offsets: Tensor, lists: Tensor) -> Tensor:
    """The table as the beginning of a buffer that goes on with the lists.

    A tile's inner base becomes the way from its entry to its list, and the first column of its full range,
    which it has not, the bits of it that an int32 does not hold.
    """
    entries = offsets.numel()
    entry = torch.arange(entries, device=table.device).view(offsets.shape)
    apart = (entries - entry) * table.shape[-1] + offsets
    table = table.clone()
    table[..., 2] = apart & ((1 << OFFSET_BITS) - 1)
    table[..., 5] = apart >> OFFSET_BITS
    buffer = torch.cat([table.flatten(), lists.flatten()])
    return buffer[: table.numel()].view(table.shape)
