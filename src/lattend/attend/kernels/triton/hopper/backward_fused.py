"""All three gradients on Hopper in one kernel, in Gluon: five products of matrices in place of seven.

As in backward_dkdv.py a tile has 128 keys, 64 for each of two groups that compute, and steps bring queries.
The slopes of a step, which are in registers for the gradient of keys, also go to shared memory, where both
groups take those of all 128 keys for half of the queries' gradient each. What a step adds to that gradient a
warp of its own has TMA add to float32 sums in memory.

Sums that several programs add to come out the same on every run if all add in the same order: a counter for
each block of queries says how many tiles have added to it, and a tile waits for those before it in the plan's
order (ORDERED). Tiles are taken in that order too, and each goes through its queries from the last to the
first: when a tile comes to a block, those before it are done with it, so that hardly any waits.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false

from __future__ import annotations

from typing import Any

from triton._C.libtriton import ir
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import builtin
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from lattend.attend.kernels.triton.geometry import PLAIN
from lattend.attend.kernels.triton.hopper.tiles import (
    GROUPS,
    LOADER,
    LOG2E,
    OR_ZERO,
    REGISTERS,
    ROWS,
    arrived,
    barriers_of,
    bits_of,
    bounds_of,
    lay,
    load_step,
    note,
    notes,
    product,
    rows_of,
    send,
    tile_noted,
    tile_of,
    turns_of,
    weighed,
    where_pairs_kept,
    where_set,
    work_at,
)

# Until what TMA was told to write is in memory, for others too: all, or all but the last step's
WRITTEN_ALL: gl.constexpr = gl.constexpr("cp.async.bulk.wait_group 0; fence.proxy.async; mov.u32 $0, $1;")
WRITTEN_BUT_LAST: gl.constexpr = gl.constexpr(WRITTEN_ALL.value.replace("0", "2", 1))
SLOPES: gl.constexpr = gl.constexpr(2)  # steps whose slopes are in shared memory


@builtin
def add_to_global(block: Any, place: Any, source: Any, _semantic: Any = None) -> None:
    """Has TMA add shared memory to a tensor; Gluon of Triton 3.6 has the instruction and no name for it."""
    at = _semantic._convert_to_ir_values(place, require_i64=False)
    _semantic.builder.create_async_tma_reduce(ir.DESCRIPTOR_REDUCE_KIND.ADD, block.handle, at, source.handle)


@gluon.jit
def keys_of(turn, Table, Header, numbers, STEP: gl.constexpr, HAS_FULL: gl.constexpr):
    """The tile of keys of a turn; its queries begin at a multiple of STEP: tiles share blocks of them.

    Where not all rows are the tile's, every step has a mask: the sums for queries take all rows.
    """
    kv_heads, _, _, tiles, table_batch, table_head, works, _ = numbers
    of_tiles = (kv_heads, 1, 0, tiles, table_batch, table_head, works)
    tile = tile_of(turn, Table, Header, of_tiles, STEP, HAS_FULL, STEP)
    batch, head, slot, base, first, count, steps, masked, full_first, rows_first, rows_end = tile
    complete = (rows_first == 0) & (rows_end == GROUPS * ROWS)
    masked, full_first = gl.where(complete, masked, steps), gl.where(complete, full_first, steps)
    return batch, head, slot, base, first, count, steps, masked, full_first, rows_first, rows_end


@gluon.jit
def kinds_of(tile, ORDERED: gl.constexpr):
    """How many steps there are before the full ones, as they are taken, and how many before those after them.

    There is always one before: ptxas prepares there what all loops share (tile_of).
    """
    steps, masked, full_first = tile[6], tile[7], tile[8]
    full_end = full_first + steps - masked
    before, after = (steps - full_end, steps - full_first) if ORDERED else (full_first, full_end)
    before = gl.maximum(before, 1)
    return before, gl.maximum(after, before)


@gluon.jit
def queries_at(index, tile, STEP: gl.constexpr, ORDERED: gl.constexpr):
    """The first query of a step; the last queries come first where tiles add in order."""
    step = tile[6] - 1 - index if ORDERED else index
    return tile[4] + step * STEP


@gluon.jit
def load(
    K, V, Q, G, Lse, Delta, Table, Header, buffers, barriers, numbers,
    STEP: gl.constexpr, STAGES: gl.constexpr, HAS_FULL: gl.constexpr, ORDERED: gl.constexpr,
):  # fmt: skip
    """The trade of the warp that loads."""
    k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, _, _, noted = buffers
    ready, free, q_ready, q_free, g_ready, g_free, _, _, _, _, _ = barriers
    kv_heads, share, works, query_rows = numbers[0], numbers[1], numbers[6], numbers[7]
    done = 0  # steps of earlier turns
    for turn in range(turns_of(works)):
        tile = keys_of(turn, Table, Header, numbers, STEP, HAS_FULL)
        mbarrier.wait(free.index(0), (turn & 1) ^ 1)
        note(noted, turn, tile)
        mbarrier.expect(ready.index(0), 2 * GROUPS * K.block_type.nbytes)
        for group in gl.static_range(GROUPS):
            place = [tile[0], tile[1], tile[2] + tile[3] + group * ROWS, 0]
            tma.async_copy_global_to_shared(K, place, ready.index(0), k_buffer.index(group))
            tma.async_copy_global_to_shared(V, place, ready.index(0), v_buffer.index(group))
        for member in range(share):
            q_head = tile[1] * share + member
            for index in range(tile[6]):
                at, stage = queries_at(index, tile, STEP, ORDERED), done % STAGES
                place, row = [tile[0], q_head, at, 0], (tile[0] * kv_heads * share + q_head) * query_rows + at
                load_step(Q, q_buffer, q_ready, q_free, done, place, STAGES, STEP * 4)
                tma.async_copy_global_to_shared(Lse, [row], q_ready.index(stage), lse_buffer.index(stage))
                load_step(G, g_buffer, g_ready, g_free, done, place, STAGES, STEP * 4)
                tma.async_copy_global_to_shared(Delta, [row], g_ready.index(stage), delta_buffer.index(stage))
                done += 1


@gluon.jit
def wait_for_turn(Counter, before):
    """Waits until so many tiles have added to a block."""
    added = gl.atomic_add(Counter, 0, sem="acquire", scope="gpu")
    while added < before:
        added = gl.atomic_add(Counter, 0, sem="acquire", scope="gpu")


@gluon.jit
def announce(Counter, PENDING: gl.constexpr, pred):
    """Says that a tile has added to a block, once all but the last PENDING copies are in memory."""
    if pred:
        one = gl.full([1], 1, gl.int32, gl.BlockedLayout([1], [32], [1], [0]))
        WRITTEN: gl.constexpr = WRITTEN_BUT_LAST if PENDING else WRITTEN_ALL
        one = gl.inline_asm_elementwise(WRITTEN, "=r,r", [one], gl.int32, False, 1)
        gl.atomic_add(Counter, gl.max(one, 0), sem="release", scope="gpu")


@gluon.jit
def add_up(
    SumQ, First, Counters, Table, Header, buffers, barriers, numbers,
    STEP: gl.constexpr, DP: gl.constexpr, HAS_FULL: gl.constexpr, ORDERED: gl.constexpr,
):  # fmt: skip
    """The trade of the warp that adds to the gradient of queries."""
    dq_buffer = buffers[7]
    dq_ready, dq_free = barriers[8], barriers[9]
    kv_heads, share, tiles, works, query_rows = numbers[0], numbers[1], numbers[3], numbers[6], numbers[7]
    blocks = gl.cdiv(query_rows, STEP)
    done = 0
    for turn in range(turns_of(works)):
        tile = keys_of(turn, Table, Header, numbers, STEP, HAS_FULL)
        number, some = work_at(turn) // (works // tiles), tile[5] > 0
        Counter = Counters
        for member in range(share):
            q_head = tile[1] * share + member
            Own = Counters + (tile[0] * kv_heads * share + q_head).to(gl.int64) * blocks
            for index in range(tile[6]):
                at, Last = queries_at(index, tile, STEP, ORDERED), Counter
                Counter = Own + at // STEP
                if ORDERED:
                    wait_for_turn(Counter, number - gl.load(First + at // STEP, mask=some, other=number))
                mbarrier.wait(dq_ready.index(0), done & 1)
                for half in gl.static_range(GROUPS):
                    add_to_global(SumQ, [tile[0], q_head, at, half * (DP // GROUPS)], dq_buffer.index(half))
                tma.store_wait(0)
                mbarrier.arrive(dq_free.index(0), count=1)
                done += 1
                if ORDERED:  # of the step before, whose numbers have had time to arrive
                    announce(Last, GROUPS, some & (member + index > 0))
        if ORDERED:
            announce(Counter, 0, some)


@gluon.jit
def share_of_queries(
    k_buffer, ds_buffer, slot, GROUP: gl.constexpr, STEP: gl.constexpr, DP: gl.constexpr,
    OF_DQ: gl.constexpr,
):  # fmt: skip
    """What a step adds to half of its queries' gradient, begun."""
    HALF: gl.constexpr = DP // GROUPS
    dq = gl.full([STEP, HALF], 0.0, gl.float32, OF_DQ)
    for other in gl.static_range(GROUPS):
        across = ds_buffer.index(slot * GROUPS + other).permute((1, 0))
        columns = k_buffer.index(other).reshape((ROWS, DP)).slice(GROUP * HALF, HALF, 1)
        dq = warpgroup_mma(across, columns, dq, use_acc=other > 0, is_async=True)
    return dq


