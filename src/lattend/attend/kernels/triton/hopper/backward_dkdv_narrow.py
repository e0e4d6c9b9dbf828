"""Gradients of keys and values on Hopper where head_dim is 64 at most: three groups of warps, 64 keys each.

What they do is in backward_dkdv.py.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from lattend.attend.kernels.triton.geometry import PLAIN
from lattend.attend.kernels.triton.hopper.backward_dkdv import compute, load, rooms_of
from lattend.attend.kernels.triton.hopper.forward_narrow import GROUPS, REGISTERS
from lattend.attend.kernels.triton.hopper.tiles import LOADER


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works", "query_rows"])
def attention_bwd_dkdv_narrow_hopper_kernel(
    K, V, Q, G, Lse, Delta, RowsK, RowsV, SumK, SumV, FinalK, FinalV, OfRows, Table, Header, Data, RowBounds,
    scale, k_batch, k_head, k_row, v_batch, v_head, v_row,
    heads, share, rows, tiles, table_batch, table_head, works, query_rows,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    SOME: gl.constexpr, SHARED: gl.constexpr,
):  # fmt: skip
    """The gradients of tiles of keys and values; all query heads that share them are taken in turn."""
    buffers, barriers = rooms_of(K, V, Q, G, Lse, Delta, STEP, STAGES, False, GROUPS)
    k_strides, v_strides = (k_batch, k_head, k_row), (v_batch, v_head, v_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works, query_rows)
    gl.warp_specialize(
        [
            (compute, (
                0, RowsK, RowsV, SumK, SumV, FinalK, FinalV, OfRows, Header, Data, RowBounds,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                SOME, SHARED, False, GROUPS,
            )),
            (compute, (
                1, RowsK, RowsV, SumK, SumV, FinalK, FinalV, OfRows, Header, Data, RowBounds,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                SOME, SHARED, False, GROUPS,
            )),
            (compute, (
                2, RowsK, RowsV, SumK, SumV, FinalK, FinalV, OfRows, Header, Data, RowBounds,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                SOME, SHARED, False, GROUPS,
            )),
            (load, (
                K, V, Q, G, Lse, Delta, Table, Header, buffers, barriers, numbers,
                STEP, STAGES, HAS_FULL, SHARED, False,
            )),
        ],
        [4, 4, 1],
        [REGISTERS, REGISTERS, LOADER],
    )  # fmt: skip
