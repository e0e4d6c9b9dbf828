"""lstm and gru backward on Hopper, with all weights held on the chip."""

# Kernels are compiled by Triton, whose values have no Python types
# ruff: noqa: RUF005, SIM108
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false
# pyright: reportOptionalSubscript=false, reportUnboundVariable=false

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
    expected,
    finish,
    load_all,
    lowered,
    over_rows,
    received,
    tanh,
    unit_layout,
    weights_of,
)


@gluon.jit
def load_state(Base, place, here):
    """Numbers [units, rows] of a pixel in each row."""
    return gl.load(Base + place, mask=here[None, :], other=0.0)


@gluon.jit
def load_pixels(
    GradH, GradC, Gates, Old, Mask, step, row, i, n, rows, cols,
    CELL: gl.constexpr, H: gl.constexpr, MASKED: gl.constexpr,
):  # fmt: skip
    """What a step starts from: where there is a pixel, the gradients at its states, its gates and states."""
    col = step - i
    here = (row < rows) & (col >= 0) & (col < cols)
    at = (rows - row) * cols - col - 1
    place = (at * H)[None, :] + n[:, None]
    dh = load_state(GradH, place, here)
    dc = dh
    if GradC is not None:
        dc = load_state(GradC, place, here)
    gate_place = (at * (5 * H))[None, :] + n[:, None]
    a = load_state(Gates, gate_place, here)
    b = load_state(Gates + H, gate_place, here)
    c = load_state(Gates + 2 * H, gate_place, here)
    d = load_state(Gates + 3 * H, gate_place, here)
    e = load_state(Gates + 4 * H, gate_place, here)
    state_place = (((rows - row + 1) * (cols + 1) - col - 1) * H)[None, :] + n[:, None]
    cell = dh
    if CELL == "lstm":
        cell = load_state(Old, state_place, here)
    s_left = load_state(Old - H, state_place, here)
    s_top = load_state(Old - (cols + 1) * H, state_place, here)
    there = here
    if MASKED:
        there = gl.load(Mask + at, mask=here, other=0) != 0
    return there, dh, dc, a, b, c, d, e, cell, s_left, s_top


@gluon.jit
def multiply(
    FIRST: gl.constexpr, END: gl.constexpr, d_left, d_up, found, zero, held, buffer,
    G: gl.constexpr, HELD: gl.constexpr,
):  # fmt: skip
    """Begins the products of some gates' gradients, for the pixels on the left and above."""
    for gate in gl.static_range(FIRST, END):
        near = found[gate].index(zero).permute((1, 0))
        w_left = weights_of(held, buffer, 2 * gate, 2 * G, HELD)
        w_top = weights_of(held, buffer, 2 * gate + 1, 2 * G, HELD)
        d_left = warpgroup_mma(w_left, near, d_left, use_acc=gate > 0, is_async=True)
        d_up = warpgroup_mma(w_top, near, d_up, use_acc=gate > 0, is_async=True)
    return d_left, d_up


