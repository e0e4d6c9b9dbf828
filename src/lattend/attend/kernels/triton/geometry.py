"""Where a tile's rows and columns lie, inside a kernel: slots, positions and places in memory.

A kernel reads one row of the plan's table (see plans/tiles.py) and a header of numbers, which are
ordinary memory, so that no value of theirs compiles a kernel again:

    header[12*axis + …]   outer period, group; inner period, group or listed block; outer size, inner size;
                          outer stride, inner stride; first, last outer position; slots in a class; 0
    header[36 + …]        the rule's numbers, in the order the generated functions read them

Slots lie in memory by one of five kinds: 0 one after another, 1 every period-th, 2 group out of period, 3 in
listed blocks, 4 in listed blocks of whole steps, so that the positions of a step follow each other.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

AXIS_NUMBERS = 12
NUMBERS = 3 * AXIS_NUMBERS
# Arguments that follow n: a kernel compiled for one value of these serves all
PLAIN = ["rows", "keys", "tiles", "table_batch", "table_head", "limit", "mask_row"]


@triton.jit
def read(Numbers, place, WIDE: tl.constexpr):
    """One number of the header, as the integers of this kernel."""
    value = tl.load(Numbers + place)
    return value if WIDE else value.to(tl.int32)


@triton.jit
def looked_up(Entry):
    """An entry of an array: of fewer than 32 bits in 32, without a sign in 64, so that none wraps below 0."""
    value = tl.load(Entry)
    if value.dtype.primitive_bitwidth < 32:
        value = value.to(tl.int32)
    elif value.dtype.is_int_unsigned():
        value = value.to(tl.int64)
    return value


@triton.jit
def floor_divide(a, b):
    """A // b for b > 0, rounded down also where a is negative."""
    quotient = a // b
    return tl.where(a - quotient * b < 0, quotient - 1, quotient)


@triton.jit
def remainder(a, b):
    """A % b for b > 0, never negative."""
    return a - floor_divide(a, b) * b


@triton.jit
def quotient(a, b):
    """The whole part of a / b for a >= 0 and b > 0: through float32 and put right, in fewer instructions."""
    guess = (a.to(tl.float32) * (1.0 / b.to(tl.float32))).to(a.dtype)
    guess = tl.where(guess * b > a, guess - 1, guess)
    return tl.where((guess + 1) * b <= a, guess + 1, guess)


@triton.jit
def in_order(slot, base, period, group, KIND: tl.constexpr):
    """The position of a slot (plans/order.py): in order, every period-th, or group out of period."""
    if KIND == 0:
        return slot + base
    elif KIND == 1:
        return slot * period + base
    else:
        block = quotient(slot, group)
        return block * (period - group) + slot + base


@triton.jit
def entry_of(Table, tile, AXES: tl.constexpr, INNER_KINDS: tl.constexpr, MORE: tl.constexpr):
    """A tile's row of the table: with lists it has one number more, before the full range; others end it."""
    return Table + tile * (5 * AXES + 2 + (INNER_KINDS[0] >= 3) + MORE)


@triton.jit
def list_of(entry):
    """Where the tile's list of blocks begins (tables.py)."""
    return entry + (tl.load(entry + 5).to(tl.int64) << 31) + tl.load(entry + 2)


@triton.jit
def in_list(entry, slot, group):
    """The position of a slot in the listed blocks of `group` positions, -1 past them."""
    there = slot < tl.load(entry + 4)
    block = quotient(slot, group)
    listed = tl.load(list_of(entry) + block, mask=there, other=0)
    return tl.where(there, (listed - block) * group + slot, -1)


@triton.jit
def step_origin(Header, entry, begin, slot, INNER_KINDS: tl.constexpr, WIDE: tl.constexpr):
    """What to add to the slots of a step, which begins with this one, where positions follow each other."""
    if INNER_KINDS[0] == 4:
        group = read(Header, 3, WIDE)
        block = slot // group
        return (tl.load(list_of(entry) + block) - block) * group
    else:
        return begin


@triton.jit
def outer_axis(Header, entry, step, AXIS: tl.constexpr, KIND: tl.constexpr, WIDE: tl.constexpr):
    """Positions of the tile's rows along one axis, their share of the place in memory, and which exist."""
    slot = tl.load(entry + 5 * AXIS) + step
    base = tl.load(entry + 5 * AXIS + 1)
    if WIDE:
        slot = slot.to(tl.int64)
    period, group = read(Header, 12 * AXIS, WIDE), read(Header, 12 * AXIS + 1, WIDE)
    at = in_order(slot, base, period, group, KIND)
    first, last = read(Header, 12 * AXIS + 8, WIDE), read(Header, 12 * AXIS + 9, WIDE)
    inside = (at >= first) & (at <= last) & (slot < read(Header, 12 * AXIS + 10, WIDE))
    return at, at * read(Header, 12 * AXIS + 6, WIDE), inside


