"""The kernel that adds up what the chunks of a tile of keys (chunks.py) have found, and its launch."""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from lattend.attend.call.tensors import row_strides
from lattend.attend.kernels.triton import launch_replay
from lattend.attend.kernels.triton.backward import store_sum
from lattend.attend.kernels.triton.geometry import PLAIN, outer_axis
from lattend.attend.kernels.triton.launch_arguments import LaunchArguments, order_kind
from lattend.attend.kernels.triton.shapes import padded
from lattend.attend.replay.recorder import Recorder
from lattend.plans.tables.adjacency import has_large_numbers
from lattend.plans.tables.part_passes import PartPass

AT_ONCE: tl.constexpr = tl.constexpr(8)  # chunks whose sums are on the way


@triton.jit
def summed(Share, at, count, apart, inside, SIZE: tl.constexpr, PADDED: tl.constexpr):
    """The sum of `count` chunks' rows, added up in their order; those of a chunk lie `apart` rows on."""
    column = tl.arange(0, PADDED)
    end = at + count * apart
    total = tl.zeros([at.shape[0], PADDED], tl.float32)
    for chunk in range(0, count, AT_ONCE):
        for ahead in tl.static_range(AT_ONCE):
            row = at + (chunk + ahead) * apart
            here = Share + row[:, None] * SIZE + column[None, :]
            there = (inside & (row < end))[:, None] & (column[None, :] < SIZE)
            total += tl.load(here, mask=there, other=0.0)
    return total


@triton.jit(do_not_specialize=[*PLAIN, "chunks"])
def chunk_sums_kernel(
    ShareK, ShareV, SumK, SumV, GradK, GradV, OfRows, Tiles, Header,
    dk_batch, dk_head, dk_row, dv_batch, dv_head, dv_row, kv_heads, keys, tiles, chunks,
    TILE: tl.constexpr, ROWS: tl.constexpr, KIND: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr,
    CONTINUES: tl.constexpr, ENDS: tl.constexpr, SOME: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The gradients of ROWS keys of a tile of TILE, and of their values, from the shares of its chunks."""
    BLOCKS: tl.constexpr = TILE // ROWS
    program = tl.program_id(0)
    block, tile, pair = program % BLOCKS, program // BLOCKS % tiles, program // BLOCKS // tiles
    batch, kv_head = (pair // kv_heads).to(tl.int64), pair % kv_heads
    row = block * ROWS + tl.arange(0, ROWS)
    entry = Tiles + tile * 4
    place, _, inside = outer_axis(Header, entry, row, 0, KIND, WIDE)
    first, count = tl.load(entry + 2), tl.load(entry + 3)
    at = (pair.to(tl.int64) * chunks + first) * TILE + row
    first_key = (batch * kv_heads + kv_head) * keys
    store_sum(
        SumK, GradK, OfRows, first_key, place, inside, batch, kv_head, dk_batch, dk_head, dk_row,
        summed(ShareK, at, count, TILE, inside, D, DP), D, DP, CONTINUES, ENDS, SOME, 1,
    )  # fmt: skip
    store_sum(
        SumV, GradV, OfRows, first_key, place, inside, batch, kv_head, dv_batch, dv_head, dv_row,
        summed(ShareV, at, count, TILE, inside, DV, DVP), DV, DVP, CONTINUES, ENDS, SOME, 2,
    )  # fmt: skip


def add_chunks(
    recorder: Recorder, ready: LaunchArguments, each: PartPass, shares: tuple[Tensor, ...], sums:
    tuple[Tensor, ...], found: tuple[Tensor, ...], of_rows: tuple[Tensor, ...], SOME: bool,
) -> None:  # fmt: skip
    """Adds up the shares of the chunks of each tile."""
    assert ready.chunks is not None
    k, v = found
    tiles, rows, kind = len(ready.chunks), min(16, ready.shape.rows), ready.part.axes[0].outer_order
    arguments = (
        *shares, *sums, *found, of_rows, ready.chunks, ready.header,
        *row_strides(k), *row_strides(v),
        k.shape[1], k.shape[2], tiles, ready.tiles,
    )  # fmt: skip
    constants = each.constants | {
        **{"TILE": ready.shape.rows, "ROWS": rows, "KIND": order_kind(kind)},
        **{"D": k.shape[-1], "DP": padded(k.shape[-1]), "DV": v.shape[-1], "DVP": padded(v.shape[-1])},
        **{"SOME": SOME, "WIDE": has_large_numbers(ready.part)},
    }
    programs = ready.shape.rows // rows * tiles * k.shape[:2].numel()
    launch_replay.launch(recorder, chunk_sums_kernel, programs, arguments, constants)
