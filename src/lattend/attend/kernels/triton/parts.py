"""The forward kernel and that of the queries' gradient for several parts: one launch, heads in turn.

A part takes up the sums of the one before it. Launched one after another, each goes through all heads, and
what it left of a head is out of the L2 cache when the next one comes to it. Here programs go in stages: stage
s has the tiles of the first part of head s, of the second part of head s - 1, and so on, so that a part finds
the sums, q, k and v of its head in L2. It waits until all tiles of earlier parts of its head are done, which
after a whole stage they nearly always are.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false

from __future__ import annotations

import triton
import triton.language as tl

from lattend.attend.kernels.triton.backward import dq_tile
from lattend.attend.kernels.triton.forward import attend_tile

MOST_PARTS = 3  # that the kernels have arguments for
# Their constants that are tuples, an entry a part
PER_PART = ("BOUNDS", "REST", "BIAS", "AXES", "TY", "TX", "OUTER_KINDS", "INNER_KINDS", "BLOCK_M", "BLOCK_N")
PER_PART += ("HAS_FULL", "CONTINUES", "ENDS", "TMA", "WIDE", "BY_HEAD", "SLOPES", "MAKES_DELTA")

# Arguments that follow n: a kernel compiled for one value of these serves all
PLAIN = ["limit", "mask_row", "rows", "pairs", "tiles_a", "tiles_b", "tiles_c"]


@triton.jit
def count_tile(Done):
    """Counts a tile as done, once all threads have written what is theirs."""
    tl.debug_barrier()
    tl.atomic_add(Done, 1, sem="release")


@triton.jit(do_not_specialize=PLAIN)
def attention_fwd_parts_kernel(
    Q, KA, VA, KB, VB, KC, VC, Out, State, Lse, Done, Tables, Headers, DataA, DataB, DataC,
    scale, softcap, Seed, limit, kept_share, KeyRange, KeyMask, mask_row,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    heads, share, rows, pairs, tiles_a, tiles_b, tiles_c,
    BOUNDS: tl.constexpr, REST: tl.constexpr, BIAS: tl.constexpr, CAPPED: tl.constexpr, DROPS: tl.constexpr,
    PADDED: tl.constexpr, HOLES: tl.constexpr,
    AXES: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    OUTER_KINDS: tl.constexpr, INNER_KINDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
    HAS_FULL: tl.constexpr, CONTINUES: tl.constexpr, ENDS: tl.constexpr, TMA: tl.constexpr,
    BY_HEAD: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Out and Lse of all parts; `pairs` of a batch element and a head each have a count in Done."""
    K, V, Data, tiles = (KA, KB, KC), (VA, VB, VC), (DataA, DataB, DataC), (tiles_a, tiles_b, tiles_c)
    # No deadlock: programs begin in the order of their ids, and wait for those of earlier ids alone
    program, each = tl.program_id(0), tiles_a + tiles_b + tiles_c
    stage, tile, before = program // each, program % each, 0
    for PART in tl.static_range(len(AXES)):
        pair = stage - PART
        if (tile >= 0) & (tile < tiles[PART]) & (pair >= 0) & (pair < pairs):
            attend_tile(
                tile, pair, Q, K[PART], V[PART], Out, State, Lse, Done if PART > 0 else None,
                Tables[PART], Headers[PART], Data[PART],
                scale, softcap, Seed, limit, kept_share, KeyRange, KeyMask, mask_row,
                q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
                o_batch, o_head, o_row,
                heads, share, rows, before, 0, tiles[PART] * BY_HEAD[PART],
                BOUNDS[PART], REST[PART], BIAS[PART], CAPPED, DROPS, PADDED, HOLES,
                AXES[PART], TY[PART], TX[PART],
                tl.constexpr(OUTER_KINDS[PART]), tl.constexpr(INNER_KINDS[PART]),
                BLOCK_M[PART], BLOCK_N[PART], D, DP, DV, DVP,
                HAS_FULL[PART], CONTINUES[PART], ENDS[PART], TMA[PART], PRECISION, UPCAST, WIDE[PART],
            )  # fmt: skip
            if len(AXES) - 1 > PART:
                count_tile(Done + pair)
        tile -= tiles[PART]
        before += tiles[PART]


@triton.jit(do_not_specialize=PLAIN)
def attention_bwd_dq_parts_kernel(
    Q, KA, VA, KB, VB, KC, VC, Out, GradOut, GradLse, Lse, Delta, SumQ, GradQ, SumsBias, Quanta,
    Done, Tables, Headers, DataA, DataB, DataC,
    scale, softcap, Seed, limit, kept_share, KeyRange, KeyMask, mask_row,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    o_batch, o_head, o_row, g_batch, g_head, g_row,
    heads, share, rows, pairs, tiles_a, tiles_b, tiles_c,
    BOUNDS: tl.constexpr, REST: tl.constexpr, BIAS: tl.constexpr, SLOPES: tl.constexpr,
    CAPPED: tl.constexpr, DROPS: tl.constexpr, PADDED: tl.constexpr, HOLES: tl.constexpr,
    AXES: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr,
    OUTER_KINDS: tl.constexpr, INNER_KINDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
    HAS_FULL: tl.constexpr, CONTINUES: tl.constexpr, ENDS: tl.constexpr, TMA: tl.constexpr,
    BY_HEAD: tl.constexpr, MAKES_DELTA: tl.constexpr, HAS_GRAD_LSE: tl.constexpr,
    PRECISION: tl.constexpr, UPCAST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The gradient of the queries by all parts, in the order of the forward kernel."""
    K, V, Data, tiles = (KA, KB, KC), (VA, VB, VC), (DataA, DataB, DataC), (tiles_a, tiles_b, tiles_c)
    program, each = tl.program_id(0), tiles_a + tiles_b + tiles_c
    stage, tile, before = program // each, program % each, 0
    for PART in tl.static_range(len(AXES)):
        pair = stage - PART
        if (tile >= 0) & (tile < tiles[PART]) & (pair >= 0) & (pair < pairs):
            dq_tile(
                tile, pair, Q, K[PART], V[PART], Out, GradOut, GradLse, Lse, Delta, SumQ, GradQ,
                SumsBias, Quanta, Done if PART > 0 else None, Tables[PART], Headers[PART], Data[PART],
                scale, softcap, Seed, limit, kept_share, KeyRange, KeyMask, mask_row,
                q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
                o_batch, o_head, o_row, g_batch, g_head, g_row,
                heads, share, rows, before, 0, tiles[PART] * BY_HEAD[PART],
                BOUNDS[PART], REST[PART], BIAS[PART], SLOPES[PART], CAPPED, DROPS, PADDED, HOLES,
                AXES[PART], TY[PART], TX[PART],
                tl.constexpr(OUTER_KINDS[PART]), tl.constexpr(INNER_KINDS[PART]),
                BLOCK_M[PART], BLOCK_N[PART], D, DP, DV, DVP,
                HAS_FULL[PART], CONTINUES[PART], ENDS[PART], TMA[PART], MAKES_DELTA[PART], HAS_GRAD_LSE,
                PRECISION, UPCAST, WIDE[PART],
            )  # fmt: skip
            if len(AXES) - 1 > PART:
                count_tile(Done + pair)
        tile -= tiles[PART]
        before += tiles[PART]
