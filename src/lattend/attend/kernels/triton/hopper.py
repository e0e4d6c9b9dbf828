"""The forward kernel on Hopper, in Gluon: warp-specialized and persistent, as FlashAttention-3 is.

One warp loads: it has TMA copy a tile's queries and then, step by step, keys and values to shared memory.
Groups of four warps compute, 64 queries each. While a group's product of weights and values runs, it takes
the exponentials of the next step's scores, so that the tensor cores do not wait for them. A program takes
several tiles: the next one's queries and keys are loaded while it computes, and results are written by TMA,
from where the queries were, while the next one begins.

forward.py is the same function for any rule, chip and call; this one takes rules on a line whose keys follow
each other, and calls without a bias, a soft cap, dropout or padding. Triton's interpreter does not run it.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from lattend.attend.kernels.triton.geometry import PLAIN
from lattend.attend.kernels.triton.shapes import TileShape, padded
from lattend.attend.kernels.triton.source import Generated
from lattend.plans.part import Part

GROUPS: gl.constexpr = gl.constexpr(2)  # of four warps that compute
TILES: gl.constexpr = gl.constexpr(2)  # whose queries are in shared memory
ROWS: gl.constexpr = gl.constexpr(64)  # queries of a group
REGISTERS: gl.constexpr = gl.constexpr(240)  # of a thread that computes; of one that loads LOADER
LOADER: gl.constexpr = gl.constexpr(24)
# A score, or -inf where its number is not from the first to before the second limit. In LLVM's hands all
# comparisons come first, and their results are packed into words and taken out again
BETWEEN: gl.constexpr = gl.constexpr(
    "{ .reg .pred in; setp.ge.s32 in, $2, $3; setp.lt.and.s32 in, $2, $4, in;"
    " selp.f32 $0, $1, 0fFF800000, in; }"
)
LOG2E: gl.constexpr = gl.constexpr(1.4426950408889634)
LN2: gl.constexpr = gl.constexpr(0.6931471805599453)
ELEMENTS = {torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}
OPTIONS = {"num_warps": 4, "maxnreg": 168}  # three groups of four warps, loader's included, at the beginning


@gluon.jit
def turns_of(works):
    """How many tiles this program takes."""
    return works // gl.num_programs(0) + (work_at(works // gl.num_programs(0)) < works).to(gl.int32)


@gluon.jit
def work_at(turn):
    """The tile of a turn: heavy ones come first, and who took the heaviest takes the lightest next."""
    program, programs = gl.program_id(0), gl.num_programs(0)
    return turn * programs + gl.where(turn % 2 == 0, program, programs - 1 - program)


@gluon.jit
def tile_of(turn, Table, numbers, STEP: gl.constexpr, HAS_FULL: gl.constexpr):
    """Batch element and head of a turn, the first slot and base of its queries, the first of its keys and how
    many, and its steps: all, those with a mask, and the first full one.

    The same tile of all heads comes first, then the next.
    """
    heads, _, _, tiles, table_batch, table_head, works = numbers
    pairs = works // tiles
    tile, pair = work_at(turn) // pairs, work_at(turn) % pairs
    batch, head = pair // heads, pair % heads
    entry = Table + (batch * table_batch + head * table_head + tile).to(gl.int64) * 7
    slot, outer_base, base = gl.load(entry), gl.load(entry + 1), gl.load(entry + 2)
    begin, end = gl.load(entry + 3), gl.load(entry + 4)
    steps = gl.maximum(gl.cdiv(end - begin, STEP), 1)  # one without a key that is attended, if there is none
    full_first, full = steps, steps * 0
    if HAS_FULL:
        full_first = gl.minimum(gl.cdiv(gl.load(entry + 5) - begin, STEP), steps)
        full = gl.maximum((gl.load(entry + 6) - begin) // STEP - full_first, 0)
    return batch, head, slot, outer_base, base + begin, end - begin, steps, steps - full, full_first


@gluon.jit
def step_at(index, steps, masked, full_first):
    """The step of an index: those with a mask come first, then the full ones that lie between them."""
    with_mask = gl.where(index < full_first, index, index + steps - masked)
    return gl.where(index < masked, with_mask, index - masked + full_first)


@gluon.jit
def arrived(ready, index, STAGES: gl.constexpr, pred=True):
    """Waits until the step's block is in shared memory."""
    mbarrier.wait(ready.index(index % STAGES), (index // STAGES) & 1, pred=pred)


@gluon.jit
def load_block(Rows, buffer, ready, free, index, batch, head, first, STAGES: gl.constexpr):
    """Copies the rows of a step to shared memory once their place is free."""
    stage = index % STAGES
    mbarrier.wait(free.index(stage), ((index // STAGES) & 1) ^ 1)
    mbarrier.expect(ready.index(stage), Rows.block_type.nbytes)
    tma.async_copy_global_to_shared(Rows, [batch, head, first, 0], ready.index(stage), buffer.index(stage))


@gluon.jit
def load(
    Q, K, V, Table, buffers, barriers, numbers,
    STEP: gl.constexpr, STAGES: gl.constexpr, HAS_FULL: gl.constexpr,
):  # fmt: skip
    """The trade of the warp that loads."""
    q_buffer, k_buffer, v_buffer = buffers
    q_ready, q_free, k_ready, k_free, v_ready, v_free = barriers
    share, works = numbers[1], numbers[6]
    done = 0  # steps of earlier turns
    for turn in range(turns_of(works)):
        batch, head, slot, outer_base, first, _, steps, masked, full_first = tile_of(
            turn, Table, numbers, STEP, HAS_FULL
        )
        held, ready = turn % TILES, q_ready.index(turn % TILES)
        mbarrier.wait(q_free.index(held), ((turn // TILES) & 1) ^ 1)
        mbarrier.expect(ready, GROUPS * Q.block_type.nbytes)
        for group in gl.static_range(GROUPS):
            place = [batch, head, slot + outer_base + group * ROWS, 0]
            tma.async_copy_global_to_shared(Q, place, ready, q_buffer.index(held * GROUPS + group))
        for index in range(steps):
            at = first + step_at(index, steps, masked, full_first) * STEP
            load_block(K, k_buffer, k_ready, k_free, done + index, batch, head // share, at, STAGES)
            load_block(V, v_buffer, v_ready, v_free, done + index, batch, head // share, at, STAGES)
        done += steps


@gluon.jit
def scores(q, k_buffer, index, STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, S: gl.constexpr):
    """The product of queries and a step's keys, begun."""
    keys = k_buffer.index(index % STAGES).reshape((STEP, DP)).permute((1, 0))
    nothing = gl.full([ROWS, STEP], 0.0, gl.float32, S)
    return warpgroup_mma(q, keys, nothing, use_acc=False, is_async=True)


@gluon.jit
def spread(tensors, LAYOUT: gl.constexpr):
    """The tensors, handed to the threads that need them."""
    found = ()
    for place in gl.static_range(len(tensors)):
        found = found + (gl.convert_layout(tensors[place], LAYOUT),)  # noqa: RUF005
    return found


@gluon.jit
def number_of(column):
    """Columns of a step numbered such that a thread's own are 0, 1, 2, …: known when it is compiled.

    A thread has the columns 8j + c and 8j + c + 1 of a product of matrices, for one even c below 8.
    """
    return (column >> 3) * 2 + (column & 1)


@gluon.jit
def up_to(end, column):
    """How many of a thread's columns, by number, lie up to `end`: the same for all columns with its c."""
    ahead = end - (column & 6)
    return (ahead >> 3) * 2 + 1 + (((ahead & 7) + 7) >> 3)


@gluon.jit
def attended(s, at, about, Header, Data, COLUMNS: gl.constexpr, PAIRS: gl.constexpr, S: gl.constexpr):
    """The scores, -inf where a pair is not attended; the step's keys begin with `at`.

    `about` is the tile: its queries, their bounds and entries, whether more is to be asked of pairs, where.
    """
    oa, low, high, entries, asks, head, batch = about
    columns = gl.arange(0, s.shape[1], gl.SliceLayout(0, S))
    column = columns[None, :]
    below, above = up_to(low[:, None] - at - 1, column), up_to(high[:, None] - at, column)
    given = [s, number_of(column), below, above]
    s = gl.inline_asm_elementwise(BETWEEN, "=f,f,r,r,r", given, gl.float32, True, 1)
    if PAIRS is not None:  # noqa: SIM102  (this is known when it is compiled, the next is not)
        if asks:  # each key is looked up by one thread
            one = at + gl.arange(0, s.shape[1], gl.BlockedLayout([1], [32], [4], [0]))
            found = spread(COLUMNS(one, one, one, head, batch, Header, Data, False), gl.SliceLayout(0, S))
            keys = at + columns
            kept = PAIRS(oa, oa, oa, keys, keys, keys, entries, found, head, batch, Header, Data, False)
            s = gl.where(kept, s, -float("inf"))
    return s


@gluon.jit
def softened(s, m, total, sharpness):
    """The weights of the scores, not divided yet; the largest, their sum, and what shrinks earlier sums."""
    higher = gl.maximum(m, gl.max(s, 1) * sharpness)
    base = gl.where(higher == -float("inf"), 0.0, higher)  # there may be no key yet
    p = gl.exp2(s * sharpness - base[:, None])
    shrink = gl.exp2(m - base)
    return p, higher, total * shrink + gl.sum(p, 1), shrink


@gluon.jit
def compute(
    GROUP: gl.constexpr, Rows, Out, State, Lse, Table, Header, Data, RowBounds, buffers, barriers,
    scale, out_strides, numbers,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, DVP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
):  # fmt: skip
    """The trade of a group of warps: output and log-sum-exp of its queries."""
    q_buffer, k_buffer, v_buffer = buffers
    q_ready, q_free, k_ready, k_free, v_ready, v_free = barriers
    heads, rows, table_batch, works = numbers[0], numbers[2], numbers[4], numbers[6]
    o_batch, o_head, o_row = out_strides
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DVP, 16])
    OF_SCORES: gl.constexpr = gl.SliceLayout(1, S)
    OF_SUMS: gl.constexpr = gl.SliceLayout(1, SUMS)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    sharpness = gl.maximum(scale, 1e-20) * LOG2E  # so that -inf times it stays -inf
    done, turns = 0, turns_of(works)  # steps of earlier turns
    upcoming = tile_of(0, Table, numbers, STEP, HAS_FULL)
    for turn in range(turns):
        batch, head, slot, outer_base, first, count, steps, masked, full_first = upcoming
        held = turn % TILES
        rows_held = q_buffer.index(held * GROUPS + GROUP)
        q = rows_held.reshape((ROWS, DP))
        mbarrier.wait(q_ready.index(held), (turn // TILES) & 1)
        arrived(k_ready, done, STAGES)
        s_begun = scores(q, k_buffer, done, STEP, STAGES, DP, S)
        if ENDS:  # the last tile's results are written by now
            tma.store_wait(0)
            mbarrier.arrive(q_free.index((turn + 1) % TILES), count=1, pred=turn > 0)
        limits = limits_of(Header)
        oa, inside = queries(limits, slot, outer_base, GROUP, OF_SCORES)
        low, high, entries = BOUNDS(oa, oa, oa, head, batch, Header, Data, False)
        asks = True
        if ROW_BOUNDS:  # where entries that must be equal begin and end; -1 if pairs are to be asked
            ends = RowBounds + gl.where(table_batch > 0, batch, 0) * 2 * rows + oa
            own = gl.load(ends, mask=inside, other=0)
            asks = gl.min(own, 0) < 0
            low = gl.maximum(low, own)
            high = gl.minimum(high, gl.where(asks, high, gl.load(ends + rows, mask=inside, other=0)))
        # within the tile's keys, so that differences fit; a head that is left out has none
        low = gl.minimum(gl.maximum(low, first), first + count).to(gl.int32)
        high = gl.maximum(gl.minimum(high, first + count - 1), first - 1).to(gl.int32)
        m = gl.full([ROWS], -float("inf"), gl.float32, OF_SCORES)
        total = gl.full([ROWS], 0.0, gl.float32, OF_SCORES)
        o = gl.full([ROWS, DVP], 0.0, gl.float32, SUMS)

        s = warpgroup_mma_wait(0, deps=[s_begun])
        mbarrier.arrive(k_free.index(done % STAGES), count=1)
        at = first + step_at(0, steps, masked, full_first) * STEP
        about = (oa, low, high, entries, asks, head, batch)
        s = attended(s, at, about, Header, Data, COLUMNS, PAIRS, S)
        p, m, total, shrink = softened(s, m, total, sharpness)
        weights = gl.convert_layout(p.to(dtype), WEIGHTS)
        arrived(k_ready, done + 1, STAGES, steps > 1)
        for FULL in gl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
            begin, end = (gl.maximum(masked, 1), steps) if FULL else (1, masked)
            if FULL:  # weights of 16 bits that go from step to step would be taken apart and put together
                wide = weights.to(gl.float32)
            for index in range(begin, end):
                if FULL:
                    weights = wide.to(dtype)
                now, last = done + index, done + index - 1
                s_begun = scores(q, k_buffer, now, STEP, STAGES, DP, S)
                arrived(v_ready, last, STAGES)
                values = v_buffer.index(last % STAGES).reshape((STEP, DVP))
                o_begun = warpgroup_mma(weights, values, o, is_async=True)
                s = warpgroup_mma_wait(1, deps=[s_begun])
                mbarrier.arrive(k_free.index(now % STAGES), count=1)
                if not FULL:
                    at = first + step_at(index, steps, masked, full_first) * STEP
                    s = attended(s, at, about, Header, Data, COLUMNS, PAIRS, S)
                p, m, total, shrink = softened(s, m, total, sharpness)
                # a wait for the next keys, and so a branch, keeps the exponentials before the wait for o
                arrived(k_ready, now + 1, STAGES, index + 1 < steps)
                o, p = warpgroup_mma_wait(0, deps=[o_begun, p])
                mbarrier.arrive(v_free.index(last % STAGES), count=1)
                o = o * gl.convert_layout(shrink, OF_SUMS)[:, None]
                if FULL:
                    wide = gl.convert_layout(p, WEIGHTS)
                else:
                    weights = gl.convert_layout(p.to(dtype), WEIGHTS)
            if FULL:
                weights = wide.to(dtype)
        upcoming = tile_of(gl.minimum(turn + 1, turns - 1), Table, numbers, STEP, HAS_FULL)
        done += steps
        arrived(v_ready, done - 1, STAGES)
        values = v_buffer.index((done - 1) % STAGES).reshape((STEP, DVP))
        o = warpgroup_mma_wait(0, deps=[warpgroup_mma(weights, values, o, is_async=True)])
        mbarrier.arrive(v_free.index((done - 1) % STAGES), count=1)

        limits = limits_of(Header)
        row, here = queries(limits, slot, outer_base, GROUP, OF_SUMS)
        column = gl.arange(0, DVP, gl.SliceLayout(0, SUMS))
        mask = here[:, None] & (column[None, :] < DV)
        before = (batch * heads + head).to(gl.int64) * rows
        states = State + (before + row)[:, None] * DV + column[None, :]
        if CONTINUES:
            earlier = gl.load(Lse + before + oa, mask=inside, other=-float("inf")) * LOG2E
            higher = gl.maximum(m, earlier)
            base = gl.where(higher == -float("inf"), 0.0, higher)
            shrink, share = gl.exp2(m - base), gl.exp2(earlier - base)
            o = o * gl.convert_layout(shrink, OF_SUMS)[:, None]
            o += gl.load(states, mask=mask, other=0.0) * gl.convert_layout(share, OF_SUMS)[:, None]
            m, total = higher, total * shrink + share
        o = o * gl.convert_layout(1.0 / gl.where(total == 0.0, 1.0, total), OF_SUMS)[:, None]
        lse = gl.where(total == 0.0, -float("inf"), (m + gl.log2(total)) * LN2)
        gl.store(Lse + before + oa, lse, mask=inside)
        if ENDS:
            begin = slot + outer_base + GROUP * ROWS
            if whole(limits, slot, outer_base, GROUP):
                q.store(o.to(dtype))
                fence_async_shared()
                tma.async_copy_shared_to_global(Rows, [batch, head, begin, 0], rows_held)
            else:
                rows_out = Out + batch.to(gl.int64) * o_batch + head.to(gl.int64) * o_head
                rows_out += row.to(gl.int64)[:, None] * o_row
                gl.store(rows_out + column[None, :], o.to(dtype), mask=mask)
        else:
            gl.store(states, o, mask=mask)
            mbarrier.arrive(q_free.index(held), count=1)
    if ENDS:
        tma.store_wait(0)


@gluon.jit
def limits_of(Header):
    """The first and last query that can have keys, and the slots of a class; loaded where they are used."""
    return gl.load(Header + 8), gl.load(Header + 9), gl.load(Header + 10)


@gluon.jit
def queries(limits, slot, outer_base, GROUP: gl.constexpr, LAYOUT: gl.constexpr):
    """The positions of a group's queries, and which of them are the tile's."""
    least, most, end = limits
    slots = slot + GROUP * ROWS + gl.arange(0, ROWS, LAYOUT)
    at = slots + outer_base
    return at, (at >= least) & (at <= most) & (slots < end)


@gluon.jit
def whole(limits, slot, outer_base, GROUP: gl.constexpr):
    """Whether all of a group's queries are the tile's."""
    least, most, end = limits
    begin = slot + GROUP * ROWS
    return (begin + outer_base >= least) & (begin + ROWS - 1 + outer_base <= most) & (begin + ROWS <= end)


@gluon.jit
def barriers_of(COUNT: gl.constexpr, ARRIVALS: gl.constexpr):
    """So many barriers, each passed when so many have arrived."""
    found = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    for place in gl.static_range(COUNT):
        mbarrier.init(found.index(place), count=ARRIVALS)
    return found


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works"])
def attention_fwd_hopper_kernel(
    Q, K, V, Rows, Out, State, Lse, Table, Header, Data, RowBounds, scale, o_batch, o_head, o_row,
    heads, share, rows, tiles, table_batch, table_head, works,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, DV: gl.constexpr, DVP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
):  # fmt: skip
    """Out and Lse of tiles of queries; CONTINUES takes up the sums of an earlier part, ENDS is the last."""
    q_buffer = gl.allocate_shared_memory(Q.dtype, [TILES * GROUPS, 1, 1, ROWS, DP], Q.layout)
    k_buffer = gl.allocate_shared_memory(K.dtype, [STAGES, 1, 1, STEP, DP], K.layout)
    v_buffer = gl.allocate_shared_memory(V.dtype, [STAGES, 1, 1, STEP, DVP], V.layout)
    q_ready, q_free = barriers_of(TILES, 1), barriers_of(TILES, GROUPS)
    k_ready, v_ready = barriers_of(STAGES, 1), barriers_of(STAGES, 1)
    k_free, v_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    fence_async_shared()
    buffers, barriers = (q_buffer, k_buffer, v_buffer), (q_ready, q_free, k_ready, k_free, v_ready, v_free)
    strides = (o_batch, o_head, o_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works)
    gl.warp_specialize(
        [
            (compute, (
                0, Rows, Out, State, Lse, Table, Header, Data, RowBounds, buffers, barriers,
                scale, strides, numbers, BOUNDS, COLUMNS, PAIRS, STEP, STAGES, DP, DV, DVP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
            )),
            (compute, (
                1, Rows, Out, State, Lse, Table, Header, Data, RowBounds, buffers, barriers,
                scale, strides, numbers, BOUNDS, COLUMNS, PAIRS, STEP, STAGES, DP, DV, DVP,
                HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
            )),
            (load, (Q, K, V, Table, buffers, barriers, numbers, STEP, STAGES, HAS_FULL)),
        ],
        [4, 1],
        [REGISTERS, LOADER],
    )  # fmt: skip


def described(q: Tensor, k: Tensor, v: Tensor, out: Tensor, shape: TileShape) -> list[Any]:
    """The tensors as TMA copies them: a group's queries or results at once, a step's keys, its values."""
    found: list[Any] = []
    for x, rows in ((q, ROWS.value), (k, shape.step), (v, shape.step), (out, ROWS.value)):
        block = [1, 1, rows, padded(x.shape[-1])]
        layout = gl.NVMMASharedLayout.get_default_for(block, ELEMENTS[x.dtype])
        found.append(TensorDescriptor.from_tensor(x, block, layout))
    return found


def constants(part: Part, functions: Generated, shape: TileShape, q: Tensor, v: Tensor) -> dict[str, Any]:
    """The compile-time arguments."""
    return {
        "BOUNDS": functions.bounds,
        "COLUMNS": functions.columns,
        "PAIRS": functions.pairs,
        "STEP": shape.step,
        "STAGES": shape.stages,
        "DP": padded(q.shape[-1]),
        "DV": v.shape[-1],
        "DVP": padded(v.shape[-1]),
        "HAS_FULL": part.knows_full,
        **OPTIONS,
    }


def processors(device: torch.device) -> int:
    """The multiprocessors of a GPU; an H200's where there is none."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 132
