"""Any cell of any size: states and weights are read again at each step, the weights block by block."""

# Kernels are read by Triton, not by Python
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from lattend.nn.grid.gpu.wave import (
    activation,
    announce,
    product,
    rows_of,
    sigmoid,
    slope,
    tanh,
    wait_for,
    weights_of,
)


@triton.jit
def kept(Base, place, inside, column, H: tl.constexpr, WIDTH: tl.constexpr):
    """Rows as float32."""
    return rows_of(Base, place, inside, column, H, WIDTH).to(tl.float32)


@triton.jit
def put(Base, place, there, column, numbers, WIDTH: tl.constexpr):
    """Writes rows, in the dtype of the array."""
    tl.store(Base + place[:, None] * WIDTH + column[None, :], numbers.to(Base.dtype.element_ty), mask=there)


@triton.jit
def sides(
    h_left, h_top, Left, Top, k, n, total, H: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr
):
    """The total, W_left h_left and W_top h_top of one gate, over a block of the states."""
    total = product(h_left, weights_of(Left, k, n, H, H, 1, H), total, PRECISION, UPCAST)
    return product(h_top, weights_of(Top, k, n, H, H, 1, H), total, PRECISION, UPCAST)


@triton.jit
def grid_fwd_kernel(
    Pre, States, Cells, Gates, Mask, Left, Top, Flags, Stuck,
    patience, first_image, images, first_strip, batch, rows, cols,
    CELL: tl.constexpr, NAME: tl.constexpr, G: tl.constexpr, H: tl.constexpr, MASKED: tl.constexpr,
    KEEP: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, CHUNK: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Pre [image, rows, cols, G*H]; States and Cells [image, rows + 1, cols + 1, H]; Gates [.., 5*H]."""
    program = tl.program_id(0)
    image = (first_image + program % images).to(tl.int64)
    strip = first_strip + program // images
    own = Flags + image * tl.cdiv(rows, BR) + strip
    i = tl.arange(0, BR)
    row = strip * BR + i
    wide = cols + 1
    weights = (image // batch) * G * H * H
    for step in range(0, cols + BR - 1):
        col = step - i
        here = (row < rows) & (col >= 0) & (col < cols)
        at = (image * rows + row) * cols + col
        state = (image * (rows + 1) + row + 1) * wide + col + 1
        if (strip > first_strip) & (step % CHUNK == 0) & (step < cols):
            wait_for(own - 1, step // CHUNK + 1, Stuck, patience)
        there = here
        if MASKED:
            there = tl.load(Mask + at, mask=here, other=0) != 0
        for first in range(0, H, BN):
            n = first + tl.arange(0, BN)
            # Read before the products, which take as long as this takes to come
            pre_a = rows_of(Pre, at, here, n, H, G * H)
            a = tl.zeros((BR, BN), tl.float32)
            if CELL != "rnn":
                pre_b = rows_of(Pre + H, at, here, n, H, G * H)
                pre_c = rows_of(Pre + 2 * H, at, here, n, H, G * H)
                pre_d = rows_of(Pre + 3 * H, at, here, n, H, G * H)
                b = tl.zeros((BR, BN), tl.float32)
                c = tl.zeros((BR, BN), tl.float32)
                d = tl.zeros((BR, BN), tl.float32)
            if CELL == "lstm":
                pre_e = rows_of(Pre + 4 * H, at, here, n, H, G * H)
                c_left = rows_of(Cells, state - 1, here, n, H, H)
                c_top = rows_of(Cells, state - wide, here, n, H, H)
                e = tl.zeros((BR, BN), tl.float32)
            for block in range(0, H, BK):
                k = block + tl.arange(0, BK)
                h_left = rows_of(States, state - 1, here, k, H, H)
                h_top = rows_of(States, state - wide, here, k, H, H)
                w_left = Left + weights
                w_top = Top + weights
                a = sides(h_left, h_top, w_left, w_top, k, n, a, H, PRECISION, UPCAST)
                if CELL != "rnn":
                    w_left += H * H
                    w_top += H * H
                    b = sides(h_left, h_top, w_left, w_top, k, n, b, H, PRECISION, UPCAST)
                    w_left += H * H
                    w_top += H * H
                    c = sides(h_left, h_top, w_left, w_top, k, n, c, H, PRECISION, UPCAST)
                    w_left += H * H
                    w_top += H * H
                    d = sides(h_left, h_top, w_left, w_top, k, n, d, H, PRECISION, UPCAST)
                if CELL == "lstm":
                    w_left += H * H
                    w_top += H * H
                    e = sides(h_left, h_top, w_left, w_top, k, n, e, H, PRECISION, UPCAST)
            inside = here[:, None] & (n < H)[None, :]
            a += pre_a
            if CELL == "rnn":
                h = activation(a, NAME)
            if CELL == "lstm":
                a = sigmoid(a)
                b = sigmoid(b + pre_b)
                c = sigmoid(c + pre_c)
                d = tanh(d + pre_d)
                e = sigmoid(e + pre_e)
                cell = b * (c * c_left + (1 - c) * c_top) + a * d
                h = e * tanh(cell)
                put(Cells, state, inside, n, tl.where(there[:, None], cell, 0.0), H)
            if CELL == "gru":
                a = sigmoid(a)
                b = sigmoid(b + pre_b)
                c = sigmoid(c + pre_c)
                e = d
                d = tanh(pre_d + a * e)
                carried = c * kept(States, state - 1, here, n, H, H)
                carried += (1 - c) * kept(States, state - wide, here, n, H, H)
                h = (1 - b) * d + b * carried
            put(States, state, inside, n, tl.where(there[:, None], h, 0.0), H)
            if KEEP:
                put(Gates, at, inside, n, a, 5 * H)
                put(Gates + H, at, inside, n, b, 5 * H)
                put(Gates + 2 * H, at, inside, n, c, 5 * H)
                put(Gates + 3 * H, at, inside, n, d, 5 * H)
                put(Gates + 4 * H, at, inside, n, e, 5 * H)
        tl.debug_barrier()  # the next step reads what every thread of this one has written
        announce(own, step - BR + 2, cols, CHUNK)


@triton.jit
def grid_bwd_kernel(
    GradH, GradC, States, Cells, Gates, Mask, Left, Top, DPre, DHidden, DState, Flags, Stuck,
    patience, first_image, images, first_strip, batch, rows, cols,
    CELL: tl.constexpr, NAME: tl.constexpr, G: tl.constexpr, H: tl.constexpr, MASKED: tl.constexpr,
    BR: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, CHUNK: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """The same walk from the last pixel, rows and columns counted from the end.

    DPre, DHidden [image, rows, cols, G*H]; GradH, GradC, DState [.., H]; Gates [.., 5*H]; DHidden is DPre
    but for a gru.
    """
    program = tl.program_id(0)
    image = (first_image + program % images).to(tl.int64)
    strip = first_strip + program // images
    own = Flags + image * tl.cdiv(rows, BR) + strip
    i = tl.arange(0, BR)
    row = strip * BR + i
    wide = cols + 1
    weights = (image // batch) * G * H * H
    for step in range(0, cols + BR - 1):
        col = step - i
        here = (row < rows) & (col >= 0) & (col < cols)
        has_right = here & (col > 0)
        has_below = here & (row > 0)
        at = (image + 1) * rows * cols - 1 - row * cols - col
        state = (image + 1) * (rows + 1) * wide - 1 - row * wide - col
        right = at + 1
        below = at + cols
        if (strip > first_strip) & (step % CHUNK == 0) & (step < cols):
            wait_for(own - 1, step // CHUNK + 1, Stuck, patience)
        there = here
        if MASKED:
            there = tl.load(Mask + at, mask=here, other=0) != 0
        for first in range(0, H, BN):
            n = first + tl.arange(0, BN)
            inside = here[:, None] & (n < H)[None, :]
            grad_h = rows_of(GradH, at, here, n, H, H)
            if CELL == "rnn":
                h = rows_of(States, state, here, n, H, H)
            else:
                a = kept(Gates, at, here, n, H, 5 * H)
                b = kept(Gates + H, at, here, n, H, 5 * H)
                c = kept(Gates + 2 * H, at, here, n, H, 5 * H)
                d = kept(Gates + 3 * H, at, here, n, H, 5 * H)
                e = kept(Gates + 4 * H, at, here, n, H, 5 * H)
                # What the neighbours after it hand back: of b they kept, of that the share c from the left
                back = kept(Gates + H, right, has_right, n, H, 5 * H)
                back *= kept(Gates + 2 * H, right, has_right, n, H, 5 * H)
                back *= kept(DState, right, has_right, n, H, H)
                under = kept(Gates + H, below, has_below, n, H, 5 * H)
                under *= 1 - kept(Gates + 2 * H, below, has_below, n, H, 5 * H)
                back += under * kept(DState, below, has_below, n, H, H)
            if CELL == "lstm":
                cell = kept(Cells, state, here, n, H, H)
                s_left = kept(Cells, state - 1, here, n, H, H)
                s_top = kept(Cells, state - wide, here, n, H, H)
            if CELL == "gru":
                s_left = kept(States, state - 1, here, n, H, H)
                s_top = kept(States, state - wide, here, n, H, H)
            dh = tl.zeros((BR, BN), tl.float32)
            for block in range(0, G * H, BK):
                k = block + tl.arange(0, BK)
                w = weights_of(Left + weights, k, n, G * H, H, H, 1)
                dh = product(rows_of(DHidden, right, has_right, k, G * H, G * H), w, dh, PRECISION, UPCAST)
                w = weights_of(Top + weights, k, n, G * H, H, H, 1)
                dh = product(rows_of(DHidden, below, has_below, k, G * H, G * H), w, dh, PRECISION, UPCAST)
            dh += grad_h
            if CELL == "rnn":
                da = dh * slope(h.to(tl.float32), NAME)
                put(DPre, at, inside, n, tl.where(there[:, None], da, 0.0), H)
            if CELL == "lstm":
                out = tanh(cell)
                dc = dh * e * (1 - out * out) + back
                if GradC is not None:
                    dc += kept(GradC, at, here, n, H, H)
                dc = tl.where(there[:, None], dc, 0.0)
                dh = tl.where(there[:, None], dh, 0.0)
                put(DState, at, inside, n, dc, H)
                put(DPre, at, inside, n, dc * d * a * (1 - a), G * H)
                put(DPre + H, at, inside, n, dc * (c * s_left + (1 - c) * s_top) * b * (1 - b), G * H)
                put(DPre + 2 * H, at, inside, n, dc * b * (s_left - s_top) * c * (1 - c), G * H)
                put(DPre + 3 * H, at, inside, n, dc * a * (1 - d * d), G * H)
                put(DPre + 4 * H, at, inside, n, dh * out * e * (1 - e), G * H)
            if CELL == "gru":
                dh = tl.where(there[:, None], dh + back, 0.0)
                put(DState, at, inside, n, dh, H)
                dn = dh * (1 - b) * (1 - d * d)
                dr = dn * e * a * (1 - a)
                dz = dh * (c * s_left + (1 - c) * s_top - d) * b * (1 - b)
                dl = dh * b * (s_left - s_top) * c * (1 - c)
                put(DPre, at, inside, n, dr, G * H)
                put(DPre + H, at, inside, n, dz, G * H)
                put(DPre + 2 * H, at, inside, n, dl, G * H)
                put(DPre + 3 * H, at, inside, n, dn, G * H)
                put(DHidden, at, inside, n, dr, G * H)
                put(DHidden + H, at, inside, n, dz, G * H)
                put(DHidden + 2 * H, at, inside, n, dl, G * H)
                put(DHidden + 3 * H, at, inside, n, dn * a, G * H)
        tl.debug_barrier()
        announce(own, step - BR + 2, cols, CHUNK)