@triton.jit
def outer_rows(
    Header, entry, ROWS: tl.constexpr, AXES: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    KINDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The tile's rows: positions on up to three axes, place in memory, whether they exist."""
    row = tl.arange(0, ROWS)
    if AXES == 1:
        a, place, inside = outer_axis(Header, entry, row, 0, KINDS[0], WIDE)
        return a, a, a, place, inside
    elif AXES == 2:
        a, place, inside = outer_axis(Header, entry, row // TX, 0, KINDS[0], WIDE)
        b, along, there = outer_axis(Header, entry, row % TX, 1, KINDS[1], WIDE)
        return a, b, b, place + along, inside & there
    else:
        a, place, inside = outer_axis(Header, entry, row // (TY * TX), 0, KINDS[0], WIDE)
        b, along, there = outer_axis(Header, entry, row // TX % TY, 1, KINDS[1], WIDE)
        c, beside, here = outer_axis(Header, entry, row % TX, 2, KINDS[2], WIDE)
        return a, b, c, place + along + beside, inside & there & here


@triton.jit
def inner_count(entry, AXES: tl.constexpr, STEP: tl.constexpr, BOX: tl.constexpr):
    """How many inner slots the tile has; those of whole boxes of STEP, each BOX wide, if there is a BOX."""
    count = tl.load(entry + 4) - tl.load(entry + 3)
    if BOX:
        return tl.cdiv(count, STEP // BOX) * tl.cdiv(tl.load(entry + 9) - tl.load(entry + 8), BOX) * STEP
    if AXES >= 2:
        count *= tl.load(entry + 9) - tl.load(entry + 8)
    if AXES >= 3:
        count *= tl.load(entry + 14) - tl.load(entry + 13)
    return count


@triton.jit
def inner_axis(Header, entry, step, origin, AXIS: tl.constexpr, KIND: tl.constexpr, WIDE: tl.constexpr):
    """Positions of inner slots along one axis, their share of the place in memory, and which exist."""
    slot = tl.load(entry + 5 * AXIS + 3) + step
    base = tl.load(entry + 5 * AXIS + 2)
    if WIDE:
        slot = slot.to(tl.int64)
    period, group = read(Header, 12 * AXIS + 2, WIDE), read(Header, 12 * AXIS + 3, WIDE)
    if KIND == 3:
        at = in_list(entry, slot, group)
        return at, at, at >= 0
    elif KIND == 4:
        at = slot + origin
        return at, at, at < read(Header, 12 * AXIS + 5, WIDE)
    else:
        at = in_order(slot, base, period, group, KIND)
        return at, at * read(Header, 12 * AXIS + 7, WIDE), at < read(Header, 12 * AXIS + 5, WIDE)


@triton.jit
def inner_columns(Header, entry, slot, origin, AXES: tl.constexpr, KINDS: tl.constexpr, WIDE: tl.constexpr):
    """The same for inner slots, counted from the tile's first through its box, the last axis fastest."""
    if AXES == 1:
        a, place, inside = inner_axis(Header, entry, slot, origin, 0, KINDS[0], WIDE)
        return a, a, a, place, inside
    elif AXES == 2:
        width = tl.maximum(tl.load(entry + 9) - tl.load(entry + 8), 1)
        line = quotient(slot, width)
        a, place, inside = inner_axis(Header, entry, line, origin, 0, KINDS[0], WIDE)
        b, along, there = inner_axis(Header, entry, slot - line * width, origin, 1, KINDS[1], WIDE)
        return a, b, b, place + along, inside & there
    else:
        width = tl.maximum(tl.load(entry + 14) - tl.load(entry + 13), 1)
        height = tl.maximum(tl.load(entry + 9) - tl.load(entry + 8), 1)
        line = quotient(slot, width)
        sheet = quotient(line, height)
        a, place, inside = inner_axis(Header, entry, sheet, origin, 0, KINDS[0], WIDE)
        b, along, there = inner_axis(Header, entry, line - sheet * height, origin, 1, KINDS[1], WIDE)
        c, beside, here = inner_axis(Header, entry, slot - line * width, origin, 2, KINDS[2], WIDE)
        return a, b, c, place + along + beside, inside & there & here


@triton.jit
def box_columns(Header, entry, step, STEP: tl.constexpr, BOX: tl.constexpr, WIDE: tl.constexpr):
    """The same for a step that is a box of an image: boxes go through those of the tile line by line."""
    across = tl.maximum(tl.cdiv(tl.load(entry + 9) - tl.load(entry + 8), BOX), 1)
    line = quotient(step, across)
    first_a = tl.load(entry + 2) + tl.load(entry + 3) + line * (STEP // BOX)
    first_b = tl.load(entry + 7) + tl.load(entry + 8) + (step - line * across) * BOX
    column = tl.arange(0, STEP)
    a, b = first_a + column // BOX, first_b + column % BOX
    place = a * read(Header, 7, WIDE) + b
    return a, b, b, place, (a < read(Header, 5, WIDE)) & (b < read(Header, 17, WIDE)), first_a, first_b


@triton.jit
def step_columns(
    Header, entry, begin, step, AXES: tl.constexpr, KINDS: tl.constexpr, STEP: tl.constexpr,
    BOX: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The inner columns of a step, and the position at which it begins, on two axes where it is a box."""
    if BOX:
        return box_columns(Header, entry, step, STEP, BOX, WIDE)
    else:
        slot = step * STEP + tl.arange(0, STEP)
        origin = step_origin(Header, entry, begin, step * STEP, KINDS, WIDE)
        a, b, c, place, inside = inner_columns(Header, entry, slot, origin, AXES, KINDS, WIDE)
        return a, b, c, place, inside, origin + step * STEP, 0
