"""What happens to the scores and weights of single pairs in a kernel: a softcap, dropout, padding.

The hash is that of attend/call/dropout.py, in the same steps.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from lattend.attend.call import dropout

FIRST: tl.constexpr = tl.constexpr(dropout.FIRST)
SECOND: tl.constexpr = tl.constexpr(dropout.SECOND)
ODD: tl.constexpr = tl.constexpr(dropout.ODD)
PLACED: tl.constexpr = tl.constexpr(dropout.PLACED)
SHIFT: tl.constexpr = tl.constexpr(32 - dropout.BITS)
TWO_LOG2E: tl.constexpr = tl.constexpr(2 * 1.4426950408889634)


@triton.jit
def tanh(x):
    """The hyperbolic tangent; of large numbers too, where the exponential is infinite or 0.

    Near 0 it is its series, since a difference of numbers near 1 has few digits left.
    """
    y = x * x
    series = x + x * y * (-1 / 3 + y * (2 / 15 + y * (-17 / 315 + y * (62 / 2835))))
    return tl.where(y < 0.0625, series, 1.0 - 2.0 / (tl.math.exp2(x * TWO_LOG2E) + 1.0))


@triton.jit
def mixed(x):
    """A hash of 32 bits."""
    x = (x ^ (x >> 16)) * tl.cast(FIRST, tl.uint32)
    x = (x ^ (x >> 15)) * tl.cast(SECOND, tl.uint32)
    return x ^ (x >> 16)


@triton.jit
def kept_pairs(Seed, limit, member, queries, keys, DROPS: tl.constexpr):
    """Whether each pair is kept; queries and keys are flat positions that broadcast to the tile.

    DROPS is 1, or 2 where the call is a part of a larger one, and its places there come after the seed.
    """
    if DROPS == 2:
        heads, n, m = tl.load(Seed + 1), tl.load(Seed + 4), tl.load(Seed + 5)
        member = member // heads * tl.load(Seed + 2) + member % heads + tl.load(Seed + 3)
        queries = tl.load(Seed + PLACED + tl.minimum(queries, n - 1))
        keys = tl.load(Seed + PLACED + n + tl.minimum(keys, m - 1))
    seed = tl.load(Seed).to(tl.uint64, bitcast=True)
    low, high = seed.to(tl.uint32), (seed >> 32).to(tl.uint32)
    row = mixed(mixed(mixed(member.to(tl.uint32) ^ low) + queries.to(tl.uint32)) ^ high)
    odd = mixed(row + tl.cast(ODD, tl.uint32)) | 1
    return (mixed(keys.to(tl.uint32) * odd + row) >> SHIFT) >= limit.to(tl.uint32)


@triton.jit
def real_keys(KeyRange, KeyMask, mask_row, batch, keys, there, HOLES: tl.constexpr):
    """Which of the keys, flat positions, are no padding."""
    real = (keys >= tl.load(KeyRange + 2 * batch)) & (keys < tl.load(KeyRange + 2 * batch + 1))
    if HOLES:
        real &= tl.load(KeyMask + batch * mask_row + keys, mask=real & there, other=0) != 0
    return real