@gluon.jit
def grid_hopper_bwd_kernel(
    GradH, GradC, States, Cells, Gates, Mask, Left, Top, DPre, DHidden, DState, Hand, Stuck,
    spins, first_image, images, first_block, batch, rows, cols,
    CELL: gl.constexpr, G: gl.constexpr, H: gl.constexpr, MASKED: gl.constexpr, BR: gl.constexpr,
    HELD: gl.constexpr,
):  # fmt: skip
    """The same wavefront from the last pixel, rows and columns counted from the end.

    DPre, DHidden [image, rows, cols, G*H]; GradH, GradC, DState [.., H]; Gates [.., 5*H]. A step begins with
    the products of the gradients that the step before has found: for the pixel to the left of each, and for
    the one above it. Hand [image, row blocks, cols, WIDTH], in float32, has what the last row of a row block
    hands to the pixels above it: the product, and of an lstm the gradient at c.
    """
    dtype: gl.constexpr = States.dtype.element_ty
    MMA: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [H // 16, 1], [16, ROWS, 16])
    UNITS: gl.constexpr = unit_layout(H)
    program = gl.program_id(0)
    image = (first_image + program % images).to(gl.int64)
    row_block = first_block + program // images
    weights = (image // batch) * G * H * H
    held, buffer = load_all(Left + weights, Top + weights, G, H, HELD, MMA, True)
    SHARED: gl.constexpr = gl.NVMMASharedLayout.get_default_for([ROWS, H], dtype)
    found = ()
    for _ in gl.static_range(G):
        found = found + (gl.allocate_shared_memory(dtype, [1, ROWS, H], SHARED),)
    i = gl.arange(0, ROWS, gl.SliceLayout(0, UNITS))
    n = gl.arange(0, H, gl.SliceLayout(1, UNITS))
    row = row_block * BR + i
    wide = cols + 1
    pixels = image * rows * cols
    GradH += pixels * H
    DState += pixels * H
    Gates += pixels * (5 * H)
    DPre += pixels * (G * H)
    DHidden += pixels * (G * H)
    if GradC is not None:
        GradC += pixels * H
    if CELL == "lstm":
        Old = Cells + image * (rows + 1) * wide * H
    else:
        Old = States + image * (rows + 1) * wide * H
    WIDTH: gl.constexpr = 2 * H if CELL == "lstm" else H
    if Hand is not None:
        Hand += (image * gl.cdiv(rows, BR) + row_block) * cols * WIDTH
    zeros = gl.full([H, ROWS], 0.0, gl.float32, UNITS)
    zero_row = gl.full([H], 0.0, gl.float32, gl.SliceLayout(1, UNITS))
    if MASKED:
        Mask += pixels
    for gate in gl.static_range(G):
        found[gate].index(0).store(zeros.to(dtype).permute((1, 0)))
    fence_async_shared()
    gl.thread_barrier()
    kept_left = zeros  # of the gradients at the states the shares that go left, and up, past the gates
    kept_up = zeros
    for step in range(0, cols + BR):
        # Products of the gradients that the step before has found
        zero = step >> 24  # else ptxas keeps the places of all operands in registers
        d_left = gl.full([H, ROWS], 0, gl.float32, MMA)
        d_up = gl.full([H, ROWS], 0, gl.float32, MMA)
        d_left, d_up = multiply(0, 1, d_left, d_up, found, zero, held, buffer, G, HELD)
        finish(kept_left)  # else ptxas reads what follows before the first product, or after the last
        there, dh, dc, a, b, c, d, e, cell, s_left, s_top = load_pixels(
            GradH, GradC, Gates, Old, Mask, step, row, i, n, rows, cols, CELL, H, MASKED
        )
        above = zero_row
        above_c = zero_row
        Above = Hand
        if Hand is not None:
            Above = Hand + (step - cols) * WIDTH + n
            above, above_c = expected(Above, Above + (WIDTH - H), (row_block > 0) & (step < cols))

        finish(kept_up)
        d_left, d_up = multiply(1, G, d_left, d_up, found, zero, held, buffer, G, HELD)
        d_left, d_up = warpgroup_mma_wait(0, [d_left, d_up])
        d_left = by_unit(d_left, H, UNITS)
        d_up = by_unit(d_up, H, UNITS)
        if CELL == "gru":
            d_left += kept_left
            d_up += kept_up
        col = step - i
        if Hand is not None:
            before = ((i == BR - 1) & (col > 0))[None, :]
            gl.store(Hand + ((col - 1) * WIDTH)[None, :] + n[:, None], d_up, mask=before)
            above, above_c = received(above, above_c, Above, Above + (WIDTH - H), Stuck, spins)
        dh = dh.to(gl.float32) + d_left + lowered(d_up, over_rows(above))
        dh = gl.where(there[None, :], dh, 0.0)
        a, b, c, d, e = (
            a.to(gl.float32),
            b.to(gl.float32),
            c.to(gl.float32),
            d.to(gl.float32),
            e.to(gl.float32),
        )
        mixed = s_top.to(gl.float32)
        change = s_left.to(gl.float32) - mixed
        mixed += c * change
        if CELL == "lstm":
            out = tanh(cell.to(gl.float32))
            state = dh * e * (1 - out * out) + kept_left + lowered(kept_up, over_rows(above_c))
            if GradC is not None:
                state += dc.to(gl.float32)
            state = gl.where(there[None, :], state, 0.0)
            grad_d = state * a * (1 - d * d)
            grad_a = (state * d * a * (1 - a)).to(dtype)
            grad_e = (dh * out * e * (1 - e)).to(dtype)
            hidden = grad_d.to(dtype)
        else:
            state = dh
            mixed -= d
            grad_d = state * (1 - b) * (1 - d * d)
            grad_a = (grad_d * e * a * (1 - a)).to(dtype)
            hidden = (grad_d * a).to(dtype)
        grad_b = (state * mixed * b * (1 - b)).to(dtype)
        kept_up = state * b
        grad_c = (kept_up * change * c * (1 - c)).to(dtype)
        kept_left = kept_up * c
        kept_up -= kept_left
        gl.thread_barrier()  # every product has read what is overwritten now
        found[0].index(0).store(grad_a.permute((1, 0)))
        found[1].index(0).store(grad_b.permute((1, 0)))
        found[2].index(0).store(grad_c.permute((1, 0)))
        found[3].index(0).store(hidden.permute((1, 0)))
        if CELL == "lstm":
            found[4].index(0).store(grad_e.permute((1, 0)))
        fence_async_shared()
        gl.thread_barrier()
        shown = ((row < rows) & (col >= 0) & (col < cols))[None, :]
        at = (rows - row) * cols - col - 1
        place = (at * (G * H))[None, :] + n[:, None]
        gl.store(DPre + place, grad_a, mask=shown)
        gl.store(DPre + H + place, grad_b, mask=shown)
        gl.store(DPre + 2 * H + place, grad_c, mask=shown)
        gl.store(DPre + 3 * H + place, grad_d.to(dtype), mask=shown)
        if CELL == "lstm":
            gl.store(DPre + 4 * H + place, grad_e, mask=shown)
            if Hand is not None:
                at_last = shown & (i == BR - 1)[None, :]
                gl.store(Hand + H + (col * WIDTH)[None, :] + n[:, None], kept_up, mask=at_last)
        else:
            gl.store(DHidden + place, grad_a, mask=shown)
            gl.store(DHidden + H + place, grad_b, mask=shown)
            gl.store(DHidden + 2 * H + place, grad_c, mask=shown)
            gl.store(DHidden + 3 * H + place, hidden, mask=shown)
        gl.store(DState + (at * H)[None, :] + n[:, None], state.to(dtype), mask=shown)
