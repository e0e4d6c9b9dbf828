"""Who is attended in the kernels for Hopper: a row's bounds as bits of a word, and pairs asked one by one."""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from lattend.attend.kernels.triton.hopper.orders import slots_below
from lattend.attend.kernels.triton.hopper.tiles import JOINED, OWN, is_joined, rows_of

# A number, or another where its column's bit is not set
_WHERE_SET = (
    "{ .reg .pred in; .reg .b32 bit; and.b32 bit, $2, $3; setp.ne.b32 in, bit, 0; selp.f32 $0, $1, %s, in; }"
)
# Bits from the first to before the end; a shift by 32 or more gives 0, which LLVM does not promise
BITS: gl.constexpr = gl.constexpr(
    "{ .reg .b32 first, end; max.s32 first, $1, 0; shl.b32 first, -1, first; "
    "max.s32 end, $2, 0; shl.b32 end, -1, end; not.b32 end, end; and.b32 $0, first, end; }"
)
OR_ZERO: gl.constexpr = gl.constexpr(_WHERE_SET % "0f00000000")
OR_LEAST: gl.constexpr = gl.constexpr(_WHERE_SET % "0fFF800000")  # -inf


@gluon.jit
def bounds_of(
    tile, table_batch, rows, Header, Data, RowBounds,
    BOUNDS: gl.constexpr, ROW_BOUNDS: gl.constexpr, GROUP: gl.constexpr, LAYOUT: gl.constexpr,
    COLUMNS: gl.constexpr = OWN, OUTER: gl.constexpr = 0, INNER: gl.constexpr = 0,
):  # fmt: skip
    """The positions of a group's rows and what is asked of their pairs: the bounds of each row's columns and
    its entries, whether more is to be asked, and of which head and element.
    """
    batch, head, first, count = tile[0], tile[1], tile[COLUMNS], tile[COLUMNS + 1]
    oa, inside = rows_of(tile, GROUP, LAYOUT, OUTER)
    low, high, entries = BOUNDS(oa, oa, oa, head, batch, Header, Data, False)
    asks = True
    if ROW_BOUNDS:  # where entries that must be equal begin and end; -1 if pairs are to be asked
        ends = RowBounds + gl.where(table_batch > 0, batch, 0) * 2 * rows + oa
        own = gl.load(ends, mask=inside, other=0)
        asks = gl.min(own, 0) < 0
        low = gl.maximum(low, own)
        high = gl.minimum(high, gl.where(asks, high, gl.load(ends + rows, mask=inside, other=0)))
    if INNER > 0:  # columns are slots
        base, period = tile[len(tile) - 3], tile[len(tile) - 2]
        low, high = slots_below(low, base, period, INNER), slots_below(high + 1, base, period, INNER) - 1
    # within the tile's columns, so that differences fit; a head that is left out has none
    low = gl.minimum(gl.maximum(low, first), first + count).to(gl.int32)
    high = gl.maximum(gl.minimum(high, first + count - 1), first - 1).to(gl.int32)
    return oa, low, high, entries, asks, head, batch


@gluon.jit
def bounds_at(index, tile, own, joined, JOINS: gl.constexpr):
    """What is asked of the pairs of a step: if a part JOINS, its bounds and nothing else in its steps."""
    if JOINS:
        theirs = is_joined(index, tile)
        low, high = gl.where(theirs, joined[1], own[1]), gl.where(theirs, joined[2], own[2])
        asks = (index >= tile[JOINED + 2]) & own[4]
        return own[0], low, high, own[3], asks, own[5], own[6]
    else:
        return own


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
def bits_of(at, about, S: gl.constexpr, STEP: gl.constexpr):
    """For each row of a thread a word with the bits of those columns, by number, that are within its bounds,
    in a step that begins with `at`.
    """
    column = gl.arange(0, STEP, gl.SliceLayout(0, S))[None, :]
    first, end = up_to(about[1][:, None] - at - 1, column), up_to(about[2][:, None] - at, column)
    return gl.inline_asm_elementwise(BITS, "=r,r,r", [first, end], gl.int32, True, 1)


@gluon.jit
def where_set(x, bits, OTHERS: gl.constexpr, S: gl.constexpr):
    """The numbers whose bits are set, and others: OR_ZERO or OR_LEAST. ptxas fetches several bits at once."""
    column = gl.arange(0, x.shape[1], gl.SliceLayout(0, S))[None, :]
    given = [x, bits, gl.full([1, 1], 1, gl.int32, S) << number_of(column)]
    return gl.inline_asm_elementwise(OTHERS, "=f,f,r,r", given, gl.float32, True, 1)


@gluon.jit
def spread(tensors, LAYOUT: gl.constexpr):
    """The tensors, handed to the threads that need them."""
    found = ()
    for place in gl.static_range(len(tensors)):
        found = found + (gl.convert_layout(tensors[place], LAYOUT),)  # noqa: RUF005
    return found


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
def where_pairs_kept(
    x, at, about, Header, Data,
    OTHERS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr, S: gl.constexpr,
):  # fmt: skip
    """The numbers of a step that begins with `at`, and others where more than bounds is asked and not so."""
    if about[4]:
        other = 0.0 if OTHERS == OR_ZERO else -float("inf")
        x = gl.where(pairs_kept(at, about, Header, Data, COLUMNS, PAIRS, S, x.shape[1]), x, other)
    return x
