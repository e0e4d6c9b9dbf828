"""Tile tables that depend on data, by torch: for the CPU kernel, for explain, and to test those of the GPU.

Where a part asks for `doc[q] == doc[k]`, a row's keys lie between the first and the last position with its
entry. Those are found by one stable sort, and a tile's range is cut to those of its rows, and to bounds that
look up data, `k >= begin[q]`. Where a part looks up a table of blocks, the attended blocks of each row of
that table are listed; the lists lie behind the tile table, and each tile says where its own begins.
device_tables.py makes the same tables on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lattend.attend.bias import derivative, leaves
from lattend.attend.call.tensor_terms import ELEMENT, evaluate
from lattend.plans.part import Part
from lattend.plans.plan import max_magnitude
from lattend.plans.tables.adjacency import has_large_numbers, in_order
from lattend.plans.tiles import (
    FULL_END,
    FULL_FIRST,
    INNER_BASE,
    INNER_END,
    INNER_FIRST,
    OUTER_BASE,
    OUTER_SLOT,
    PER_AXIS,
    Tiles,
)
from lattend.rules.axes import HEAD
from lattend.rules.language.expr import Term
from lattend.rules.language.intervals import Interval

REACH_32 = 1 << 31  # offsets from here on need 64 bits
OFFSET_BITS = 31
OFFSET_HIGH = len(PER_AXIS)  # of a table with lists: the bits of an offset that the inner base does not hold
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
    return _packed(
        table, table[..., INNER_BASE].long(), torch.as_tensor(found.lists, device="cpu").to(device)
    )


def has_large_bias(part: Part, term: Term | None, tensors: Sequence[str], batch: int) -> bool:
    """The same on the way to a bias and to its slopes, as far as these are computed in whole numbers."""
    if term is None:
        return False
    slopes = (derivative(term, leaf) for leaf in leaves(term, tuple(tensors)))
    return max_magnitude(part, term, *slopes, names={ELEMENT: Interval(0, batch)}) >= 1 << 30


def is_wide(part: Part, arrays: Mapping[str, Tensor], *tensors: Tensor) -> bool:
    """Whether a place in memory, or a number of the rule, may need 64 bits."""
    return furthest(*tensors) >= REACH_32 or have_far_entries(*arrays.values()) or has_large_numbers(part)


def furthest(*tensors: Tensor) -> int:
    """The offset within a head behind its last number, at most."""
    return max(x.shape[2] * max(x.stride(2), x.shape[3]) for x in tensors)


def have_far_entries(*arrays: Tensor) -> bool:
    """Whether a place in one of these, [batch or 1, …], may need 64 bits."""
    return any(x.numel() >= REACH_32 for x in arrays)


def without_full(table: Tensor) -> Tensor:
    """The table with no full range in any tile."""
    found = table.clone()
    found[..., FULL_END] = found[..., FULL_FIRST]
    return found


def elements(part: Part, arrays: Mapping[str, Tensor]) -> int:
    """How many batch elements have tables of their own: 1 where all have the same."""
    listed = [] if part.block_table is None else [part.block_table.array]
    return max(len(arrays[name]) for name in (*part.cut_by, *listed))


def cut(part: Part, table: Tensor, rows: int, arrays: Mapping[str, Tensor]) -> Tensor:
    """The table [batch or 1, heads, tiles, columns] cut to the entries that must be equal, and to the bounds
    of each row, where some of them look up data.
    """
    if not part.cut_by or not table.shape[-2]:
        return table
    if not in_order(part):
        return without_full(table)
    axis, size = part.axes[0], part.axes[0].inner_size
    begin, end, full_begin, full_end = (table[..., column].long() for column in RANGE)
    base = table[..., INNER_BASE].long()
    slot = table[..., OUTER_SLOT, None].long() + torch.arange(rows, device=table.device)
    position = slot + table[..., OUTER_BASE, None]
    inside = (position >= axis.first) & (position <= axis.last)
    if axis.class_slots is not None:
        inside &= slot < axis.class_slots
    at = position.clamp(0, axis.outer_size - 1)[0]  # [heads, tiles, rows]
    low, high, whole = _row_ranges(part, at, arrays)  # [batch, heads, tiles, rows]
    some = inside & (low <= high)
    begin = torch.maximum(begin, torch.where(some, low, size).amin(-1) - base)
    end = torch.maximum(begin, torch.minimum(end, torch.where(some, high, -1).amax(-1) + 1 - base))
    full_begin = torch.maximum(full_begin, torch.where(inside, low, 0).amax(-1) - base)
    full_end = torch.minimum(full_end, torch.where(inside, high, size - 1).amin(-1) + 1 - base)
    full_end = torch.where((whole | ~inside).all(-1), full_end, full_begin)
    full_begin = torch.minimum(torch.maximum(full_begin, begin), end)
    full_end = torch.minimum(torch.maximum(full_end, full_begin), end)
    found = table.expand(begin.shape[0], *table.shape[1:]).clone()
    for column, values in zip(RANGE, (begin, end, full_begin, full_end), strict=True):
        found[..., column] = values
    return found


def _row_ranges(part: Part, at: Tensor, arrays: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """The first and last inner position of the rows `at`, and whether equal entries leave all between."""
    axis, device = part.axes[0], at.device
    given = {name: arrays[name] for name in part.cut_by}
    batch = max(map(len, given.values()))
    names: dict[str, Any] = {**part.numbers, axis.outer: at}
    names[HEAD] = torch.arange(at.shape[0], device=device)[:, None, None]
    names[ELEMENT] = torch.arange(batch, device=device).view(-1, 1, 1, 1)

    def bound(term: Any) -> Tensor:
        value = torch.as_tensor(evaluate(term, names, given), device=device)
        return value.long().clamp(-1, axis.inner_size)

    low = torch.zeros((batch, *at.shape), dtype=torch.int64, device=device)
    high, whole = low + (axis.inner_size - 1), low == 0
    for term in axis.lows:
        low = torch.maximum(low, bound(term))
    for term in axis.highs:
        high = torch.minimum(high, bound(term))
    for same in part.same:
        found = runs(arrays[same.outer.array].flatten(1), arrays[same.inner.array].flatten(1))
        first, last, without_gap = (x[:, at] for x in found)
        low, high, whole = torch.maximum(low, first), torch.minimum(high, last), whole & without_gap
    return low, high, whole


def _listed(part: Part, table: Tensor, entries: Tensor) -> Tensor:
    """The table with its inner slots in the attended blocks; see plans/tiles.py, with_lists."""
    if part.block_table is None:
        raise ValueError("the part has no table of blocks")
    size, (heads, rows, columns) = part.block_table.inner, part.blocks
    attended = part.block_table.attended(entries, part.blocks)  # [batch, heads, rows, columns]
    batch, device = len(attended), table.device
    attended = torch.nn.functional.pad(attended, (0, 1))  # none at the end
    before = attended.cumsum(-1, dtype=torch.int32) - attended.int()
    column = torch.arange(columns + 1, dtype=torch.int32, device=device)
    # attended blocks first, then the others: no place is written twice
    place = torch.where(attended, before, before[..., -1:] + column - before)
    lists = torch.empty_like(place).scatter_(-1, place.long(), column.expand_as(place))
    table = table.expand(max(batch, len(table)), *table.shape[1:]).clone()
    each, head = (torch.arange(count, device=device) for count in table.shape[:2])
    row = (each[:, None, None] % batch * heads + head[:, None] % heads) * rows
    row = (row + table[..., OUTER_BASE] // part.block_table.outer) * (columns + 1)
    # a tile without slots may begin anywhere
    begin, *others = (table[..., column].long().clamp(max=columns * size) for column in RANGE)
    first = before.flatten()[row + begin // size]

    def below(position: Tensor) -> Tensor:
        """How many slots of the tile's list lie below a position."""
        block = row + position // size
        slots = (before.flatten()[block] - first) * size + attended.flatten()[block] * (position % size)
        return torch.where(others[0] > begin, slots.clamp(min=0), 0)

    end, full_first, full_end = map(below, others)
    slots = (torch.zeros_like(end), end, full_first, torch.maximum(full_first, full_end))
    for place, values in zip(RANGE, slots, strict=True):
        table[..., place] = values
    return _packed(table, row + first, lists)


def _packed(table: Tensor, offsets: Tensor, lists: Tensor) -> Tensor:
    """The table, with one more column, as the beginning of a buffer that goes on with the lists.

    A tile's inner base becomes the way from its entry to its list; the new column has the bits of it that an
    int32 does not hold.
    """
    entries = offsets.numel()
    entry = torch.arange(entries, device=table.device).view(offsets.shape)
    apart = (entries - entry) * (table.shape[-1] + 1) + offsets
    high = (apart >> OFFSET_BITS).int()[..., None]
    table = torch.cat([table[..., :OFFSET_HIGH], high, table[..., OFFSET_HIGH:]], -1)
    table[..., INNER_BASE] = apart & ((1 << OFFSET_BITS) - 1)
    buffer = torch.cat([table.flatten(), lists.flatten()])
    return buffer[: table.numel()].view(table.shape)
