"""Tile tables that depend on data: made on the device, from arrays that never leave it.

Where a part asks for `doc[q] == doc[k]`, a row's keys lie between the first and the last position with its
entry. Those are found by one stable sort, and a tile's range is cut to those of its rows. Where it looks
up a table of blocks, the attended blocks of each row of that table are listed; the lists lie behind the
tile table, and each tile says where its own begins. Nothing is read back.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lattend.plans.part import Part
from lattend.plans.tiles import Tiles

OFFSET_BITS = 31


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
    found = cut(part, table, rows, arrays)
    return found if part.block_table is None else _listed(part, found, arrays[part.block_table.array])


def with_known_lists(found: Tiles, device: torch.device) -> Tensor:
    """The table [1, heads, tiles, columns] on the device, with the lists that the plan knows."""
    table = torch.as_tensor(found.table, device="cpu").to(device)[None]
    if found.lists is None:
        return table
    return _packed(table, table[..., 2].long(), torch.as_tensor(found.lists, device="cpu").to(device))


def cut(part: Part, table: Tensor, rows: int, arrays: Mapping[str, Tensor]) -> Tensor:
    """The table [batch or 1, heads, tiles, columns] cut to the entries that must be equal."""
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
    at = position.clamp(0, axis.outer_size - 1)[0]  # [heads, tiles, rows]
    for name in part.same:
        first, last, whole = (x[:, at] for x in runs(arrays[name].flatten(1)))  # [batch, heads, tiles, rows]
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
    for column, values in zip((3, 4, 5, 6), (begin, end, full_begin, full_end), strict=True):
        found[..., column] = values
    return found


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
