"""The kernel of the largest scores: one program takes one tile of queries, as in the forward kernel."""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl

from lattend.attend.kernels.triton.forward import (
    attended_pairs,
    block_of,
    full_range,
    in_padding,
    product,
    row_bounds,
    rows_of,
    step_at,
    step_bounds,
)
from lattend.attend.kernels.triton.geometry import (
    PLAIN,
    entry_of,
    inner_count,
    outer_rows,
    step_columns,
)
from lattend.attend.kernels.triton.pairs import real_keys, tanh


@triton.jit(do_not_specialize=[name for name in PLAIN if name != "keys"])
def attention_max_kernel(
    Q, K, Top, Table, Header, Data, scale, softcap, Seed, limit, kept_share, KeyRange, KeyMask, mask_row,
    q_batch, q_head, q_row, k_batch, k_head, k_row, heads, share, rows, tiles, table_batch, table_head,
    BOUNDS: tl.constexpr, REST: tl.constexpr, BIAS: tl.constexpr, CAPPED: tl.constexpr, DROPS: tl.constexpr,
    PADDED: tl.constexpr, HOLES: tl.constexpr,
    AXES: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    OUTER_KINDS: tl.constexpr, INNER_KINDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
    HAS_FULL: tl.constexpr, TMA: tl.constexpr, BOX: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Raises Top of a tile of queries to the largest of its scores."""
    program = tl.program_id(0)
    tile, pair = program % tiles, program // tiles
    batch, head = (pair // heads).to(tl.int64), pair % heads
    entry = entry_of(Table, batch * table_batch + head * table_head + tile, AXES, INNER_KINDS, 0)
    oa, ob, oc, place, inside = outer_rows(Header, entry, BLOCK_M, AXES, TY, TX, OUTER_KINDS, WIDE)
    bounds = row_bounds(oa, ob, oc, head, batch, Header, Data, BOUNDS, AXES, WIDE)
    Q += batch * q_batch + head.to(tl.int64) * q_head
    kv_head = head // share
    if not TMA:
        K += batch * k_batch + kv_head.to(tl.int64) * k_head
    begin = tl.load(entry + 2) + tl.load(entry + 3)  # the first inner position, where slots are in order
    state_rows = (batch * heads + head) * rows + place  # [BLOCK_M]
    q = rows_of(Q, place, inside, q_row, D, DP, True)  # [BLOCK_M, DP]
    top = tl.load(Top + state_rows, mask=inside, other=-float("inf"))

    count = inner_count(entry, AXES, BLOCK_N, BOX)
    full_first, full_end = full_range(entry, count, BLOCK_N, AXES, INNER_KINDS, HAS_FULL)
    SKIPS: tl.constexpr = PADDED and AXES == 1 and INNER_KINDS[0] == 0
    first_step, end_step, full_first, full_end = in_padding(
        KeyRange, batch, begin, count, full_first, full_end, BLOCK_N, SKIPS
    )
    for FULL in tl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
        first_index, end_index = step_bounds(first_step, end_step, full_first, full_end, FULL)
        for index in range(first_index, end_index):
            step = step_at(index, full_first, full_end, FULL)
            ia, ib, ic, at, there, first, across = step_columns(
                Header, entry, begin, step, AXES, INNER_KINDS, BLOCK_N, BOX, WIDE
            )
            k = block_of(
                K, at, there, k_row, batch, kv_head, first, across, D, DP, BLOCK_N, not FULL, TMA, BOX
            )
            s = product(q, tl.trans(k), PRECISION, UPCAST) * scale  # [BLOCK_M, BLOCK_N]
            if CAPPED:
                s = softcap * tanh(s / softcap)
            if BIAS is not None:
                s += BIAS(oa, ob, oc, ia, ib, ic, head, batch, Header, Data, WIDE)
            attended = attended_pairs(
                oa, ob, oc, ia, ib, ic, first, across, bounds, head, batch, Header, Data,
                REST, AXES, FULL, BLOCK_N, BOX, WIDE,
            )  # fmt: skip
            if PADDED:
                attended &= real_keys(KeyRange, KeyMask, mask_row, batch, at, there, HOLES)[None, :]
            top = tl.maximum(top, tl.max(tl.where(attended, s, -float("inf")), 1))
    tl.store(Top + state_rows, top, mask=inside)
