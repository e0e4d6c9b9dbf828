"""The rnn cell with its weights held on the chip: state and weights stay in registers and shared memory.

Forward and backward are one wavefront. Forward, out = σ(x + W_left out_left + W_top out_top). Backward, from
the last pixel, out is the gradient before σ: out = σ'(h) (x + W_leftᵀ out_right + W_topᵀ out_below), x being
the gradient at h.
"""

# Kernels are read by Triton, not by Python: what is None, or not, is known when one is compiled
# ruff: noqa: SIM102
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from lattend.nn.grid.gpu.wavefront import (
    activation,
    announce,
    load_rows,
    load_weights,
    product,
    slope,
    wait_for,
)


@triton.jit
def grid_rnn_kernel(
    X, Out, States, Mask, Left, Top, Flags,
    spins, first_image, images, first_block, batch, rows, cols,
    BACKWARD: tl.constexpr, NAME: tl.constexpr, H: tl.constexpr, HP: tl.constexpr, MASKED: tl.constexpr,
    BR: tl.constexpr, CHUNK: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """X [image, rows, cols, H]; States [image, rows + 1, cols + 1, H]; Out like States, backward like X."""
    program = tl.program_id(0)
    image = (first_image + program % images).to(tl.int64)
    row_block = first_block + program // images
    own = 1 + image * tl.cdiv(rows, BR) + row_block
    i = tl.arange(0, BR)
    n = tl.arange(0, HP)
    row = row_block * BR + i
    reads_above = (row_block > 0) | (not BACKWARD)  # forward, the first row block reads the top edge
    waits = row_block > first_block
    weights = (image // batch) * H * H
    if BACKWARD:
        left = load_weights(Left + weights, n, n, H, H, H, 1)  # [HP, HP]
        top = load_weights(Top + weights, n, n, H, H, H, 1)
        base, step_row, step_col = (image + 1) * rows * cols - 1, -cols, -1
        edged, edged_row = (image + 1) * (rows + 1) * (cols + 1) - 1, -(cols + 1)
        out, out_row = base, step_row
        state = tl.zeros((BR, HP), dtype=Out.dtype.element_ty)
    else:
        left = load_weights(Left + weights, n, n, H, H, 1, H)
        top = load_weights(Top + weights, n, n, H, H, 1, H)
        base, step_row, step_col = image * rows * cols, cols, 1
        edged, edged_row = (image * (rows + 1) + 1) * (cols + 1) + 1, cols + 1
        out, out_row = edged, edged_row
        state = load_rows(Out, out + row * out_row - 1, row < rows, n, H, H)  # the left edge
    higher = tl.broadcast_to(tl.maximum(i - 1, 0)[:, None], (BR, HP))
    one = tl.zeros((1,), tl.int64)

    here = (row < rows) & (i == 0)
    x = load_rows(X, base + row * step_row, here, n, H, H)
    if BACKWARD:
        h = load_rows(States, edged + row * edged_row, here, n, H, H)
    if Flags is not None:
        if waits:
            wait_for(Flags + own - 1, 1, Flags, spins)
    above = load_rows(Out, one + out + (row_block * BR - 1) * out_row, (one == 0) & reads_above, n, H, H)
    for step in range(0, cols + BR - 1):
        col = step - i
        here = (row < rows) & (col >= 0) & (col < cols)
        place = row * step_row + col * step_col
        total = x.to(tl.float32)
        if BACKWARD:
            factor = slope(h.to(tl.float32), NAME)
        up = tl.where((i == 0)[:, None], above, tl.gather(state, higher, 0))

        # What the next step reads, on its way while this one computes
        after = col + 1
        soon = (row < rows) & (after >= 0) & (after < cols)
        x = load_rows(X, base + place + step_col, soon, n, H, H)
        if BACKWARD:
            h = load_rows(States, edged + row * edged_row + after * step_col, soon, n, H, H)
        next_col = step + 1
        if Flags is not None:
            if waits & (next_col % CHUNK == 0) & (next_col < cols):
                wait_for(Flags + own - 1, next_col // CHUNK + 1, Flags, spins)
        place_above = one + out + (row_block * BR - 1) * out_row + next_col * step_col
        above = load_rows(Out, place_above, (one == 0) & reads_above & (next_col < cols), n, H, H)

        total = product(state, left, total, PRECISION, UPCAST)
        total = product(up, top, total, PRECISION, UPCAST)
        new = total * factor if BACKWARD else activation(total, NAME)
        if MASKED:
            there = tl.load(Mask + base + place, mask=here, other=0)
            new = tl.where((there != 0)[:, None], new, 0.0)
        new = new.to(Out.dtype.element_ty)
        out_place = out + row * out_row + col * step_col
        tl.store(Out + out_place[:, None] * H + n[None, :], new, mask=here[:, None] & (n < H)[None, :])
        state = tl.where((col >= 0)[:, None], new, state)  # rows that have not begun keep their edge
        announce(Flags, own, step - BR + 2, cols, CHUNK)
