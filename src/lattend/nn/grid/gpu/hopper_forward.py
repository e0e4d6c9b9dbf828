"""lstm and gru forward on Hopper, with all weights held on the chip."""

# Kernels are compiled by Triton, whose values have no Python types
# ruff: noqa: RUF005, PLR5501
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false, reportOptionalSubscript=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from lattend.nn.grid.gpu.hopper import (
    ROWS,
    by_unit,
    finish,
    load_all,
    lowered,
    over_rows,
    received,
    sigmoid,
    tanh,
    unit_layout,
    weights_of,
)


@gluon.jit
def states_above(
    States, Cells, Hand, col, there, unit, H: gl.constexpr, WIDTH: gl.constexpr, Stuck, spins, row_block
):
    """[units] of h and c above the row block: at the edge of the image, or from the row block above.

    Of a gru h and h: Cells are its States, and WIDTH, the numbers that are handed on at a column, is H.
    """
    if Hand is None:
        place = (col + 1) * H + unit
        h = gl.load(States + place, mask=there, other=0.0)
        c = gl.load(Cells + place, mask=there, other=0.0)
    else:
        if row_block == 0:
            place = (col + 1) * H + unit
            h = gl.load(States + place, mask=there, other=0.0)
            c = gl.load(Cells + place, mask=there, other=0.0)
        else:
            place = col * WIDTH + unit
            h, c = received(Hand + place, Hand + (WIDTH - H) + place, there, Stuck, spins)
    return h, c


@gluon.jit
def hand_on(Hand, col, x, at_last, unit, WIDTH: gl.constexpr):
    """Writes the last row for the row block below."""
    gl.store(Hand + col[None, :] * WIDTH + unit[:, None], x, mask=at_last[None, :])


