"""The forward kernel on Hopper with three groups of warps: 192 queries, and steps of half as many keys.

For short tiles, in which two groups wait for each other's beginnings and ends. What they do is in forward.py.
"""


# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from lattend.attend.kernels.triton.geometry import PLAIN
from lattend.attend.kernels.triton.hopper.forward import compute, load, rooms_of
from lattend.attend.kernels.triton.hopper.forward_narrow import GROUPS, REGISTERS
from lattend.attend.kernels.triton.hopper.tiles import LOADER


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works"])
def attention_fwd_three_hopper_kernel(
    Q, K, V, JoinedK, JoinedV, Rows, Out, State, Lse, Table, Header, JoinedHeader, Data, RowBounds, scale,
    o_batch, o_head, o_row, heads, share, rows, tiles, table_batch, table_head, works,
    JOINED_BOUNDS: gl.constexpr, BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, DVP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    OUTER: gl.constexpr, INNER: gl.constexpr, LEAVES: gl.constexpr,
):  # fmt: skip
    """Out and Lse of tiles of queries, as attention_fwd_hopper_kernel has them."""
    MORE: gl.constexpr = 3 * (JOINED_BOUNDS is not None) + 2 * LEAVES + 3 * (OUTER + INNER > 0)
    buffers, barriers, order = rooms_of(Q, K, V, STAGES, DP, GROUPS, MORE)
    strides = (o_batch, o_head, o_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works)
    gl.warp_specialize(
        [
            (compute, (
                0, Rows, Out, State, Lse, Header, JoinedHeader, Data, RowBounds, buffers, barriers,
                order, scale, strides, numbers, JOINED_BOUNDS, BOUNDS, COLUMNS, PAIRS, STEP, STAGES,
                DP, DV, DVP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, OUTER, INNER, False, GROUPS, LEAVES,
            )),
            (compute, (
                1, Rows, Out, State, Lse, Header, JoinedHeader, Data, RowBounds, buffers, barriers,
                order, scale, strides, numbers, JOINED_BOUNDS, BOUNDS, COLUMNS, PAIRS, STEP, STAGES,
                DP, DV, DVP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, OUTER, INNER, False, GROUPS, LEAVES,
            )),
            (compute, (
                2, Rows, Out, State, Lse, Header, JoinedHeader, Data, RowBounds, buffers, barriers,
                order, scale, strides, numbers, JOINED_BOUNDS, BOUNDS, COLUMNS, PAIRS, STEP, STAGES,
                DP, DV, DVP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS, OUTER, INNER, False, GROUPS, LEAVES,
            )),
            (load, (
                Q, K, V, JoinedK, JoinedV, Table, Header, buffers, barriers, numbers,
                STEP, STAGES, HAS_FULL, JOINED_BOUNDS is not None, OUTER, INNER, LEAVES,
            )),
        ],
        [4, 4, 1],
        [REGISTERS, REGISTERS, LOADER],
    )  # fmt: skip
