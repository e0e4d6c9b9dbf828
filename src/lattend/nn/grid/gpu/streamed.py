"""Any cell of any size: states and weights are read again at each step, the weights block by block."""

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
    sigmoid,
    slope,
    tanh,
    wait_for,
)


@triton.jit
def load_float(Base, place, inside, column, H: tl.constexpr, WIDTH: tl.constexpr):
    """Rows as float32."""
    return load_rows(Base, place, inside, column, H, WIDTH).to(tl.float32)


@triton.jit
def store_rows(Base, place, there, column, numbers, WIDTH: tl.constexpr):
    """Writes rows, in the dtype of the array."""
    tl.store(Base + place[:, None] * WIDTH + column[None, :], numbers.to(Base.dtype.element_ty), mask=there)


@triton.jit
def store_gates(Base, place, there, column, a, b, c, d, H: tl.constexpr, WIDTH: tl.constexpr):
    """Writes rows of four gates, H columns apart."""
    store_rows(Base, place, there, column, a, WIDTH)
    store_rows(Base + H, place, there, column, b, WIDTH)
    store_rows(Base + 2 * H, place, there, column, c, WIDTH)
    store_rows(Base + 3 * H, place, there, column, d, WIDTH)


@triton.jit
def sides(
    h_left, h_top, Left, Top, k, n, total,
    GATE: tl.constexpr, H: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """The total, W_left h_left and W_top h_top of one gate, over a block of the states."""
    w = load_weights(Left + GATE * H * H, k, n, H, H, 1, H)
    total = product(h_left, w, total, PRECISION, UPCAST)
    w = load_weights(Top + GATE * H * H, k, n, H, H, 1, H)
    return product(h_top, w, total, PRECISION, UPCAST)


@triton.jit
def grid_fwd_kernel(
    Pre, States, Cells, Gates, Mask, Left, Top, Flags,
    spins, first_image, images, first_block, batch, rows, cols,
    CELL: tl.constexpr, NAME: tl.constexpr, G: tl.constexpr, H: tl.constexpr, MASKED: tl.constexpr,
    SAVE: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, CHUNK: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Pre [image, rows, cols, G*H]; States and Cells [image, rows + 1, cols + 1, H]; Gates [.., 5*H]."""
    program = tl.program_id(0)
    image = (first_image + program % images).to(tl.int64)
    row_block = first_block + program // images
    own = 1 + image * tl.cdiv(rows, BR) + row_block
    i = tl.arange(0, BR)
    row = row_block * BR + i
    wide = cols + 1
    weights = (image // batch) * G * H * H
    for step in range(0, cols + BR - 1):
        col = step - i
        here = (row < rows) & (col >= 0) & (col < cols)
        at = (image * rows + row) * cols + col
        state = (image * (rows + 1) + row + 1) * wide + col + 1
        if Flags is not None:
            if (row_block > first_block) & (step % CHUNK == 0) & (step < cols):
                wait_for(Flags + own - 1, step // CHUNK + 1, Flags, spins)
        there = here
        if MASKED:
            there = tl.load(Mask + at, mask=here, other=0) != 0
        for first in range(0, H, BN):
            n = first + tl.arange(0, BN)
            # Read before the products, which take as long as this takes to come
            pre_a = load_rows(Pre, at, here, n, H, G * H)
            a = tl.zeros((BR, BN), tl.float32)
            if CELL != "rnn":
                pre_b = load_rows(Pre + H, at, here, n, H, G * H)
                pre_c = load_rows(Pre + 2 * H, at, here, n, H, G * H)
                pre_d = load_rows(Pre + 3 * H, at, here, n, H, G * H)
                b = tl.zeros((BR, BN), tl.float32)
                c = tl.zeros((BR, BN), tl.float32)
                d = tl.zeros((BR, BN), tl.float32)
            if CELL == "lstm":
                pre_e = load_rows(Pre + 4 * H, at, here, n, H, G * H)
                c_left = load_rows(Cells, state - 1, here, n, H, H)
                c_top = load_rows(Cells, state - wide, here, n, H, H)
                e = tl.zeros((BR, BN), tl.float32)
            for block in range(0, H, BK):
                k = block + tl.arange(0, BK)
                h_left = load_rows(States, state - 1, here, k, H, H)
                h_top = load_rows(States, state - wide, here, k, H, H)
                w_left = Left + weights
                w_top = Top + weights
                a = sides(h_left, h_top, w_left, w_top, k, n, a, 0, H, PRECISION, UPCAST)
                if CELL != "rnn":
                    b = sides(h_left, h_top, w_left, w_top, k, n, b, 1, H, PRECISION, UPCAST)
                    c = sides(h_left, h_top, w_left, w_top, k, n, c, 2, H, PRECISION, UPCAST)
                    d = sides(h_left, h_top, w_left, w_top, k, n, d, 3, H, PRECISION, UPCAST)
                if CELL == "lstm":
                    e = sides(h_left, h_top, w_left, w_top, k, n, e, 4, H, PRECISION, UPCAST)
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
                store_rows(Cells, state, inside, n, tl.where(there[:, None], cell, 0.0), H)
            if CELL == "gru":
                a = sigmoid(a)
                b = sigmoid(b + pre_b)
                c = sigmoid(c + pre_c)
                e = d
                d = tanh(pre_d + a * e)
                carried = c * load_float(States, state - 1, here, n, H, H)
                carried += (1 - c) * load_float(States, state - wide, here, n, H, H)
                h = (1 - b) * d + b * carried
            store_rows(States, state, inside, n, tl.where(there[:, None], h, 0.0), H)
            if SAVE:
                store_gates(Gates, at, inside, n, a, b, c, d, H, 5 * H)
                store_rows(Gates + 4 * H, at, inside, n, e, 5 * H)
        tl.debug_barrier()  # the next step reads what every thread of this one has written
        announce(Flags, own, step - BR + 2, cols, CHUNK)


@triton.jit
def grid_bwd_kernel(
    GradH, GradC, States, Cells, Gates, Mask, Left, Top, DPre, DHidden, DState, Flags,
    spins, first_image, images, first_block, batch, rows, cols,
    CELL: tl.constexpr, NAME: tl.constexpr, G: tl.constexpr, H: tl.constexpr, MASKED: tl.constexpr,
    BR: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, CHUNK: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """The same wavefront from the last pixel, rows and columns counted from the end.

    DPre, DHidden [image, rows, cols, G*H]; GradH, GradC, DState [.., H]; Gates [.., 5*H]; DHidden is DPre
    but for a gru.
    """
    program = tl.program_id(0)
    image = (first_image + program % images).to(tl.int64)
    row_block = first_block + program // images
    own = 1 + image * tl.cdiv(rows, BR) + row_block
    i = tl.arange(0, BR)
    row = row_block * BR + i
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
        if Flags is not None:
            if (row_block > first_block) & (step % CHUNK == 0) & (step < cols):
                wait_for(Flags + own - 1, step // CHUNK + 1, Flags, spins)
        there = here
        if MASKED:
            there = tl.load(Mask + at, mask=here, other=0) != 0
        for first in range(0, H, BN):
            n = first + tl.arange(0, BN)
            inside = here[:, None] & (n < H)[None, :]
            grad_h = load_rows(GradH, at, here, n, H, H)
            if CELL == "rnn":
                h = load_rows(States, state, here, n, H, H)
            else:
                a = load_float(Gates, at, here, n, H, 5 * H)
                b = load_float(Gates + H, at, here, n, H, 5 * H)
                c = load_float(Gates + 2 * H, at, here, n, H, 5 * H)
                d = load_float(Gates + 3 * H, at, here, n, H, 5 * H)
                e = load_float(Gates + 4 * H, at, here, n, H, 5 * H)
                # What the neighbours after it hand back: of b they kept, of that the share c from the left
                back = load_float(Gates + H, right, has_right, n, H, 5 * H)
                back *= load_float(Gates + 2 * H, right, has_right, n, H, 5 * H)
                back *= load_float(DState, right, has_right, n, H, H)
                under = load_float(Gates + H, below, has_below, n, H, 5 * H)
                under *= 1 - load_float(Gates + 2 * H, below, has_below, n, H, 5 * H)
                back += under * load_float(DState, below, has_below, n, H, H)
            if CELL == "lstm":
                cell = load_float(Cells, state, here, n, H, H)
                s_left = load_float(Cells, state - 1, here, n, H, H)
                s_top = load_float(Cells, state - wide, here, n, H, H)
            if CELL == "gru":
                s_left = load_float(States, state - 1, here, n, H, H)
                s_top = load_float(States, state - wide, here, n, H, H)
            dh = tl.zeros((BR, BN), tl.float32)
            for block in range(0, G * H, BK):
                k = block + tl.arange(0, BK)
                w = load_weights(Left + weights, k, n, G * H, H, H, 1)
                dh = product(load_rows(DHidden, right, has_right, k, G * H, G * H), w, dh, PRECISION, UPCAST)
                w = load_weights(Top + weights, k, n, G * H, H, H, 1)
                dh = product(load_rows(DHidden, below, has_below, k, G * H, G * H), w, dh, PRECISION, UPCAST)
            dh += grad_h
            if CELL == "rnn":
                da = dh * slope(h.to(tl.float32), NAME)
                store_rows(DPre, at, inside, n, tl.where(there[:, None], da, 0.0), H)
            if CELL == "lstm":
                out = tanh(cell)
                dc = dh * e * (1 - out * out) + back
                if GradC is not None:
                    dc += load_float(GradC, at, here, n, H, H)
                dc = tl.where(there[:, None], dc, 0.0)
                dh = tl.where(there[:, None], dh, 0.0)
                store_rows(DState, at, inside, n, dc, H)
                di = dc * d * a * (1 - a)
                df = dc * (c * s_left + (1 - c) * s_top) * b * (1 - b)
                dl = dc * b * (s_left - s_top) * c * (1 - c)
                store_gates(DPre, at, inside, n, di, df, dl, dc * a * (1 - d * d), H, G * H)
                store_rows(DPre + 4 * H, at, inside, n, dh * out * e * (1 - e), G * H)
            if CELL == "gru":
                dh = tl.where(there[:, None], dh + back, 0.0)
                store_rows(DState, at, inside, n, dh, H)
                dn = dh * (1 - b) * (1 - d * d)
                dr = dn * e * a * (1 - a)
                dz = dh * (c * s_left + (1 - c) * s_top - d) * b * (1 - b)
                dl = dh * b * (s_left - s_top) * c * (1 - c)
                store_gates(DPre, at, inside, n, dr, dz, dl, dn, H, G * H)
                store_gates(DHidden, at, inside, n, dr, dz, dl, dn * a, H, G * H)
        tl.debug_barrier()
        announce(Flags, own, step - BR + 2, cols, CHUNK)
