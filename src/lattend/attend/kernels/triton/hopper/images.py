"""What the kernels for images on Hopper share: tiles that are two boxes, steps that are boxes, and masks.

A tile is two boxes of 64 rows, one above the other, one for each group of warps. Its steps are boxes of
columns, line by line, as TMA copies them: zeros beyond the image. A program goes down a strip of tiles, and
the last boxes of a tile are the first of the next: they stay in shared memory. A group passes over the boxes
that its rows do not meet. One warp loads the rows of tiles, another the steps.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

from lattend.attend.kernels.triton.hopper.masks import BITS, up_to
from lattend.attend.kernels.triton.hopper.shared import load_step
from lattend.attend.kernels.triton.hopper.tiles import GROUPS, ROWS, note

KEPT: gl.constexpr = gl.constexpr(7)  # which of a tile's numbers says how many steps the next tile has too
MORE: gl.constexpr = gl.constexpr(9)  # numbers of a tile than on a line


# Tiles


@gluon.jit
def share_of(Shares):
    """Which tiles this program takes, one after another in their order: the first, and how many."""
    first = gl.load(Shares[0] + gl.program_id(0))
    return first, gl.load(Shares[0] + gl.program_id(0) + 1) - first


@gluon.jit
def image_tile(at, Table, Shares, numbers):
    """The tile at a place of their order, as numbers: its head, counted through all batch elements, and what
    the table says of it (image_tables.py).
    """
    heads, tiles, table_batch, table_head = numbers
    work = gl.load(Shares[1] + at)
    tile, pair = work % tiles, work // tiles
    entry = Table + (pair // heads * table_batch + pair % heads * table_head + tile).to(gl.int64) * 19
    found = (pair,)
    for place in gl.static_range(19):
        found = found + (gl.load(entry + place),)  # noqa: RUF005
    return found


@gluon.jit
def steps_of(tile, turn, GROUP: gl.constexpr):
    """Of a tile's steps those that a group meets, the first and the end; the first that it has not given back
    with the last tile; and the end of those that it gives back with this one.
    """
    at: gl.constexpr = 8 + 4 * GROUP
    return tile[at], tile[at + 1], gl.where(turn > 0, tile[at + 3], 0), tile[at + 2]


@gluon.jit
def load_boxes(matrices, buffers, noted, ready, free, turn, tile, heads, TY: gl.constexpr):
    """Copies the two boxes of a tile, of one matrix or of two, and notes its numbers."""
    TILES: gl.constexpr = free.shape[0]
    held = turn % TILES
    mbarrier.wait(free.index(held), ((turn // TILES) & 1) ^ 1)
    note(noted, turn, tile)
    mbarrier.expect(ready.index(held), len(matrices) * GROUPS * matrices[0].block_type.nbytes)
    for group in gl.static_range(GROUPS):
        place = [tile[0] // heads, tile[0] % heads, tile[1] + group * TY, tile[2], 0]
        for one in gl.static_range(len(matrices)):
            to = buffers[one].index(held * GROUPS + group)
            tma.async_copy_global_to_shared(matrices[one], place, ready.index(held), to)


@gluon.jit
def load_rows(matrices, buffers, noted, ready, free, Table, Shares, numbers, TY: gl.constexpr):
    """The trade of a warp that loads the rows of tiles, of one matrix or of two."""
    first, turns = share_of(Shares)
    for turn in range(turns):
        tile = image_tile(first + turn, Table, Shares, numbers)
        load_boxes(matrices, buffers, noted, ready, free, turn, tile, numbers[0], TY)


@gluon.jit
def load_steps(
    K, V, k_buffer, v_buffer, barriers, Table, Shares, numbers, share,
    BY: gl.constexpr, BX: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """The trade of a warp that loads steps of keys and values."""
    k_ready, k_free, v_ready, v_free = barriers
    done, had = 0, 0  # steps of earlier turns, and those of this one that it has from the last
    first, turns = share_of(Shares)
    tile = image_tile(gl.where(turns > 0, first, 0), Table, Shares, numbers)
    for turn in range(turns):
        following = image_tile(first + gl.minimum(turn + 1, turns - 1), Table, Shares, numbers)
        batch, head, across = tile[0] // numbers[0], tile[0] % numbers[0] // share, tile[5]
        y, x = tile[3] + had // across * BY, 0
        for index in range(had, tile[6]):
            place = [batch, head, y, tile[4] + x, 0]
            load_step(K, k_buffer, k_ready, k_free, done + index, place, STAGES)
            load_step(V, v_buffer, v_ready, v_free, done + index, place, STAGES)
            y, x = following_box(y, x, across, BY, BX)
        done, had = done + tile[6] - tile[KEPT], tile[KEPT]
        tile = following


@gluon.jit
def following_box(y, x, across, BY: gl.constexpr, BX: gl.constexpr):
    """Where the box after this one begins: beside it, or in the next line of boxes."""
    ends = x + BX >= across * BX
    return y + gl.where(ends, BY, 0), gl.where(ends, 0, x + BX)


# Who is attended


@gluon.jit
def box_bits(y, x, bounds, S: gl.constexpr, BY: gl.constexpr, BX: gl.constexpr):
    """As bits_of in tiles.py, for a box that begins at y and x: the bits of one line, in all lines that are
    within a row's bounds.
    """
    low_y, high_y, low_x, high_x = bounds
    column = gl.arange(0, BY * BX, gl.SliceLayout(0, S))[None, :]
    own: gl.constexpr = BX // 4  # columns of a line that a thread has
    first = up_to(gl.maximum(low_x[:, None] - x, 0) - 1, column)
    end = up_to(gl.minimum(high_x[:, None] - x, BX - 1), column)
    line = gl.inline_asm_elementwise(BITS, "=r,r,r", [first, end], gl.int32, True, 1)
    every: gl.constexpr = ((1 << BY * own) - 1) // ((1 << own) - 1)  # a bit in each line
    first = gl.maximum(low_y - y, 0) * own
    end = gl.maximum(gl.minimum(high_y - y + 1, BY), 0) * own
    lines = gl.inline_asm_elementwise(BITS, "=r,r,r", [first[:, None], end[:, None]], gl.int32, True, 1)
    return (line * every) & lines


@gluon.jit
def box_bounds(
    tile, heads, Header, Data, BOUNDS: gl.constexpr, GROUP: gl.constexpr,
    TY: gl.constexpr, TX: gl.constexpr, OF_ROWS: gl.constexpr,
):  # fmt: skip
    """For each row of a group the first and last row and column of its columns, counted from the tile's."""
    row = gl.arange(0, ROWS, OF_ROWS)
    y, x = GROUP * TY + row // TX, row % TX
    oa, ob = tile[1] + y, tile[2] + x
    la, ha, lb, hb, _ = BOUNDS(oa, ob, ob, tile[0] % heads, tile[0] // heads, Header, Data, False)
    la, ha = (la - tile[3]).to(gl.int32), (ha - tile[3]).to(gl.int32)
    lb, hb = (lb - tile[4]).to(gl.int32), (hb - tile[4]).to(gl.int32)
    return la, ha, lb, gl.where(of_tile(y, x, tile) & (la <= ha) & (lb <= hb), hb, -1)


@gluon.jit
def of_tile(y, x, tile):
    """Which slots of a tile can have columns."""
    return (y >= tile[16]) & (y < tile[17]) & (x >= tile[18]) & (x < tile[19])


@gluon.jit
def box_rows(tile, GROUP: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr, wide, OF_ROWS: gl.constexpr):
    """The places of a group's rows in an image so many columns wide, and which of them are the tile's."""
    row = gl.arange(0, ROWS, OF_ROWS)
    y, x = GROUP * TY + row // TX, row % TX
    return (tile[1] + y) * wide + tile[2] + x, of_tile(y, x, tile)


# Results


@gluon.jit
def whole_box(tile, GROUP: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr):
    """Whether all of a group's rows are the tile's."""
    lines = (tile[16] <= GROUP * TY) & (tile[17] >= (GROUP + 1) * TY)
    return lines & (tile[18] <= 0) & (tile[19] >= TX)


@gluon.jit
def lay_box(
    Out, value, buffer, tile, heads, strides, Header,
    GROUP: gl.constexpr, D: gl.constexpr, DP: gl.constexpr, TY: gl.constexpr, TX: gl.constexpr,
    SUMS: gl.constexpr,
):  # fmt: skip
    """Lays the result where the group's rows were, for TMA, or writes that of a box that is not whole."""
    final = value.to(buffer.dtype)
    if whole_box(tile, GROUP, TY, TX):
        buffer.reshape((ROWS, DP)).store(final)
    else:
        column = gl.arange(0, DP, gl.SliceLayout(0, SUMS))
        wide = gl.load(Header + 6).to(gl.int32)
        place, here = box_rows(tile, GROUP, TY, TX, wide, gl.SliceLayout(1, SUMS))
        to = Out + (tile[0] // heads).to(gl.int64) * strides[0] + (tile[0] % heads).to(gl.int64) * strides[1]
        to += place.to(gl.int64)[:, None] * strides[2] + column[None, :]
        gl.store(to, final, mask=here[:, None] & (column[None, :] < D))
