"""lstm and gru backward on Hopper, with all weights held on the chip."""

# Kernels are compiled by Triton, whose values have no Python types
# ruff: noqa: SIM102
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
    """Numbers of a pixel."""
    return gl.load(Base + place, mask=here, other=0.0)


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
    for gate in gl.static_range(G):
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
    for gate in gl.static_range(G):
        found[gate].index(0).store(zeros.to(dtype).permute((1, 0)))
    fence_async_shared()
    gl.thread_barrier()
    kept_left = zeros  # of the gradients at the states the shares that go left, and up
    kept_up = zeros
    for step in range(0, cols + BR):
        d_left = gl.full([H, ROWS], 0, gl.float32, MMA)
        d_up = gl.full([H, ROWS], 0, gl.float32, MMA)
        zero = step >> 24  # else ptxas keeps the places of all operands in registers
        for gate in gl.static_range(G):
            near = found[gate].index(zero).permute((1, 0))
            w_left = weights_of(held, buffer, 2 * gate, 2 * G, HELD)
            w_top = weights_of(held, buffer, 2 * gate + 1, 2 * G, HELD)
            d_left = warpgroup_mma(w_left, near, d_left, use_acc=gate > 0, is_async=True)
            d_up = warpgroup_mma(w_top, near, d_up, use_acc=gate > 0, is_async=True)

        # While the products run
        col = step - i
        here = (row < rows) & (col >= 0) & (col < cols)
        at = (rows - row) * cols - col - 1
        place = (at * H)[None, :] + n[:, None]
        gate_place = (at * (5 * H))[None, :] + n[:, None]
        state_place = (((rows - row + 1) * wide - col - 1) * H)[None, :] + n[:, None]
        shown = here[None, :]
        dh = load_state(GradH, place, shown)
        a = load_state(Gates, gate_place, shown)
        b = load_state(Gates + H, gate_place, shown)
        c = load_state(Gates + 2 * H, gate_place, shown)
        d = load_state(Gates + 3 * H, gate_place, shown)
        e = load_state(Gates + 4 * H, gate_place, shown)
        if CELL == "lstm":
            out = load_state(Old, state_place, shown)
            if GradC is not None:
                grad_c = load_state(GradC, place, shown)
        s_left = load_state(Old - H, state_place, shown)
        s_top = load_state(Old - wide * H, state_place, shown)
        there = here
        if MASKED:
            there = gl.load(Mask + pixels + at, mask=here, other=0) != 0
        above = zeros
        above_c = zeros
        if Hand is not None:
            if row_block > 0:
                Above = Hand + (step - cols) * WIDTH + n
                above, above_c = received(Above, Above + (WIDTH - H), step < cols, Stuck, spins)
                above = over_rows(above)
                above_c = over_rows(above_c)

        d_left, d_up = warpgroup_mma_wait(0, [d_left, d_up])
        d_left = by_unit(d_left, H, UNITS)
        d_up = by_unit(d_up, H, UNITS)
        if CELL == "gru":
            d_left += kept_left
            d_up += kept_up
        if Hand is not None:
            at_last = ((i == BR - 1) & (step >= BR))[None, :]
            place_up = ((step - BR) * WIDTH + n)[:, None] + (i * 0)[None, :]
            gl.store(Hand + place_up, d_up, mask=at_last)
            if CELL == "lstm":
                gl.store(Hand + H + place_up, kept_up, mask=at_last)
        a, b, c, d, e = a.to(gl.float32), b.to(gl.float32), c.to(gl.float32), d.to(gl.float32), e.to(gl.float32)
        s_left, s_top = s_left.to(gl.float32), s_top.to(gl.float32)
        mixed = s_top + c * (s_left - s_top)
        if CELL == "lstm":
            out = tanh(out.to(gl.float32))
            of_a = d * a * (1 - a)
            of_b = mixed * b * (1 - b)
            of_d = a * (1 - d * d)
            of_e = out * e * (1 - e)
            of_state = e * (1 - out * out)
            back = kept_left + lowered(kept_up, above_c)
            if GradC is not None:
                back += grad_c.to(gl.float32)
        else:
            of_d = (1 - b) * (1 - d * d)
            of_a = of_d * e * a * (1 - a)
            of_b = (mixed - d) * b * (1 - b)
        of_c = b * (s_left - s_top) * c * (1 - c)
        to_left = b * c
        to_up = b - to_left
        dh = dh.to(gl.float32) + d_left + lowered(d_up, above)
        dh = gl.where(there[None, :], dh, 0.0)
        if CELL == "lstm":
            state = gl.where(there[None, :], dh * of_state + back, 0.0)
            of_e = dh * of_e
        else:
            state = dh
        grads = (state * of_a, state * of_b, state * of_c, state * of_d)
        kept_left = state * to_left
        kept_up = state * to_up
        gl.thread_barrier()  # every product has read what is overwritten now
        for gate in gl.static_range(3):
            found[gate].index(0).store(grads[gate].to(dtype).permute((1, 0)))
        if CELL == "lstm":
            found[3].index(0).store(grads[3].to(dtype).permute((1, 0)))
            found[4].index(0).store(of_e.to(dtype).permute((1, 0)))
        else:
            found[3].index(0).store((grads[3] * a).to(dtype).permute((1, 0)))
        fence_async_shared()
        gl.thread_barrier()
        out_place = (at * (G * H))[None, :] + n[:, None]
        for gate in gl.static_range(4):
            gl.store(DPre + gate * H + out_place, grads[gate].to(dtype), mask=shown)
        if CELL == "lstm":
            gl.store(DPre + 4 * H + out_place, of_e.to(dtype), mask=shown)
        else:
            for gate in gl.static_range(3):
                gl.store(DHidden + gate * H + out_place, grads[gate].to(dtype), mask=shown)
            gl.store(DHidden + 3 * H + out_place, (grads[3] * a).to(dtype), mask=shown)
        gl.store(DState + place, state.to(dtype), mask=shown)
