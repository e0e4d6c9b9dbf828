"""lstm and gru forward on Hopper, with all weights held on the chip."""

# Kernels are compiled by Triton, whose values have no Python types
# ruff: noqa: RUF005, SIM102, PLR5501
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
    CHANNELS,
    ROWS,
    by_unit,
    expected,
    finish,
    load_all,
    lowered,
    over_rows,
    received,
    sigmoid,
    tanh,
    unit_layout,
    unit_of,
    weights_of,
)


@gluon.jit
def expect_above(States, Cells, Above, col, cols, unit, H: gl.constexpr, WIDTH: gl.constexpr, row_block):
    """Reads [units] of h and c above the row block: at the edge of the image, or from the row block above.

    Of a gru h and h: Cells are its States, and WIDTH, the numbers that are handed on at a column, is H.
    """
    there = col < cols
    edge = (col + 1) * H + unit
    if Above is None:
        h = gl.load(States + edge, mask=there, other=0.0)
        c = gl.load(Cells + edge, mask=there, other=0.0)
    else:
        if row_block == 0:
            h = gl.load(States + edge, mask=there, other=0.0)
            c = gl.load(Cells + edge, mask=there, other=0.0)
        else:
            place = col * WIDTH + unit
            h, c = expected(Above + place, Above + (WIDTH - H) + place, there)
    return h, c


@gluon.jit
def await_above(h, c, Above, col, unit, H: gl.constexpr, WIDTH: gl.constexpr, row_block, Stuck, spins):
    """The same once they are there, in every row."""
    if Above is not None:
        if row_block > 0:
            place = col * WIDTH + unit
            h, c = received(h, c, Above + place, Above + (WIDTH - H) + place, Stuck, spins)
    return over_rows(h), over_rows(c)


@gluon.jit
def hand_on(Hand, col, x, at_last, unit, WIDTH: gl.constexpr):
    """Writes the last row for the row block below."""
    gl.store(Hand + col[None, :] * WIDTH + unit[:, None], x, mask=at_last[None, :])


@gluon.jit
def begin(
    GATE: gl.constexpr, near, held, buffer, G: gl.constexpr, H: gl.constexpr, HELD: gl.constexpr,
    MMA: gl.constexpr, PER: gl.constexpr,
):  # fmt: skip
    """Begins the products of a gate, PER of them: of h_left, h_top and, where it is not in Pre, the image."""
    total = gl.full([H, ROWS], 0, gl.float32, MMA)
    if PER == 3:
        total = warpgroup_mma(near[3].index(GATE), near[2], total, use_acc=False, is_async=True)
    w_left = weights_of(held, buffer, 2 * GATE, 2 * G, HELD)
    w_top = weights_of(held, buffer, 2 * GATE + 1, 2 * G, HELD)
    total = warpgroup_mma(w_left, near[0], total, use_acc=PER == 3, is_async=True)
    return warpgroup_mma(w_top, near[1], total, is_async=True)


@gluon.jit
def end(
    total, pre, GATE: gl.constexpr, OUTSTANDING: gl.constexpr, H: gl.constexpr, UNITS: gl.constexpr
):  # fmt: skip
    """What a gate sums up, [units, rows], when no more than so many products are under way."""
    found = by_unit(warpgroup_mma_wait(OUTSTANDING, [total]), H, UNITS)
    if len(pre) > 0:
        return found + pre[GATE]
    else:
        return found


