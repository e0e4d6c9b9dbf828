"""What the kernels for Hopper share: which tiles a program takes, where their rows lie, who is attended.

A tile is 128 rows, 64 for each of two groups of warps that compute; a step is so many of its columns. In the
forward pass and for gradients of queries the rows are queries and the columns keys, else the other way round.
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
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from lattend.attend.kernels.triton.shapes import padded

GROUPS: gl.constexpr = gl.constexpr(2)  # of four warps that compute
TILES: gl.constexpr = gl.constexpr(2)  # whose rows are in shared memory
ROWS: gl.constexpr = gl.constexpr(64)  # of a group
REGISTERS: gl.constexpr = gl.constexpr(240)  # of a thread that computes; of one that loads LOADER
LOADER: gl.constexpr = gl.constexpr(24)
OPTIONS = {"num_warps": 4, "maxnreg": 168}  # three groups of four warps, loader's included, at the beginning
ELEMENTS = {torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}
# A number, or another where its column's number is not from the first to before the second limit. In LLVM's
# hands all comparisons come first, and their results are packed into words and taken out again
_BETWEEN = (
    "{ .reg .pred in; setp.ge.s32 in, $2, $3; setp.lt.and.s32 in, $2, $4, in; selp.f32 $0, $1, %s, in; }"
)
OR_ZERO: gl.constexpr = gl.constexpr(_BETWEEN % "0f00000000")
OR_LEAST: gl.constexpr = gl.constexpr(_BETWEEN % "0fFF800000")  # -inf
LOG2E: gl.constexpr = gl.constexpr(1.4426950408889634)
LN2: gl.constexpr = gl.constexpr(0.6931471805599453)


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
def tile_of(turn, Table, numbers, STEP: gl.constexpr, HAS_FULL: gl.constexpr, ALIGNED: gl.constexpr = 1):
    """Batch element and head of a turn, the first slot and base of its rows, the first of its columns and
    how many, and its steps: all, those with a mask, and the first full one.

    The same tile of all heads comes first, then the next. Its columns begin at a multiple of ALIGNED.
    """
    heads, _, _, tiles, table_batch, table_head, works = numbers
    pairs = works // tiles
    tile, pair = work_at(turn) // pairs, work_at(turn) % pairs
    batch, head = pair // heads, pair % heads
    entry = Table + (batch * table_batch + head * table_head + tile).to(gl.int64) * 7
    slot, outer_base, base = gl.load(entry), gl.load(entry + 1), gl.load(entry + 2)
    begin, end = gl.load(entry + 3), gl.load(entry + 4)
    begin -= (base + begin) % ALIGNED
    steps = gl.maximum(gl.cdiv(end - begin, STEP), 1)  # without columns it is one of zeros: before the first
    full_first, full = steps, steps * 0
    if HAS_FULL:
        full_first = gl.minimum(gl.cdiv(gl.load(entry + 5) - begin, STEP), steps)
        full = gl.maximum((gl.load(entry + 6) - begin) // STEP - full_first, 0)
    first = gl.where(end > begin, base + begin, -STEP)
    return batch, head, slot, outer_base, first, end - begin, steps, steps - full, full_first


@gluon.jit
def step_at(index, steps, masked, full_first):
    """The step of an index: those with a mask come first, then the full ones that lie between them."""
    with_mask = gl.where(index < full_first, index, index + steps - masked)
    return gl.where(index < masked, with_mask, index - masked + full_first)


# Shared memory


@gluon.jit
def barriers_of(COUNT: gl.constexpr, ARRIVALS: gl.constexpr):
    """So many barriers, each passed when so many have arrived."""
    found = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    for place in gl.static_range(COUNT):
        mbarrier.init(found.index(place), count=ARRIVALS)
    return found


@gluon.jit
def arrived(ready, index, STAGES: gl.constexpr, pred=True):
    """Waits until the step's block is in shared memory."""
    mbarrier.wait(ready.index(index % STAGES), (index // STAGES) & 1, pred=pred)


@gluon.jit
def load_step(Block, buffer, ready, free, index, place, STAGES: gl.constexpr, MORE: gl.constexpr = 0):
    """Copies the block of a step to shared memory once its place is free; MORE bytes will follow."""
    stage = index % STAGES
    mbarrier.wait(free.index(stage), ((index // STAGES) & 1) ^ 1)
    mbarrier.expect(ready.index(stage), Block.block_type.nbytes + MORE)
    tma.async_copy_global_to_shared(Block, place, ready.index(stage), buffer.index(stage))


@gluon.jit
def load_tile(matrices, buffers, ready, free, turn, batch, head, at):
    """Copies the rows of a tile, of one matrix or of two alike."""
    held = turn % TILES
    mbarrier.wait(free.index(held), ((turn // TILES) & 1) ^ 1)
    mbarrier.expect(ready.index(held), len(matrices) * GROUPS * matrices[0].block_type.nbytes)
    for group in gl.static_range(GROUPS):
        place = [batch, head, at + group * ROWS, 0]
        for one in gl.static_range(len(matrices)):
            to = buffers[one].index(held * GROUPS + group)
            tma.async_copy_global_to_shared(matrices[one], place, ready.index(held), to)


@gluon.jit
def product(rows, buffer, index, STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr, S: gl.constexpr):
    """The product of a group's rows and a step's columns, begun."""
    columns = buffer.index(index % STAGES).reshape((STEP, DP)).permute((1, 0))
    nothing = gl.full([ROWS, STEP], 0.0, gl.float32, S)
    return warpgroup_mma(rows, columns, nothing, use_acc=False, is_async=True)


@gluon.jit
def weighed(weights, buffer, index, total, STEP: gl.constexpr, STAGES: gl.constexpr, DP: gl.constexpr):
    """The sum of what a step's columns hold, by weights, added to the total, begun."""
    return warpgroup_mma(weights, buffer.index(index % STAGES).reshape((STEP, DP)), total, is_async=True)


# Rows, and who is attended


@gluon.jit
def limits_of(Header):
    """The first and last row that can have columns, and the slots of a class; loaded where they are used."""
    return gl.load(Header + 8), gl.load(Header + 9), gl.load(Header + 10)


@gluon.jit
def rows_of(limits, slot, outer_base, GROUP: gl.constexpr, LAYOUT: gl.constexpr):
    """The positions of a group's rows, and which of them are the tile's."""
    least, most, end = limits
    slots = slot + GROUP * ROWS + gl.arange(0, ROWS, LAYOUT)
    at = slots + outer_base
    return at, (at >= least) & (at <= most) & (slots < end)


@gluon.jit
def whole(limits, slot, outer_base, GROUP: gl.constexpr):
    """Whether all of a group's rows are the tile's."""
    least, most, end = limits
    begin = slot + GROUP * ROWS
    return (begin + outer_base >= least) & (begin + ROWS - 1 + outer_base <= most) & (begin + ROWS <= end)


@gluon.jit
def bounds_of(
    limits, slot, outer_base, first, count, head, batch, table_batch, rows, Header, Data, RowBounds,
    BOUNDS: gl.constexpr, ROW_BOUNDS: gl.constexpr, GROUP: gl.constexpr, LAYOUT: gl.constexpr,
):  # fmt: skip
    """The positions of a group's rows, which of them are the tile's, and what is asked of their pairs: the
    bounds of each row's columns and its entries, whether more is to be asked, and of which head and element.
    """
    oa, inside = rows_of(limits, slot, outer_base, GROUP, LAYOUT)
    low, high, entries = BOUNDS(oa, oa, oa, head, batch, Header, Data, False)
    asks = True
    if ROW_BOUNDS:  # where entries that must be equal begin and end; -1 if pairs are to be asked
        ends = RowBounds + gl.where(table_batch > 0, batch, 0) * 2 * rows + oa
        own = gl.load(ends, mask=inside, other=0)
        asks = gl.min(own, 0) < 0
        low = gl.maximum(low, own)
        high = gl.minimum(high, gl.where(asks, high, gl.load(ends + rows, mask=inside, other=0)))
    # within the tile's columns, so that differences fit; a head that is left out has none
    low = gl.minimum(gl.maximum(low, first), first + count).to(gl.int32)
    high = gl.maximum(gl.minimum(high, first + count - 1), first - 1).to(gl.int32)
    return oa, inside, (oa, low, high, entries, asks, head, batch)


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
def limits_in(at, about, S: gl.constexpr, STEP: gl.constexpr):
    """The limits of each row among the columns of a step that begins with `at`, by number."""
    column = gl.arange(0, STEP, gl.SliceLayout(0, S))[None, :]
    return up_to(about[1][:, None] - at - 1, column), up_to(about[2][:, None] - at, column)


@gluon.jit
def between(x, limits, OTHERS: gl.constexpr, S: gl.constexpr, FROM: gl.constexpr = 0):
    """The numbers, and others where a pair is not between its row's limits: OR_ZERO or OR_LEAST.

    Columns are numbered from FROM on. Two masks of one step have another each, since ptxas would keep the
    comparisons of the first for the second, in words, and take them out again.
    """
    column = gl.arange(0, x.shape[1], gl.SliceLayout(0, S))[None, :]
    given = [x, number_of(column) + FROM, limits[0] + FROM, limits[1] + FROM]
    return gl.inline_asm_elementwise(OTHERS, "=f,f,r,r,r", given, gl.float32, True, 1)


@gluon.jit
def pairs_kept(
    at, about, Header, Data,
    COLUMNS: gl.constexpr, PAIRS: gl.constexpr, S: gl.constexpr, STEP: gl.constexpr,
):  # fmt: skip
    """Which pairs of a step are kept by what bounds do not say."""
    oa, _, _, entries, _, head, batch = about
    one = at + gl.arange(0, STEP, gl.BlockedLayout([1], [32], [4], [0]))  # each is looked up by one thread
    found = spread(COLUMNS(one, one, one, head, batch, Header, Data, False), gl.SliceLayout(0, S))
    columns = at + gl.arange(0, STEP, gl.SliceLayout(0, S))
    return PAIRS(oa, oa, oa, columns, columns, columns, entries, found, head, batch, Header, Data, False)


@gluon.jit
def attended(
    x, at, about, Header, Data,
    OTHERS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr, S: gl.constexpr,
):  # fmt: skip
    """The numbers of a step that begins with `at`, and others where a pair is not attended."""
    x = between(x, limits_in(at, about, S, x.shape[1]), OTHERS, S)
    if PAIRS is not None:  # noqa: SIM102  (this is known when it is compiled, the next is not)
        if about[4]:
            other = 0.0 if OTHERS == OR_ZERO else -float("inf")
            x = gl.where(pairs_kept(at, about, Header, Data, COLUMNS, PAIRS, S, x.shape[1]), x, other)
    return x


@gluon.jit
def write(
    Rows, Out, Sum, value, buffer, limits, slot, outer_base, batch, head, heads, rows, strides,
    GROUP: gl.constexpr, D: gl.constexpr, DP: gl.constexpr, SUMS: gl.constexpr,
    CONTINUES: gl.constexpr, ENDS: gl.constexpr,
):  # fmt: skip
    """Adds rows to the sums of earlier parts; the last part writes the result, from where its rows were."""
    OF_SUMS: gl.constexpr = gl.SliceLayout(1, SUMS)
    row, here = rows_of(limits, slot, outer_base, GROUP, OF_SUMS)
    column = gl.arange(0, DP, gl.SliceLayout(0, SUMS))
    mask = here[:, None] & (column[None, :] < D)
    before = (batch * heads + head).to(gl.int64) * rows
    sums = Sum + (before + row)[:, None] * D + column[None, :]
    if CONTINUES:
        value += gl.load(sums, mask=mask, other=0.0)
    if ENDS:
        final = value.to(buffer.dtype)
        if whole(limits, slot, outer_base, GROUP):
            buffer.reshape((ROWS, DP)).store(final)
            fence_async_shared()
            tma.async_copy_shared_to_global(Rows, [batch, head, slot + outer_base + GROUP * ROWS, 0], buffer)
        else:
            rows_out = Out + batch.to(gl.int64) * strides[0] + head.to(gl.int64) * strides[1]
            rows_out += row.to(gl.int64)[:, None] * strides[2]
            gl.store(rows_out + column[None, :], final, mask=mask)
    else:
        gl.store(sums, value, mask=mask)


# On the host


def described(rows: int, *tensors: Tensor) -> list[Any]:
    """The tensors as TMA copies them, so many rows at once."""
    found: list[Any] = []
    for x in tensors:
        block = [1, 1, rows, padded(x.shape[-1])]
        layout = gl.NVMMASharedLayout.get_default_for(block, ELEMENTS[x.dtype])
        found.append(TensorDescriptor.from_tensor(x, block, layout))
    return found


def processors(device: torch.device) -> int:
    """The multiprocessors of a GPU; an H200's where there is none."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 132
