"""The kernels of hard heads: out[q] = Σ_h keys[q, h] W^(h), where the product itself gathers each head's key.

Keys lie channels last with their padding around them, so that a head is one offset from its query's first
key: no load of the product needs a mask. Rows are queries or pixels of all images, one after another.
"""

# Kernels are read by Triton, not by Python
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from lattend.nn.grid.gpu.wavefront import product


@triton.jit
def channels_last_kernel(
    X, Out, x_image, x_channel, x_row, x_pixel, rows, cols, top, left, high, wide, channels, groups,
    DEPTH: tl.constexpr, CHANNELS_LAST: tl.constexpr, PIXELS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Out [images, groups, high, wide, DEPTH] of X [images, groups · channels, rows, cols]; zeros around."""
    blocks = tl.cdiv(high * wide, PIXELS)
    program = tl.program_id(0)
    block, rest = program % blocks, program // blocks
    part, rest = rest % (DEPTH // CHANNELS), rest // (DEPTH // CHANNELS)
    image, group = (rest // groups).to(tl.int64), rest % groups
    pixel = block * PIXELS + tl.arange(0, PIXELS)
    channel = part * CHANNELS + tl.arange(0, CHANNELS)
    y, x = pixel // wide - top, pixel % wide - left
    there = (y >= 0) & (y < rows) & (x >= 0) & (x < cols)
    where = image * x_image + y.to(tl.int64) * x_row + x * x_pixel  # [PIXELS]
    which = (group * channels + channel).to(tl.int64) * x_channel  # [CHANNELS]
    if CHANNELS_LAST:
        inside = there[:, None] & (channel < channels)[None, :]
        found = tl.load(X + where[:, None] + which[None, :], mask=inside, other=0.0)
    else:
        inside = there[None, :] & (channel < channels)[:, None]
        found = tl.trans(tl.load(X + where[None, :] + which[:, None], mask=inside, other=0.0))
    Out += rest.to(tl.int64) * high * wide * DEPTH
    place = Out + (pixel * DEPTH)[:, None] + channel[None, :]
    tl.store(place, found, mask=(pixel < high * wide)[:, None])


@triton.jit
def heads_kernel(
    Keys, Weights, Bias, Out,
    queries, out_rows, out_cols, columns, groups,
    image, group, by_row, by_col, begin, step_row, step_col,
    weight_head, weight_column, weight_depth, tap, tap_row, tap_col,
    out_image, out_channel, out_row, out_col, out_begin,
    DEPTH: tl.constexpr, TAPS: tl.constexpr, TAPS_X: tl.constexpr, CHANNELS_LAST: tl.constexpr,
    COLUMNS_LAST: tl.constexpr, RUN: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Out of BM queries and BN channels: Σ over TAPS heads of Keys at begin + by · query + step · head.

    RUN is how many queries in a row lie next to each other in Out, whatever the block; 0 where none do.
    """
    program = tl.program_id(0)
    blocks = tl.cdiv(columns, BN)
    block, rest = program % blocks, program // blocks
    which, rest = rest % groups, rest // groups
    query = rest * BM + tl.arange(0, BM)
    column = block * BN + tl.arange(0, BN)
    real = tl.minimum(query, queries - 1)
    pixels = out_rows * out_cols
    pixel = real % pixels
    n, y, x = (real // pixels).to(tl.int64), pixel // out_cols, pixel % out_cols
    k = tl.arange(0, BK)
    first = n * image + which * group + begin + y * by_row + x * by_col  # [BM]
    keys = Keys + first[:, None] + k[None, :]
    channel = which * columns + column
    known = which * columns + column % columns  # beyond the end, the first ones again
    weights = Weights + tap * weight_head  # [BN, BK], or [BK, BN] where columns follow each other in memory
    if COLUMNS_LAST:
        weights += (k * weight_depth)[:, None] + known[None, :]
    else:
        weights += (known * weight_column)[:, None] + k[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    parts: tl.constexpr = DEPTH // BK
    for turn in range(TAPS * parts):
        head, part = turn // parts, turn % parts
        ty, tx = head // TAPS_X, head % TAPS_X
        a = tl.load(keys + (ty * step_row + tx * step_col + part * BK))
        b = tl.load(weights + ((ty * tap_row + tx * tap_col) * weight_head + part * BK * weight_depth))
        total = product(a, b if COLUMNS_LAST else tl.trans(b), total, PRECISION, UPCAST)
    if Bias is not None:
        total += tl.load(Bias + known).to(tl.float32)[None, :]
    found = total.to(Out.dtype.element_ty)
    Out += out_begin
    real_columns, real_queries = column < columns, query < queries
    if RUN > 0:
        pixel = tl.max_contiguous(tl.multiple_of(query % pixels, RUN), RUN)
        place = (query // pixels).to(tl.int64) * out_image + pixel
    else:
        place = n * out_image + y * out_row + x * out_col
    if CHANNELS_LAST:
        mask = real_queries[:, None] & real_columns[None, :]
        tl.store(Out + place[:, None] + channel[None, :], found, mask=mask)
    else:
        mask = real_queries[None, :] & real_columns[:, None]
        channels = channel.to(tl.int64) * out_channel
        tl.store(Out + place[None, :] + channels[:, None], tl.trans(found), mask=mask)


@triton.jit
def weight_gradient_kernel(
    Keys, Grads, Sums,
    out_rows, out_cols, columns, groups, turns, each,
    image, group, by_row, by_col, begin, step_row, step_col, key_channel,
    grad_image, grad_group, grad_row, grad_col, grad_channel, grad_begin,
    CHANNELS: tl.constexpr, DEPTH: tl.constexpr, COLUMNS: tl.constexpr, HEADS: tl.constexpr,
    TAPS_X: tl.constexpr, PIXELS_LAST: tl.constexpr, EVEN: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Sums [splits, HEADS · CHANNELS, groups · columns]: keys with gradients, over a part of the queries.

    A turn of the loop takes BK queries of one line. PIXELS_LAST says how keys and gradients lie in memory.
    """
    program = tl.program_id(0)
    blocks_n, blocks_m = tl.cdiv(columns, BN), tl.cdiv(HEADS * DEPTH, BM)
    block_n, rest = program % blocks_n, program // blocks_n
    block_m, rest = rest % blocks_m, rest // blocks_m
    which, split = rest % groups, rest // groups
    m = (block_m * BM + tl.arange(0, BM)) % (HEADS * DEPTH)  # beyond the end, the first ones again
    n = block_n * BN + tl.arange(0, BN)
    head, channel = m // DEPTH, m % DEPTH
    key = (head // TAPS_X) * step_row + (head % TAPS_X) * step_col + channel * key_channel  # [BM]
    if not PIXELS_LAST:
        key = tl.max_contiguous(tl.multiple_of(key, 16), 16)  # channels are whole 16, and follow each other
    column = n % COLUMNS * grad_channel  # [BN]
    Keys += which.to(tl.int64) * group + begin
    Grads += which.to(tl.int64) * grad_group + grad_begin
    total = tl.zeros((BM, BN), tl.float32)
    lines_of = tl.cdiv(out_cols, BK)
    for turn in range(split * each, tl.minimum(split * each + each, turns)):
        line, begins = turn // lines_of, turn % lines_of * BK
        at, y = (line // out_rows).to(tl.int64), line % out_rows
        x = begins + tl.arange(0, BK)
        keys = Keys + at * image + y * by_row
        grads = Grads + at * grad_image + y * grad_row
        if PIXELS_LAST:
            keys += (x * by_col)[None, :] + key[:, None]
            grads += (x * grad_col)[None, :] + column[:, None]
            if EVEN:
                a, b = tl.load(keys), tl.load(grads)
            else:
                there = (x < out_cols)[None, :]
                a, b = tl.load(keys, mask=there, other=0.0), tl.load(grads, mask=there, other=0.0)
            total = product(a, tl.trans(b), total, PRECISION, UPCAST)
        else:
            keys += (x * by_col)[:, None] + key[None, :]
            grads += (x * grad_col)[:, None] + column[None, :]
            if EVEN:
                a, b = tl.load(keys), tl.load(grads)
            else:
                there = (x < out_cols)[:, None]
                a, b = tl.load(keys, mask=there, other=0.0), tl.load(grads, mask=there, other=0.0)
            total = product(tl.trans(a), b, total, PRECISION, UPCAST)
    m = block_m * BM + tl.arange(0, BM)
    head, channel = m // DEPTH, m % DEPTH
    Sums += split.to(tl.int64) * (HEADS * CHANNELS) * groups * columns + which * columns
    place = ((head * CHANNELS + channel) * (groups * columns))[:, None] + n[None, :]
    mask = ((m < HEADS * DEPTH) & (channel < CHANNELS))[:, None] & (n < columns)[None, :]
    tl.store(Sums + place, total.to(Sums.dtype.element_ty), mask=mask)
