"""What surrounds the wavefront of a small image, a kernel for each: sums before it, gradients after it.

torch takes a dozen operations for the same, and each takes the host longer than the GPU takes for all. Pixels
are counted as a direction travels; `flips` has two bits for each direction, 1 if it goes up and 2 if it goes
left.
"""

# Kernels are read by Triton, not by Python: what is None, or not, is known when one is compiled
# ruff: noqa: SIM102
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from lattend.nn.grid.gpu.streamed import load_float, store_rows
from lattend.nn.grid.gpu.wavefront import load_rows, load_weights, product


@triton.jit
def image_place(pixel, flip, rows, cols, step_image, step_row, step_col):
    """Where a pixel lies in memory with these strides, seen flipped."""
    row = pixel // cols % rows
    col = pixel % cols
    row = tl.where((flip & 1) != 0, rows - 1 - row, row)
    col = tl.where((flip & 2) != 0, cols - 1 - col, col)
    return (pixel // (rows * cols)).to(tl.int64) * step_image + row * step_row + col * step_col


@triton.jit
def load_pixels(Base, place, inside, column, SIZE: tl.constexpr, step):
    """[pixels, columns] of an image in which columns are so far apart."""
    there = inside[:, None] & (column < SIZE)[None, :]
    return tl.load(Base + place[:, None] + column[None, :] * step, mask=there, other=0.0)


@triton.jit
def write_frame(
    States, Left, Top, first, images, rows, cols, H: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """Row 0 and column 0 of the states, BM of all their places: the edges, zeros where there are none."""
    around = rows + cols + 1
    number = first + tl.arange(0, BM)
    inside = number < images * around
    image = (number // around).to(tl.int64)
    at = number % around  # the corner, then down the column, then along the row
    down = (at > 0) & (at <= rows)
    along = at > rows
    place = image * (rows + 1) * (cols + 1) + tl.where(along, at - rows, at * (cols + 1))
    for column in range(0, H, BN):
        n = column + tl.arange(0, BN)
        edge = tl.zeros((BM, BN), tl.float32)
        if Left is not None:
            edge += load_float(Left, image * rows + at - 1, inside & down, n, H, H)
        if Top is not None:
            edge += load_float(Top, image * cols + at - rows - 1, inside & along, n, H, H)
        store_rows(States, place, inside[:, None] & (n < H)[None, :], n, edge, H)


@triton.jit
def grid_inputs_kernel(
    X, Into, Bias, Pre, States, Cells, Left, Top, LeftC, TopC,
    batch, rows, cols, step_image, step_row, step_col, step_channel, flips, tiles,
    D: tl.constexpr, C: tl.constexpr, G: tl.constexpr, H: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Pre [D, pixels, G*H] = W_in x + b by the first `tiles` programs; the frames of States and Cells."""
    program = tl.program_id(0)
    pixels = batch * rows * cols
    if program < tiles:
        across = tl.cdiv(G * H, BN)
        blocks = tl.cdiv(pixels, BM)
        n = program % across * BN + tl.arange(0, BN)
        pixel = program // across % blocks * BM + tl.arange(0, BM)
        direction = program // (across * blocks)
        inside = pixel < pixels
        place = image_place(pixel, flips >> 2 * direction, rows, cols, step_image, step_row, step_col)
        total = tl.zeros((BM, BN), tl.float32)
        for first in range(0, C, BK):
            k = first + tl.arange(0, BK)
            x = load_pixels(X, place, inside, k, C, step_channel)
            w = load_weights(Into + direction * G * H * C, k, n, C, G * H, 1, C)
            total = product(x, w, total, PRECISION, UPCAST)
        if Bias is not None:
            total += tl.load(Bias + direction * G * H + n, mask=n < G * H, other=0.0).to(tl.float32)[None, :]
        there = inside[:, None] & (n < G * H)[None, :]
        store_rows(Pre, direction * pixels + pixel, there, n, total, G * H)
    else:
        first = (program - tiles) * BM
        write_frame(States, Left, Top, first, D * batch, rows, cols, H, BM, BN)
        if Cells is not None:
            write_frame(Cells, LeftC, TopC, first, D * batch, rows, cols, H, BM, BN)


@triton.jit
def load_grads(Base, g, pixel, inside, SIZE: tl.constexpr):
    """[g, pixels] of gradients with SIZE numbers a pixel."""
    there = (g < SIZE)[:, None] & inside[None, :]
    return tl.load(Base + pixel[None, :] * SIZE + g[:, None], mask=there, other=0.0)


@triton.jit
def sum_over_pixels(
    Grads, Seen, g, n, flip, pixels, rows, cols, step_image, step_row, step_col, step,
    SIZE_G: tl.constexpr, SIZE_N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """[g, n]: over all pixels, the sum of gradient g times number n of what was seen there."""
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, pixels, BK):
        pixel = first + tl.arange(0, BK)
        inside = pixel < pixels
        place = image_place(pixel, flip, rows, cols, step_image, step_row, step_col)
        grads = load_grads(Grads, g, pixel, inside, SIZE_G)
        total = product(grads, load_pixels(Seen, place, inside, n, SIZE_N, step), total, PRECISION, UPCAST)
    return total


@triton.jit
def grid_gradients_kernel(
    X, Into, States, DPre, DHidden, DX, DInto, DBias, DLeft, DTop,
    batch, rows, cols, step_image, step_row, step_col, step_channel, flips, tiles,
    D: tl.constexpr, C: tl.constexpr, G: tl.constexpr, H: tl.constexpr,
    OF_INTO: tl.constexpr, OF_LEFT: tl.constexpr, OF_TOP: tl.constexpr, PARTS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """The gradients of weights, by the first `tiles` programs, and that of X; none for an output of None.

    For BM rows of the weights there are PARTS programs: OF_INTO for BN columns of W_in each, OF_LEFT and
    OF_TOP for W_left and W_top, and one for the bias. Each sums over all pixels in their order.
    """
    program = tl.program_id(0)
    pixels = batch * rows * cols
    if program < tiles:
        part = program % PARTS
        across = tl.cdiv(G * H, BM)
        g = program // PARTS % across * BM + tl.arange(0, BM)
        direction = program // (PARTS * across)
        before = direction * G * H  # rows of the weights
        grads = DHidden + before * pixels
        states = States + direction * batch * (rows + 1) * (cols + 1) * H
        wide = (cols + 1) * H
        if DInto is not None:
            if part < OF_INTO:
                n = part * BN + tl.arange(0, BN)
                total = sum_over_pixels(
                    DPre + before * pixels, X, g, n, flips >> 2 * direction, pixels, rows, cols,
                    step_image, step_row, step_col, step_channel, G * H, C, BM, BN, BK, PRECISION, UPCAST,
                )  # fmt: skip
                store_rows(DInto, before + g, (g < G * H)[:, None] & (n < C)[None, :], n, total, C)
        if DLeft is not None:
            if (part >= OF_INTO) & (part < OF_INTO + OF_LEFT):
                n = (part - OF_INTO) * BN + tl.arange(0, BN)
                total = sum_over_pixels(
                    grads, states + wide, g, n, 0, pixels, rows, cols,
                    (rows + 1) * wide, wide, H, 1, G * H, H, BM, BN, BK, PRECISION, UPCAST,
                )  # fmt: skip
                store_rows(DLeft, before + g, (g < G * H)[:, None] & (n < H)[None, :], n, total, H)
        if DTop is not None:
            if (part >= OF_INTO + OF_LEFT) & (part < OF_INTO + OF_LEFT + OF_TOP):
                n = (part - OF_INTO - OF_LEFT) * BN + tl.arange(0, BN)
                total = sum_over_pixels(
                    grads, states + H, g, n, 0, pixels, rows, cols,
                    (rows + 1) * wide, wide, H, 1, G * H, H, BM, BN, BK, PRECISION, UPCAST,
                )  # fmt: skip
                store_rows(DTop, before + g, (g < G * H)[:, None] & (n < H)[None, :], n, total, H)
        if DBias is not None:
            if part == OF_INTO + OF_LEFT + OF_TOP:
                total = tl.zeros((BM,), tl.float32)
                for first in range(0, pixels, BK):
                    pixel = first + tl.arange(0, BK)
                    found = load_grads(DPre + before * pixels, g, pixel, pixel < pixels, G * H)
                    total += tl.sum(found.to(tl.float32), 1)
                tl.store(DBias + before + g, total.to(DBias.dtype.element_ty), mask=g < G * H)
    elif DX is not None:
        across = tl.cdiv(C, BN)
        n = (program - tiles) % across * BN + tl.arange(0, BN)
        pixel = (program - tiles) // across * BM + tl.arange(0, BM)
        inside = pixel < pixels
        total = tl.zeros((BM, BN), tl.float32)
        for direction in range(0, D):
            seen = image_place(pixel, flips >> 2 * direction, rows, cols, rows * cols, cols, 1)
            for first in range(0, G * H, BK):
                k = first + tl.arange(0, BK)
                grads = load_rows(DPre, direction * pixels + seen, inside, k, G * H, G * H)
                w = load_weights(Into + direction * G * H * C, k, n, G * H, C, C, 1)
                total = product(grads, w, total, PRECISION, UPCAST)
        store_rows(DX, pixel, inside[:, None] & (n < C)[None, :], n, total, C)


@triton.jit
def grid_join_kernel(
    Maps, Map, batch, rows, cols, flips, map_direction, map_image, map_row,
    step_image, step_row, step_col, step,
    H: tl.constexpr, APART: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """The maps [D, batch, rows, cols, H] of all directions side by side in Map [batch, rows, cols, D*H].

    With APART the other way round. `map_…` are the strides of Maps.
    """
    pixels = batch * rows * cols
    blocks = tl.cdiv(pixels, BM)
    direction = tl.program_id(0) // blocks
    pixel = tl.program_id(0) % blocks * BM + tl.arange(0, BM)
    inside = pixel < pixels
    of_maps = direction * map_direction + image_place(pixel, 0, rows, cols, map_image, map_row, H)
    of_map = image_place(pixel, flips >> 2 * direction, rows, cols, step_image, step_row, step_col)
    for first in range(0, H, BN):
        n = first + tl.arange(0, BN)
        there = inside[:, None] & (n < H)[None, :]
        maps = Maps + of_maps[:, None] + n[None, :]
        joined = Map + of_map[:, None] + (direction * H + n)[None, :] * step
        if APART:
            tl.store(maps, tl.load(joined, mask=there, other=0.0), mask=there)
        else:
            tl.store(joined, tl.load(maps, mask=there, other=0.0), mask=there)