@gluon.jit
def load_input_weights(Into, Bias, G: gl.constexpr, H: gl.constexpr, C: gl.constexpr):
    """A buffer with W_in, [H, 16] for each gate, its rows in the order of a product's; b comes after it."""
    dtype: gl.constexpr = Into.dtype.element_ty
    LAYOUT: gl.constexpr = gl.BlockedLayout([1, 8], [16, 2], [H // 16, 1], [1, 0])
    SHARED: gl.constexpr = gl.NVMMASharedLayout.get_default_for([H, CHANNELS], dtype)
    buffer = gl.allocate_shared_memory(dtype, [G, H, CHANNELS], SHARED)
    unit = unit_of(gl.arange(0, H, gl.SliceLayout(1, LAYOUT)))
    k = gl.arange(0, CHANNELS, gl.SliceLayout(0, LAYOUT))
    for gate in gl.static_range(G):
        place = (gate * H + unit)[:, None]
        w = gl.load(Into + place * C + k[None, :], mask=(k < C)[None, :], other=0.0)
        if Bias is not None:
            b = gl.load(Bias + place + (k * 0)[None, :], mask=(k == C)[None, :], other=0.0)
            w = gl.where((k == C)[None, :], b, w)
        buffer.index(gate).store(w)
    return buffer


@gluon.jit
def load_inputs(X, Bias, step, row_block, rows, cols, H: gl.constexpr, C: gl.constexpr, BR: gl.constexpr):
    """[rows, 16] of the image at the pixels of a step, and 1 after its channels where there is a bias."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([1, 1], [2, 16], [H // 16, 1], [1, 0])
    i = gl.arange(0, ROWS, gl.SliceLayout(1, LAYOUT))
    k = gl.arange(0, CHANNELS, gl.SliceLayout(0, LAYOUT))
    row = row_block * BR + i
    col = step - i
    here = (row < rows) & (col >= 0) & (col < cols)
    place = ((row * cols + col) * C)[:, None] + k[None, :]
    x = gl.load(X + place, mask=here[:, None] & (k < C)[None, :], other=0.0)
    if Bias is not None:
        x = gl.where((k == C)[None, :], 1.0, x).to(X.dtype.element_ty)
    return x


@gluon.jit
def grid_hopper_fwd_kernel(
    Pre, X, Into, Bias, States, Cells, Gates, Mask, Left, Top, Hand, Stuck,
    spins, first_image, images, first_block, batch, rows, cols,
    CELL: gl.constexpr, G: gl.constexpr, H: gl.constexpr, MASKED: gl.constexpr, SAVE: gl.constexpr,
    BR: gl.constexpr, HELD: gl.constexpr, C: gl.constexpr,
):  # fmt: skip
    """Pre [image, rows, cols, G*H]; States and Cells [image, rows + 1, cols + 1, H]; Gates [.., 5*H].

    Where Pre is None it is computed with the other products: X [image, rows, cols, C], Into [G*H, C] for each
    direction, Bias [G*H] or None. Hand [image, row blocks, cols, WIDTH] has h and, of an lstm, c of each row
    block's last row.
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
    if Pre is None:
        direction = image // batch
        if Bias is not None:
            Bias += direction * (G * H)
        w_in = load_input_weights(Into + direction * (G * H * C), Bias, G, H, C)
        OF_X: gl.constexpr = gl.NVMMASharedLayout.get_default_for([ROWS, CHANNELS], dtype)
        inputs = gl.allocate_shared_memory(dtype, [1, ROWS, CHANNELS], OF_X)
        X += image * rows * cols * C
        inputs.index(0).store(load_inputs(X, Bias, 0, row_block, rows, cols, H, C, BR))

    i = gl.arange(0, ROWS, gl.SliceLayout(0, UNITS))
    n = gl.arange(0, H, gl.SliceLayout(1, UNITS))
    row = row_block * BR + i
    wide = cols + 1
    if Pre is not None:
        Pre += image * rows * cols * (G * H)
    States += image * (rows + 1) * wide * H
    if CELL == "lstm":
        Cells += image * (rows + 1) * wide * H
    else:
        Cells = States
    if SAVE:
        Gates += image * rows * cols * (5 * H)
    PER: gl.constexpr = 3 if Pre is None else 2  # products of a gate
    WIDTH: gl.constexpr = 2 * H if CELL == "lstm" else H
    Above = Hand
    if Hand is not None:
        Hand += (image * gl.cdiv(rows, BR) + row_block) * cols * WIDTH
        Above = Hand - cols * WIDTH
    edge = ((row + 1) * wide)[None, :] * H + n[:, None]
    h_left = gl.load(States + edge, mask=(row < rows)[None, :], other=0.0)
    c_left = gl.load(Cells + edge, mask=(row < rows)[None, :], other=0.0)
    above, above_c = expect_above(States, Cells, Above, 0, cols, n, H, WIDTH, row_block)
    above, above_c = await_above(above, above_c, Above, 0, n, H, WIDTH, row_block, Stuck, spins)
    h_top = lowered(h_left, above)
    c_top = lowered(c_left, above_c)
    near_left.index(0).store(h_left.permute((1, 0)))
    near_top.index(0).store(h_top.permute((1, 0)))
    fence_async_shared()
    gl.thread_barrier()
    for step in range(0, cols + BR - 1):
        zero = step >> 24  # else ptxas keeps the places of all operands in registers
        near = (near_left.index(zero).permute((1, 0)), near_top.index(zero).permute((1, 0)))
        if Pre is None:
            near = near + (inputs.index(zero).permute((1, 0)), w_in)
        sum_a = begin(0, near, held, buffer, G, H, HELD, MMA, PER)

        # What is read now comes while the products run
        col = step - i
        here = (row < rows) & (col >= 0) & (col < cols)
        at = row * cols + col
        pre = ()
        if Pre is None:
            x = load_inputs(X, Bias, step + 1, row_block, rows, cols, H, C, BR)
        else:
            place = (at * (G * H))[None, :] + n[:, None]
            for gate in gl.static_range(G):
                pre = pre + (gl.load(Pre + gate * H + place, mask=here[None, :], other=0.0),)
        there = here
        if MASKED:
            there = gl.load(Mask + image * rows * cols + at, mask=here, other=0) != 0
        above, above_c = expect_above(States, Cells, Above, step + 1, cols, n, H, WIDTH, row_block)

        # The products of a gate begin before the functions of the gate before it: one group of four warps has
        # the tensor cores while the other computes
        sum_b = begin(1, near, held, buffer, G, H, HELD, MMA, PER)
        a = sigmoid(end(sum_a, pre, 0, PER, H, UNITS))
        finish(a)
        sum_c = begin(2, near, held, buffer, G, H, HELD, MMA, PER)
        b = sigmoid(end(sum_b, pre, 1, PER, H, UNITS))
        finish(b)
        left = c_left.to(gl.float32)
        kept = c_top.to(gl.float32)
        if CELL == "lstm":
            sum_d = begin(3, near, held, buffer, G, H, HELD, MMA, PER)
            c = sigmoid(end(sum_c, pre, 2, PER, H, UNITS))
            kept = b * (kept + c * (left - kept))
            finish(kept)
            sum_e = begin(4, near, held, buffer, G, H, HELD, MMA, PER)
            d = tanh(end(sum_d, pre, 3, PER, H, UNITS))
            cell = kept + a * d
            out = tanh(cell)
            cell = gl.where(there[None, :], cell, 0.0).to(dtype)
            finish(out)
            e = sigmoid(end(sum_e, pre, 4, 0, H, UNITS))
            h = e * out
        else:
            if Pre is None:  # r is between the two sums of n
                of_input = gl.full([H, ROWS], 0, gl.float32, MMA)
                of_input = warpgroup_mma(w_in.index(3), near[2], of_input, use_acc=False, is_async=True)
            sum_d = begin(3, near, held, buffer, G, H, HELD, MMA, 2)
            c = sigmoid(end(sum_c, pre, 2, PER, H, UNITS))
            kept = b * (kept + c * (left - kept))
            finish(kept)
            if Pre is None:
                of_input, e = warpgroup_mma_wait(0, [of_input, sum_d])
                of_input = by_unit(of_input, H, UNITS)
            else:
                e = warpgroup_mma_wait(0, [sum_d])
                of_input = pre[3]
            e = by_unit(e, H, UNITS)
            d = tanh(of_input + a * e)
            h = kept + (1 - b) * d
        above, above_c = await_above(above, above_c, Above, step + 1, n, H, WIDTH, row_block, Stuck, spins)
        h = gl.where(there[None, :], h, 0.0).to(dtype)
        h_left = gl.where((col >= 0)[None, :], h, h_left)  # rows that have not begun keep their edge
        h_top = lowered(h_left, above)
        gl.thread_barrier()  # every product has read what is overwritten now
        near_left.index(0).store(h_left.permute((1, 0)))
        near_top.index(0).store(h_top.permute((1, 0)))
        if Pre is None:
            inputs.index(0).store(x)
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
            c_top = lowered(c_left, above_c)
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
