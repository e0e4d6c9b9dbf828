"""What a tile is for the kernels for Hopper: which ones a program takes, their rows, columns and steps.

A tile is 128 rows, 64 for each of two groups of warps that compute, or 192 for three (*_narrow.py); where
head_dim is above 128 (*_wide.py) there is less room. A step is so many of its columns. In the forward pass
and for gradients of queries the rows are queries and the columns keys, else the other way round. The warp
that loads reads a tile's numbers from the plan's table and notes them in shared memory for the others.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from lattend.attend.kernels.triton.hopper.orders import corner, position_of, slots_below

GROUPS: gl.constexpr = gl.constexpr(2)  # of four warps that compute
TILES: gl.constexpr = gl.constexpr(2)  # whose rows are in shared memory
ROWS: gl.constexpr = gl.constexpr(64)  # of a group
REGISTERS: gl.constexpr = gl.constexpr(240)  # of a thread that computes; of one that loads LOADER
LOADER: gl.constexpr = gl.constexpr(24)
NUMBERS: gl.constexpr = gl.constexpr(11)  # of a tile; some have MORE
OWN: gl.constexpr = gl.constexpr(4)  # which of them are the first of its columns, and how many
JOINED: gl.constexpr = gl.constexpr(11)  # the same of a part that joins, and its steps
LEFT: gl.constexpr = gl.constexpr(11)  # steps that each group leaves out, first and last; none joins these
EARLY: gl.constexpr = gl.constexpr(2)  # with this step the rows of the next tile are loaded
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
def tile_of(
    turn, Table, Header, numbers, STEP: gl.constexpr, HAS_FULL: gl.constexpr, ALIGNED: gl.constexpr = 1,
    HEIGHT: gl.constexpr = 128, MORE: gl.constexpr = 0, OUTER: gl.constexpr = 0, INNER: gl.constexpr = 0,
    BY_HEAD: gl.constexpr = False, LEAVES: gl.constexpr = 0,
):  # fmt: skip
    """The tile of a turn, as numbers: batch element and head; the first slot and base of its rows; the first
    of its columns, and how many; its steps, those with a mask, and the first full one; the first of its rows
    that can have columns, and the end of these; if so many groups LEAVE out steps, for each how many of the
    first and of the last; and MORE numbers, as the table has them. Where rows or columns have an order, the
    base of its columns and the periods of columns and rows come last; columns that have one are slots.

    The same tile of all heads comes first, then the next; BY_HEAD, all tiles of one head do. It has HEIGHT
    rows, and its columns begin at a multiple of ALIGNED. The first step has a mask, if only for this: ptxas
    12.8 prepares what both loops over steps share before the first of them, behind the branch that passes it
    by; with no step in it, products of the second would read anywhere.
    """
    heads, _, _, tiles, table_batch, table_head, works = numbers
    pairs = works // tiles
    if BY_HEAD:
        tile, pair = work_at(turn) % tiles, work_at(turn) // tiles
    else:
        tile, pair = work_at(turn) // pairs, work_at(turn) % pairs
    batch, head = pair // heads, pair % heads
    entry = Table + (batch * table_batch + head * table_head + tile).to(gl.int64) * (7 + 2 * LEAVES + MORE)
    slot, outer_base, base = gl.load(entry), gl.load(entry + 1), gl.load(entry + 2)
    begin, end = gl.load(entry + 3), gl.load(entry + 4)
    if INNER > 0:  # whole groups are copied
        begin -= begin % (ALIGNED if ALIGNED > INNER else INNER)
    else:
        begin -= (base + begin) % ALIGNED
    steps = gl.maximum(gl.cdiv(end - begin, STEP), 1)  # without columns it is one of zeros: before the first
    full_first, full = steps, steps * 0
    if HAS_FULL:
        full_first = gl.minimum(gl.cdiv(gl.load(entry + 5) - begin, STEP), steps)
        full = gl.maximum((gl.load(entry + 6) - begin) // STEP - full_first, 0)
    first = gl.where(end > begin, begin if INNER > 0 else base + begin, -STEP)
    masked, period = gl.maximum(steps - full, 1), gl.load(Header)
    rows_first = gl.maximum(slots_below(gl.load(Header + 8), outer_base, period, OUTER) - slot, 0)
    rows_end = slots_below(gl.load(Header + 9) + 1, outer_base, period, OUTER)
    rows_end = gl.minimum(rows_end, gl.load(Header + 10)) - slot  # so many slots has a class
    rows_first = gl.minimum(rows_first, HEIGHT).to(gl.int32)
    rows_end = gl.maximum(gl.minimum(rows_end, HEIGHT), 0).to(gl.int32)
    found = batch, head, slot, outer_base, first, end - begin, steps, masked, full_first, rows_first, rows_end
    for group in gl.static_range(LEAVES):  # the table has the first of its columns, and their end
        own, beyond = gl.load(entry + 7 + 2 * group), gl.load(entry + 8 + 2 * group)
        opening = gl.minimum(gl.maximum(own - first, 0) // STEP, gl.minimum(steps - 1, EARLY))
        needed = gl.cdiv(gl.maximum(beyond - first, 1), STEP)
        found = found + (opening, gl.maximum(steps - gl.maximum(needed, opening + 1), 0))  # noqa: RUF005
    for place in gl.static_range(MORE):
        found = found + (gl.load(entry + 7 + 2 * LEAVES + place),)  # noqa: RUF005
    if OUTER + INNER > 0:
        found = found + (base, gl.load(Header + 2).to(gl.int32), period.to(gl.int32))  # noqa: RUF005
    return found


@gluon.jit
def tile_of_queries(
    turn, Table, Header, numbers, STEP: gl.constexpr, HAS_FULL: gl.constexpr, JOINS: gl.constexpr,
    HEIGHT: gl.constexpr = 128, OUTER: gl.constexpr = 0, INNER: gl.constexpr = 0,
    BY_HEAD: gl.constexpr = False, LEAVES: gl.constexpr = 0,
):  # fmt: skip
    """The tile of queries of a turn; if a part JOINS, steps of its keys come before the others."""
    own = tile_of(
        turn, Table, Header, numbers, STEP, HAS_FULL, 1, HEIGHT, 2 * JOINS, OUTER, INNER, BY_HEAD, LEAVES
    )
    if JOINS:
        first, count = own[JOINED], own[JOINED + 1]
        if INNER > 0:  # they are copied in boxes as large as the others'
            count += first % INNER
            first -= first % INNER
        more = gl.maximum(gl.cdiv(count, STEP), 1)
        counts = (own[6] + more, own[7] + more, own[8] + more)
        own = own[:6] + counts + own[9:11] + (first, count, more) + own[13:]
    return own


@gluon.jit
def step_at(index, tile):
    """The step of an index: those with a mask come first, then the full ones that lie between them."""
    steps, masked, full_first = tile[6], tile[7], tile[8]
    with_mask = gl.where(index < full_first, index, index + steps - masked)
    return gl.where(index < masked, with_mask, index - masked + full_first)


@gluon.jit
def is_joined(index, tile):
    """Whether a step is one of the part that joins."""
    return index < tile[JOINED + 2]


@gluon.jit
def place_of(index, tile, STEP: gl.constexpr, JOINS: gl.constexpr = False):
    """The first column of a tile's step; if a part JOINS, its steps come before."""
    step = step_at(index, tile)
    if JOINS:
        own = tile[OWN] + (step - tile[JOINED + 2]) * STEP
        return gl.where(is_joined(index, tile), tile[JOINED] + index * STEP, own)
    else:
        return tile[OWN] + step * STEP