@gluon.jit
def grid_hopper_fwd_kernel(
    Pre, States, Cells, Gates, Mask, Left, Top, Hand, Stuck,
    spins, first_image, images, first_block, batch, rows, cols,
    CELL: gl.constexpr, G: gl.constexpr, H: gl.constexpr, MASKED: gl.constexpr, SAVE: gl.constexpr,
    BR: gl.constexpr, HELD: gl.constexpr,
):  # fmt: skip
    """Pre [image, rows, cols, G*H]; States and Cells [image, rows + 1, cols + 1, H]; Gates [.., 5*H].

    Hand [image, row blocks, cols, WIDTH] has h and, of an lstm, c of each row block's last row.
    """
    dtype: gl.constexpr = States.dtype.element_ty
    MMA: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [H // 16, 1], [16, ROWS, 16])
    UNITS: gl.constexpr = unit_layout(H)
    SHARED: gl.constexpr = gl.NVMMASharedLayout.get_default_for([ROWS, H], dtype)
    program = gl.program_id(0)
    image = (first_image + program % images).to(gl.int64)
    row_block = first_block + program // images
    weights = (image // batch) * G * H * H
    held, buffer = load_all(Left + weights, Top + weights, G, H, HELD, MMA, False)
    near_left = gl.allocate_shared_memory(dtype, [1, ROWS, H], SHARED)
    near_top = gl.allocate_shared_memory(dtype, [1, ROWS, H], SHARED)

    i = gl.arange(0, ROWS, gl.SliceLayout(0, UNITS))
    n = gl.arange(0, H, gl.SliceLayout(1, UNITS))
    row = row_block * BR + i
    wide = cols + 1
    Pre += image * rows * cols * (G * H)
    States += image * (rows + 1) * wide * H
    if CELL == "lstm":
        Cells += image * (rows + 1) * wide * H
    else:
        Cells = States
    if SAVE:
        Gates += image * rows * cols * (5 * H)
    WIDTH: gl.constexpr = 2 * H if CELL == "lstm" else H
    Above = Hand
    if Hand is not None:
        Hand += (image * gl.cdiv(rows, BR) + row_block) * cols * WIDTH
        Above = Hand - cols * WIDTH
    edge = ((row + 1) * wide)[None, :] * H + n[:, None]
    h_left = gl.load(States + edge, mask=(row < rows)[None, :], other=0.0)
    c_left = gl.load(Cells + edge, mask=(row < rows)[None, :], other=0.0)
    above, above_c = states_above(States, Cells, Above, 0, cols > 0, n, H, WIDTH, Stuck, spins, row_block)
    h_top = lowered(h_left, over_rows(above))
    c_top = lowered(c_left, over_rows(above_c))
    near_left.index(0).store(h_left.permute((1, 0)))
    near_top.index(0).store(h_top.permute((1, 0)))
    fence_async_shared()
    gl.thread_barrier()
    for step in range(0, cols + BR - 1):
        zero = step >> 24  # else ptxas keeps the places of all operands in registers
        sums = ()
        for gate in gl.static_range(G):
            w_left = weights_of(held, buffer, 2 * gate, 2 * G, HELD)
            w_top = weights_of(held, buffer, 2 * gate + 1, 2 * G, HELD)
            total = gl.full([H, ROWS], 0, gl.float32, MMA)
            near = near_left.index(zero).permute((1, 0))
            total = warpgroup_mma(w_left, near, total, use_acc=False, is_async=True)
            near = near_top.index(zero).permute((1, 0))
            sums = sums + (warpgroup_mma(w_top, near, total, is_async=True),)

        # While the products run
        col = step - i
        here = (row < rows) & (col >= 0) & (col < cols)
        at = row * cols + col
        place = (at * (G * H))[None, :] + n[:, None]
        pre = ()
        for gate in gl.static_range(G):
            pre = pre + (gl.load(Pre + gate * H + place, mask=here[None, :], other=0.0),)
        there = here
        if MASKED:
            there = gl.load(Mask + image * rows * cols + at, mask=here, other=0) != 0
        soon = step + 1 < cols
        above, above_c = states_above(
            States, Cells, Above, step + 1, soon, n, H, WIDTH, Stuck, spins, row_block
        )

        a = sigmoid(by_unit(warpgroup_mma_wait(2 * (G - 1), [sums[0]]), H, UNITS) + pre[0])
        finish(a)
        b = sigmoid(by_unit(warpgroup_mma_wait(2 * (G - 2), [sums[1]]), H, UNITS) + pre[1])
        finish(b)
        c = sigmoid(by_unit(warpgroup_mma_wait(2 * (G - 3), [sums[2]]), H, UNITS) + pre[2])
        finish(c)
        left = c_left.to(gl.float32)
        kept = c_top.to(gl.float32)
        if CELL == "lstm":
            d = tanh(by_unit(warpgroup_mma_wait(2 * (G - 4), [sums[3]]), H, UNITS) + pre[3])
            cell = b * (kept + c * (left - kept)) + a * d
            out = tanh(cell)
            cell = gl.where(there[None, :], cell, 0.0).to(dtype)
            finish(out)
            e = sigmoid(by_unit(warpgroup_mma_wait(0, [sums[4]]), H, UNITS) + pre[4])
            h = e * out
        else:
            kept = b * (kept + c * (left - kept))
            finish(kept)
            e = by_unit(warpgroup_mma_wait(0, [sums[3]]), H, UNITS)
            d = tanh(pre[3] + a * e)
            h = kept + (1 - b) * d
        h = gl.where(there[None, :], h, 0.0).to(dtype)
        h_left = gl.where((col >= 0)[None, :], h, h_left)  # rows that have not begun keep their edge
        h_top = lowered(h_left, over_rows(above))
        gl.thread_barrier()  # every product has read what is overwritten now
        near_left.index(0).store(h_left.permute((1, 0)))
        near_top.index(0).store(h_top.permute((1, 0)))
        fence_async_shared()
        gl.thread_barrier()
        if Hand is not None:
            at_last = here & (i == BR - 1)
            hand_on(Hand, col, h, at_last, n, WIDTH)
        place = ((row + 1) * wide + col + 1)[None, :] * H + n[:, None]
        gl.store(States + place, h, mask=here[None, :])
        if CELL == "lstm":
            if Hand is not None:
                hand_on(Hand + H, col, cell, at_last, n, WIDTH)
            gl.store(Cells + place, cell, mask=here[None, :])
            c_left = gl.where((col >= 0)[None, :], cell, c_left)
            c_top = lowered(c_left, over_rows(above_c))
        else:
            c_left = h_left
            c_top = h_top
        if SAVE:
            place = (at * (5 * H))[None, :] + n[:, None]
            gl.store(Gates + place, a.to(dtype), mask=here[None, :])
            gl.store(Gates + H + place, b.to(dtype), mask=here[None, :])
            gl.store(Gates + 2 * H + place, c.to(dtype), mask=here[None, :])
            gl.store(Gates + 3 * H + place, d.to(dtype), mask=here[None, :])
            gl.store(Gates + 4 * H + place, e.to(dtype), mask=here[None, :])