@gluon.jit
def compute(
    GROUP: gl.constexpr, RowsK, RowsV, SumK, SumV, FinalK, FinalV, Header, Data, RowBounds,
    buffers, barriers, scale, k_strides, v_strides, numbers,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    ORDERED: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: the gradients of its keys and values, and half of the queries' one.

    A step begins the scores of the next.
    """
    k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, ds_buffer, dq_buffer, noted = buffers
    ready, free, q_ready, q_free, g_ready, g_free, ds_ready, ds_free, dq_ready, dq_free, ended = barriers
    kv_heads, share, rows, table_batch, works = numbers[0], numbers[1], numbers[2], numbers[4], numbers[6]
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DP, 16])
    HALF: gl.constexpr = DP // GROUPS
    OF_DQ: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HALF, 16])
    OF_ROWS: gl.constexpr = gl.SliceLayout(1, S)
    OF_COLUMNS: gl.constexpr = gl.SliceLayout(0, S)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    sharpness = scale * LOG2E
    k, v = k_buffer.index(GROUP).reshape((ROWS, DP)), v_buffer.index(GROUP).reshape((ROWS, DP))
    done = 0  # steps of earlier tiles and heads
    for turn in range(turns_of(works)):
        mbarrier.wait(ready.index(0), turn & 1)
        arrived(q_ready, done, STAGES)
        s_begun = product(k, q_buffer, done, STEP, STAGES, DP, S)
        tile = tile_noted(noted, turn)
        about = bounds_of(
            tile, table_batch, rows, Header, Data, RowBounds, BOUNDS, ROW_BOUNDS, GROUP, OF_ROWS
        )
        oa, low, high, entries, asks, of_head, of_batch = about
        high = gl.where(rows_of(tile, GROUP, OF_ROWS)[1], high, low - 1)
        about = (oa, low, high, entries, asks, of_head, of_batch)
        before, after = kinds_of(tile, ORDERED)
        last = done + tile[6] * share - 1
        dk = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
        dv = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
        s = warpgroup_mma_wait(0, deps=[s_begun])
        for _ in range(share):
            for KIND in gl.static_range(0, 1 + 2 * HAS_FULL):  # steps with a mask, full ones, others with one
                begin, end = 0, tile[6]
                if HAS_FULL:
                    begin = 0 if KIND == 0 else (before if KIND == 1 else after)
                    end = before if KIND == 0 else (after if KIND == 1 else tile[6])
                for index in range(begin, end):
                    now = done + index
                    stage, slot = now % STAGES, now % SLOPES
                    if KIND != 1:
                        at = queries_at(index, tile_noted(noted, turn), STEP, ORDERED)
                        kept = bits_of(at, about, S, STEP)
                    arrived(g_ready, now, STAGES)
                    dp_begun = product(v, g_buffer, now, STEP, STAGES, DP, S)
                    lse = lse_buffer.index(stage).load(OF_COLUMNS) * LOG2E
                    p = gl.exp2(s * sharpness - lse[None, :])
                    if KIND != 1:
                        p = where_set(p, kept, OR_ZERO, S)
                        if PAIRS is not None:
                            p = where_pairs_kept(p, at, about, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
                    weights = gl.convert_layout(p, WEIGHTS).to(dtype)
                    dv_begun = weighed(weights, g_buffer, now, dv, True, STEP, STAGES, DP)
                    dp, p = warpgroup_mma_wait(1, deps=[dp_begun, p])
                    delta = delta_buffer.index(stage).load(OF_COLUMNS)
                    ds = p * (dp - delta[None, :])
                    if KIND != 1:
                        ds = where_set(ds, kept, OR_ZERO, S)
                        if PAIRS is not None:
                            ds = where_pairs_kept(ds, at, about, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
                    slopes = ds.to(dtype)
                    mbarrier.wait(ds_free.index(slot), ((now // SLOPES) & 1) ^ 1)
                    ds_buffer.index(slot * GROUPS + GROUP).store(slopes)
                    fence_async_shared()
                    mbarrier.arrive(ds_ready.index(slot), count=1)
                    dv = warpgroup_mma_wait(0, deps=[dv_begun])
                    mbarrier.arrive(g_free.index(stage), count=1)
                    mbarrier.wait(ds_ready.index(slot), (now // SLOPES) & 1)
                    dq_begun = share_of_queries(k_buffer, ds_buffer, slot, GROUP, STEP, DP, OF_DQ)
                    of_keys = gl.convert_layout(slopes, WEIGHTS)
                    dk_begun = weighed(of_keys, q_buffer, now, dk, True, STEP, STAGES, DP)
                    dq = warpgroup_mma_wait(1, deps=[dq_begun])
                    mbarrier.arrive(ds_free.index(slot), count=1)
                    mbarrier.wait(dq_free.index(0), (now & 1) ^ 1)
                    dq_buffer.index(GROUP).reshape((STEP, HALF)).store(dq)
                    fence_async_shared()
                    mbarrier.arrive(dq_ready.index(0), count=1)
                    # beyond the last step the product is of old rows, and nobody reads it
                    arrived(q_ready, now + 1, STAGES, now < last)
                    s_begun = product(k, q_buffer, now + 1, STEP, STAGES, DP, S)
                    dk, s = warpgroup_mma_wait(0, deps=[dk_begun, s_begun])
                    mbarrier.arrive(q_free.index(stage), count=1)
            done += tile[6]
        # both groups read all keys: results are laid there when both have ended
        mbarrier.arrive(ended.index(0), count=1)
        mbarrier.wait(ended.index(0), turn & 1)
        lay(
            FinalK, SumK, dk * scale, k_buffer.index(GROUP), tile, kv_heads, rows, k_strides,
            GROUP, D, DP, SUMS, CONTINUES, ENDS,
        )  # fmt: skip
        lay(
            FinalV, SumV, dv, v_buffer.index(GROUP), tile, kv_heads, rows, v_strides,
            GROUP, DV, DP, SUMS, CONTINUES, ENDS,
        )  # fmt: skip
        send((RowsK, RowsV), (k_buffer, v_buffer), GROUP, tile, GROUP, ENDS)
        tma.store_wait(0)
        mbarrier.arrive(free.index(0), count=1)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works", "query_rows"])
def attention_bwd_fused_hopper_kernel(
    K, V, Q, G, Lse, Delta, SumQ, First, Counters, RowsK, RowsV, SumK, SumV, FinalK, FinalV,
    Table, Header, Data, RowBounds, scale, k_batch, k_head, k_row, v_batch, v_head, v_row,
    heads, share, rows, tiles, table_batch, table_head, works, query_rows,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    ORDERED: gl.constexpr,
):  # fmt: skip
    """The gradients of tiles of keys and values, and what these add to the queries' one, not scaled yet."""
    slopes: gl.constexpr = gl.NVMMASharedLayout.get_default_for([ROWS, STEP], Q.dtype)
    k_buffer = gl.allocate_shared_memory(K.dtype, [GROUPS, 1, 1, ROWS, DP], K.layout)
    v_buffer = gl.allocate_shared_memory(V.dtype, [GROUPS, 1, 1, ROWS, DP], V.layout)
    q_buffer = gl.allocate_shared_memory(Q.dtype, [STAGES, 1, 1, STEP, DP], Q.layout)
    g_buffer = gl.allocate_shared_memory(G.dtype, [STAGES, 1, 1, STEP, DP], G.layout)
    lse_buffer = gl.allocate_shared_memory(Lse.dtype, [STAGES, STEP], Lse.layout)
    delta_buffer = gl.allocate_shared_memory(Delta.dtype, [STAGES, STEP], Delta.layout)
    ds_buffer = gl.allocate_shared_memory(Q.dtype, [SLOPES * GROUPS, ROWS, STEP], slopes)
    dq_buffer = gl.allocate_shared_memory(gl.float32, [GROUPS, 1, 1, STEP, DP // GROUPS], SumQ.layout)
    ready, free, ended = barriers_of(1, 1), barriers_of(1, GROUPS), barriers_of(1, GROUPS)
    q_ready, g_ready = barriers_of(STAGES, 1), barriers_of(STAGES, 1)
    q_free, g_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    ds_ready, ds_free = barriers_of(SLOPES, GROUPS), barriers_of(SLOPES, GROUPS)
    dq_ready, dq_free = barriers_of(1, GROUPS), barriers_of(1, 1)
    fence_async_shared()
    buffers = (
        k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, ds_buffer, dq_buffer, notes()
    )  # fmt: skip
    barriers = (
        ready, free, q_ready, q_free, g_ready, g_free, ds_ready, ds_free, dq_ready, dq_free, ended
    )  # fmt: skip
    k_strides, v_strides = (k_batch, k_head, k_row), (v_batch, v_head, v_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works, query_rows)
    gl.warp_specialize(
        [
            (compute, (
                0, RowsK, RowsV, SumK, SumV, FinalK, FinalV, Header, Data, RowBounds,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                ORDERED,
            )),
            (compute, (
                1, RowsK, RowsV, SumK, SumV, FinalK, FinalV, Header, Data, RowBounds,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                ORDERED,
            )),
            (load, (
                K, V, Q, G, Lse, Delta, Table, Header, buffers, barriers, numbers,
                STEP, STAGES, HAS_FULL, ORDERED,
            )),
            (add_up, (
                SumQ, First, Counters, Table, Header, buffers, barriers, numbers,
                STEP, DP, HAS_FULL, ORDERED,
            )),
        ],
        [4, 1, 1],
        [REGISTERS, LOADER, LOADER],
    )  # fmt: skip