@gluon.jit
def corner_of(index, tile, share, STEP: gl.constexpr, JOINS: gl.constexpr, INNER: gl.constexpr):
    """Where TMA begins to copy the keys of a step."""
    base = 0
    if INNER > 0:
        base = tile[len(tile) - 3]
        if JOINS:
            base = gl.where(is_joined(index, tile), 0, base)
    return corner(tile[0], tile[1] // share, place_of(index, tile, STEP, JOINS), base, INNER)


@gluon.jit
def steps_left_out(tile, GROUP: gl.constexpr):
    """How many of a tile's first steps a group leaves out, and of its last."""
    return tile[LEFT + 2 * GROUP], tile[LEFT + 2 * GROUP + 1]


@gluon.jit
def early_of(tile):
    """The index of the step with which the rows of the next tile are loaded: as soon as there is room, which
    is when all groups have begun this one, at this step at the latest.
    """
    return gl.minimum(tile[6] - 1, EARLY)


# Numbers of tiles in shared memory


@gluon.jit
def notes(COUNT: gl.constexpr = 2, MORE: gl.constexpr = 0):
    """Room for the numbers of the tiles in shared memory, so many; some have MORE."""
    layout: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    return gl.allocate_shared_memory(gl.int32, [COUNT * (NUMBERS + MORE), 1], layout)


@gluon.jit
def note(noted, turn, tile):
    """Notes a tile's numbers in shared memory, for those who compute."""
    for place in gl.static_range(len(tile)):
        number = gl.full([1], tile[place], gl.int32, gl.BlockedLayout([1], [32], [1], [0]))
        noted.index(turn % (noted.shape[0] // len(tile)) * len(tile) + place).store(number)
    gl.thread_barrier()  # one thread says for all that it is there


@gluon.jit
def tile_noted(noted, turn, MORE: gl.constexpr = 0):
    """The tile of a turn, as it was noted, once all threads of a group have seen that it is there."""
    gl.thread_barrier()
    return noted_again(noted, turn, MORE)


@gluon.jit
def noted_again(noted, turn, MORE: gl.constexpr = 0):
    """The same for those who have seen it; what is not used of it is not read."""
    found = ()
    for place in gl.static_range(NUMBERS + MORE):
        at = turn % (noted.shape[0] // (NUMBERS + MORE)) * (NUMBERS + MORE) + place
        number = noted.index(at).load(gl.BlockedLayout([1], [32], [4], [0]))
        found = found + (gl.max(number, 0),)  # noqa: RUF005
    return found


# The rows of a group


@gluon.jit
def rows_of(tile, GROUP: gl.constexpr, LAYOUT: gl.constexpr, OUTER: gl.constexpr = 0):
    """The positions of a group's rows, and which of them are the tile's."""
    row = GROUP * ROWS + gl.arange(0, ROWS, LAYOUT)
    period = 1 if OUTER == 0 else tile[len(tile) - 1]
    return position_of(tile[2] + row, tile[3], period, OUTER), (row >= tile[9]) & (row < tile[10])


@gluon.jit
def whole(tile, GROUP: gl.constexpr):
    """Whether all of a group's rows are the tile's."""
    return (tile[9] <= GROUP * ROWS) & (tile[10] >= (GROUP + 1) * ROWS)
