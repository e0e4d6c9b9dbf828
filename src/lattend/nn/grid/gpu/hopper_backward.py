"""lstm and gru backward on Hopper, with all weights held on the chip."""

# Kernels are compiled by Triton, whose values have no Python types
# ruff: noqa: RUF005, SIM102, SIM108, PLR5501
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false, reportOptionalSubscript=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

from lattend.nn.grid.gpu.hopper import (
    ROWS,
    by_unit,
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
def load_above(Hand, step, row_block, zeros, cols, n, H: gl.constexpr, WIDTH: gl.constexpr, Stuck, spins):
    """What the row block that came before has handed on for the first row, in every row."""
    above = zeros
    above_c = zeros
    if Hand is not None:
        if row_block > 0:
            Above = Hand + (step - cols) * WIDTH + n
            above, above_c = received(Above, Above + (WIDTH - H), step < cols, Stuck, spins)
            above = over_rows(above)
            above_c = over_rows(above_c)
    return above, above_c


@gluon.jit
def multiply(
    buffer, zero, grads, held, weights, d_left, d_up,
    TILE: gl.constexpr, TILES: gl.constexpr, HELD: gl.constexpr, FIRST: gl.constexpr,
):  # fmt: skip
    """Begins the products of one gate's gradients, for the pixels on the left and above."""
    buffer.index(0).store(grads.permute((1, 0)))
    fence_async_shared()
    gl.thread_barrier()
    near = buffer.index(zero).permute((1, 0))
    w_left = weights_of(held, weights, TILE, TILES, HELD)
    w_top = weights_of(held, weights, TILE + 1, TILES, HELD)
    d_left = warpgroup_mma(w_left, near, d_left, use_acc=not FIRST, is_async=True)
    d_up = warpgroup_mma(w_top, near, d_up, use_acc=not FIRST, is_async=True)
    return d_left, d_up


@gluon.jit
def grid_hopper_bwd_kernel(
    GradH, GradC, States, Cells, Gates, Mask, Left, Top, DPre, DHidden, DState, Hand, Stuck,
    spins, first_image, images, first_block, batch, rows, cols,
    CELL: gl.constexpr, G: gl.constexpr, H: gl.constexpr, MASKED: gl.constexpr, BR: gl.constexpr,
    HELD: gl.constexpr,
):  # fmt: skip
    """The same wavefront from the last pixel, rows and columns counted from the end.

    DPre, DHidden [image, rows, cols, G*H]; GradH, GradC, DState [.., H]; Gates [.., 5*H]. A step ends with
    the products of the gradients that it has found: for the pixel to the left of each, and the one above it.
    Hand [image, row blocks, cols, WIDTH], in float32, has what the last row of a row block
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
    if MASKED:
        Mask += pixels
    kept_left = zeros  # of the gradients at the states the shares that go left, and up, past the gates
    kept_up = zeros
    d_left = warpgroup_mma_init(gl.full([H, ROWS], 0, gl.float32, MMA))
    d_up = warpgroup_mma_init(gl.full([H, ROWS], 0, gl.float32, MMA))
    for step in range(0, cols + BR):
        zero = step >> 24  # else ptxas keeps the places of all operands in registers
        # While the products of the step before run
        there, dh, dc, a, b, c, d, e, cell, s_left, s_top = load_pixels(
            GradH, GradC, Gates, Old, Mask, step, row, i, n, rows, cols, CELL, H, MASKED
        )
        above, above_c = load_above(Hand, step, row_block, zeros, cols, n, H, WIDTH, Stuck, spins)
        if CELL == "lstm":
            out = tanh(cell.to(gl.float32))
            back = kept_left + lowered(kept_up, above_c)
        found_left, found_up = warpgroup_mma_wait(0, [d_left, d_up])
        found_left = by_unit(found_left, H, UNITS)
        found_up = by_unit(found_up, H, UNITS)
        if CELL == "gru":
            found_left += kept_left
            found_up += kept_up
        gl.thread_barrier()  # every product has read what is overwritten now
        dh = dh.to(gl.float32) + found_left + lowered(found_up, above)
        dh = gl.where(there[None, :], dh, 0.0)
        col = step - i
        shown = ((row < rows) & (col >= 0) & (col < cols))[None, :]
        at = (rows - row) * cols - col - 1
        out_place = (at * (G * H))[None, :] + n[:, None]
        if Hand is not None:
            at_last = ((i == BR - 1) & (col > 0))[None, :]
            gl.store(Hand + ((col - 1) * WIDTH)[None, :] + n[:, None], found_up, mask=at_last)
        d_left = warpgroup_mma_init(gl.full([H, ROWS], 0, gl.float32, MMA))
        d_up = warpgroup_mma_init(gl.full([H, ROWS], 0, gl.float32, MMA))
        e = e.to(gl.float32)
        if CELL == "lstm":
            grad = (dh * out * e * (1 - e)).to(dtype)
            d_left, d_up = multiply(found[4], zero, grad, held, buffer, d_left, d_up, 8, 2 * G, HELD, True)
            gl.store(DPre + 4 * H + out_place, grad, mask=shown)
            state = dh * e * (1 - out * out) + back
            if GradC is not None:
                state += dc.to(gl.float32)
            state = gl.where(there[None, :], state, 0.0)
        else:
            state = dh
        a = a.to(gl.float32)
        d = d.to(gl.float32)
        if CELL == "lstm":
            grad_d = state * a * (1 - d * d)
            grad_a = state * d * a * (1 - a)
            hidden = grad_d.to(dtype)
        else:
            grad_d = state * (1 - b.to(gl.float32)) * (1 - d * d)
            grad_a = grad_d * e * a * (1 - a)
            hidden = (grad_d * a).to(dtype)
        d_left, d_up = multiply(
            found[3], zero, hidden, held, buffer, d_left, d_up, 6, 2 * G, HELD, CELL == "gru"
        )
        gl.store(DPre + 3 * H + out_place, grad_d.to(dtype), mask=shown)
        grad_a = grad_a.to(dtype)
        d_left, d_up = multiply(found[0], zero, grad_a, held, buffer, d_left, d_up, 0, 2 * G, HELD, False)
        gl.store(DPre + out_place, grad_a, mask=shown)
        b = b.to(gl.float32)
        c = c.to(gl.float32)
        mixed = s_top.to(gl.float32)
        change = s_left.to(gl.float32) - mixed
        mixed += c * change
        if CELL == "gru":
            mixed -= d
        grad_b = (state * mixed * b * (1 - b)).to(dtype)
        d_left, d_up = multiply(found[1], zero, grad_b, held, buffer, d_left, d_up, 2, 2 * G, HELD, False)
        gl.store(DPre + H + out_place, grad_b, mask=shown)
        kept_up = state * b
        grad_c = (kept_up * change * c * (1 - c)).to(dtype)
        d_left, d_up = multiply(found[2], zero, grad_c, held, buffer, d_left, d_up, 4, 2 * G, HELD, False)
        gl.store(DPre + 2 * H + out_place, grad_c, mask=shown)
        kept_left = kept_up * c
        kept_up -= kept_left
        if CELL == "gru":
            gl.store(DHidden + out_place, grad_a, mask=shown)
            gl.store(DHidden + H + out_place, grad_b, mask=shown)
            gl.store(DHidden + 2 * H + out_place, grad_c, mask=shown)
            gl.store(DHidden + 3 * H + out_place, hidden, mask=shown)
        else:
            if Hand is not None:
                at_last = shown & (i == BR - 1)[None, :]
                gl.store(Hand + H + (col * WIDTH)[None, :] + n[:, None], kept_up, mask=at_last)
        gl.store(DState + (at * H)[None, :] + n[:, None], state.to(dtype), mask=shown)
    warpgroup_mma_wait(0, [d_left, d_up])
