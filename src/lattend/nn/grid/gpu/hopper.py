"""lstm and gru on Hopper with all weights held on the chip, half a gate's in registers or shared memory each.

A program takes the 16 rows of a row block, as the other kernels do. Its products are Wᵀ: units are the rows
of a product, image rows its columns, so that 16 image rows are no waste. Of the 2 * G matrices of the weights
HELD lie in registers, as operands of products, and the others in shared memory; none is read again.
"""

# Kernels are compiled by Triton, whose values have no Python types
# ruff: noqa: RUF005
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false, reportOptionalSubscript=false

from __future__ import annotations

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

ROWS: gl.constexpr = gl.constexpr(16)
# Of four pairs of units at rows 2q, 2q + 1, 2q + 8, 2q + 9, q = lane % 4: those one row higher
_LOWER = """{ .reg .b32 lane, from, a, b; .reg .pred first;
mov.u32 lane, %laneid; and.b32 a, lane, 3; setp.eq.u32 first, a, 0;
add.u32 from, lane, 3; and.b32 from, from, 3; and.b32 a, lane, 28; or.b32 from, from, a;
shfl.sync.idx.b32 a, $5, from, 31, -1; shfl.sync.idx.b32 b, $7, from, 31, -1;
mov.b32 $1, $4; mov.b32 $3, $6; selp.b32 $2, a, b, first; selp.b32 $0, $8, a, first; }"""
LOWER: gl.constexpr = gl.constexpr(_LOWER.replace("\n", " "))
FOUR: gl.constexpr = gl.constexpr("=&r,=&r,=&r,=&r,r,r,r,r,r,r,r,r")
# The same of float32, one unit after the other
_LOWER_FLOATS = """{ .reg .b32 lane, from; .reg .f32 a, b; .reg .pred first;
mov.u32 lane, %laneid; and.b32 from, lane, 3; setp.eq.u32 first, from, 0;
add.u32 from, lane, 3; and.b32 from, from, 3; and.b32 lane, lane, 28; or.b32 from, from, lane;
shfl.sync.idx.b32 a, $10, from, 31, -1; shfl.sync.idx.b32 b, $14, from, 31, -1;
mov.b32 $2, $8; mov.b32 $6, $12; selp.f32 $4, a, b, first; selp.f32 $0, $16, a, first;
shfl.sync.idx.b32 a, $11, from, 31, -1; shfl.sync.idx.b32 b, $15, from, 31, -1;
mov.b32 $3, $9; mov.b32 $7, $13; selp.f32 $5, a, b, first; selp.f32 $1, $17, a, first; }"""
LOWER_FLOATS: gl.constexpr = gl.constexpr(_LOWER_FLOATS.replace("\n", " "))
EIGHT: gl.constexpr = gl.constexpr(",".join(["=&f"] * 8 + ["f"] * 16))
# Words from memory as soon as of none all bits are set, or after so many reads; 0 where none is wanted.
# All threads of a warp go on together, as products of matrices ask of them
_RECEIVE = """{ .reg .pred more, on; .reg .b32 reads; %(clear)s mov.b32 reads, %(spins)s;
setp.ne.s32 more, %(wanted)s, 0; @!more bra DONE; AGAIN: %(load)s sub.s32 reads, reads, 1;
%(test)s setp.ne.and.s32 on, reads, 0, more;
vote.sync.any.pred on, on, -1; @on bra AGAIN; @more st.global.b32 [%(stuck)s], 1; DONE: }"""


def _receive(loads: str, words: int, **operands: str) -> str:
    found = [f"${word}" for word in range(words)]
    clear = " ".join(f"mov.b32 {word}, 0;" for word in found)
    test = " ".join(
        f"setp.eq{'.or' if place else ''}.s32 more, {word}, -1{', more' if place else ''};"
        for place, word in enumerate(found)
    )
    return (_RECEIVE % {"clear": clear, "load": loads, "test": test, **operands}).replace("\n", " ")


_LOAD = "ld.relaxed.gpu.global"
RECEIVE_PAIRS: gl.constexpr = gl.constexpr(
    _receive(f"{_LOAD}.b32 $0, [$2]; {_LOAD}.b32 $1, [$4];", 2, wanted="$6", spins="$8", stuck="$10")
)
RECEIVE_FLOATS: gl.constexpr = gl.constexpr(
    _receive(
        f"{_LOAD}.v2.b32 {{$0, $1}}, [$4]; {_LOAD}.v2.b32 {{$2, $3}}, [$6];", 4,
        wanted="$8", spins="$10", stuck="$12",
    )
)  # fmt: skip
OF_PAIRS: gl.constexpr = gl.constexpr(",".join(["=&r"] * 2 + ["l"] * 4 + ["r"] * 4 + ["l"] * 2))
OF_FLOATS: gl.constexpr = gl.constexpr(",".join(["=&r"] * 4 + ["l"] * 4 + ["r"] * 4 + ["l"] * 2))
PAIRS: gl.constexpr = gl.constexpr((gl.int16, gl.int16))
FLOATS: gl.constexpr = gl.constexpr((gl.int32, gl.int32))
_FINISH = """{ .reg .b32 all; .reg .pred more;
AGAIN: and.b32 all, $2, $3; and.b32 all, all, $4; and.b32 all, all, $5; and.b32 all, all, $6;
and.b32 all, all, $7; and.b32 all, all, $8; and.b32 all, all, $9; setp.eq.s32 more, all, -1;
@more nanosleep.u32 20; @more bra AGAIN;
mov.b32 $0, 0; mov.b32 $1, 0; }"""
FINISH: gl.constexpr = gl.constexpr(_FINISH.replace("\n", " "))
FINISHED: gl.constexpr = gl.constexpr("=r,=r,f,f,f,f,f,f,f,f")
RECIPROCAL: gl.constexpr = gl.constexpr("rcp.approx.ftz.f32 $0, $1;")


@triton.constexpr_function
def is_held(tile, tiles, held):
    """Whether a matrix of the weights is in registers; those that are lie evenly among the others."""
    return tile * held % tiles < held


@triton.constexpr_function
def place_of(tile, tiles, held):
    """How many matrices of its kind come before one."""
    kind = is_held(tile, tiles, held)
    return sum(is_held(other, tiles, held) == kind for other in range(tile))


@triton.constexpr_function
def unit_layout(size):
    """[units, rows]: of a product's layout [16 w + 8 j + r, ..] unit 16 w + 2 r + j, so units are pairs."""
    warps = [[16 << bit, 0] for bit in range(size.bit_length() - 5)]
    lanes = [[0, 2], [0, 4], [2, 0], [4, 0], [8, 0]]
    return gl.DistributedLinearLayout([[1, 0], [0, 1], [0, 8]], lanes, warps, [], [size, 16])


@gluon.jit
def reciprocal(x):
    """1 / x."""
    return gl.inline_asm_elementwise(RECIPROCAL, "=f,f", [x], gl.float32, True, 1)


@gluon.jit
def sigmoid(x):
    """1 / (1 + e^-x)."""
    return reciprocal(1 + gl.exp2(x * -1.4426950408889634))


@gluon.jit
def tanh(x):
    """Tanh from one exponential."""
    return 1 - 2 * reciprocal(1 + gl.exp2(x * 2.8853900817779268))


@gluon.jit
def lowered(x, above):
    """[units, rows] with each row one lower, and above in the first."""
    if x.dtype == gl.float32:
        return gl.inline_asm_elementwise(LOWER_FLOATS, EIGHT, [x, above], gl.float32, True, 8)
    return gl.inline_asm_elementwise(LOWER, FOUR, [x, above], x.dtype, True, 8)


@gluon.jit
def by_unit(x, H: gl.constexpr, LAYOUT: gl.constexpr):
    """A product's result in the order of units."""
    x = x.reshape([H // 16, 2, 8, ROWS]).permute((0, 2, 1, 3)).reshape([H, ROWS])
    return gl.convert_layout(x, LAYOUT, assert_trivial=True)


@gluon.jit
def load_tile(Base, H: gl.constexpr, LAYOUT: gl.constexpr, TRANSPOSED: gl.constexpr):
    """[H, H] of the weights, its rows in the order of a product's."""
    m = gl.arange(0, H, gl.SliceLayout(1, LAYOUT))
    k = gl.arange(0, H, gl.SliceLayout(0, LAYOUT))
    unit = (m & -16) | ((m & 7) << 1) | ((m >> 3) & 1)
    if TRANSPOSED:
        return gl.load(Base + k[None, :] * H + unit[:, None])
    return gl.load(Base + unit[:, None] * H + k[None, :])


@gluon.jit
def load_all(
    Left, Top, G: gl.constexpr, H: gl.constexpr, HELD: gl.constexpr, MMA: gl.constexpr,
    TRANSPOSED: gl.constexpr,
):  # fmt: skip
    """The weights: matrices in registers, and a buffer with the others."""
    dtype: gl.constexpr = Left.dtype.element_ty
    tiles: gl.constexpr = 2 * G
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([H, H], dtype)
    plain: gl.constexpr = gl.BlockedLayout([1, 8], [32 // (H // 8), H // 8], [H // 16, 1], [1, 0])
    buffer = gl.allocate_shared_memory(dtype, [tiles - HELD, H, H], shared)
    held = ()
    for tile in gl.static_range(tiles):
        base = (Left if tile % 2 == 0 else Top) + tile // 2 * H * H
        if is_held(tile, tiles, HELD):
            held = held + (load_tile(base, H, gl.DotOperandLayout(0, MMA, 2), TRANSPOSED),)
        else:
            found = load_tile(base, H, plain, TRANSPOSED)
            buffer.index(place_of(tile, tiles, HELD)).store(found)
    return held, buffer


@gluon.jit
def weights_of(held, buffer, tile: gl.constexpr, tiles: gl.constexpr, HELD: gl.constexpr):
    """One matrix of the weights."""
    if is_held(tile, tiles, HELD):
        return held[place_of(tile, tiles, HELD)]
    else:
        return buffer.index(place_of(tile, tiles, HELD))


@gluon.jit
def over_rows(x):
    """[units] in every row."""
    return gl.expand_dims(x, 1).broadcast_to([x.shape[0], ROWS])


@gluon.jit
def received(First, Second, there, Stuck, spins):
    """What the row block above has handed on, once it has: two times numbers [units], zeros if not `there`.

    A number is there when its bits, or those of a pair of 16 bits, are not all set, as they are at first: no
    number that is computed, not even a NaN, has those bits. So there are no flags, and nothing waits for
    memory but who reads it. After `spins` reads (-1: for ever) a program says in Stuck that it gave up.
    """
    given = [First.to(gl.int64), Second.to(gl.int64), there.to(gl.int32), spins, Stuck.to(gl.int64)]
    if First.dtype.element_ty == gl.float32:
        first, second = gl.inline_asm_elementwise(RECEIVE_FLOATS, OF_FLOATS, given, FLOATS, False, 2)
    else:
        first, second = gl.inline_asm_elementwise(RECEIVE_PAIRS, OF_PAIRS, given, PAIRS, False, 2)
    kind: gl.constexpr = First.dtype.element_ty
    return first.to(kind, bitcast=True), second.to(kind, bitcast=True)


@gluon.jit
def finish(x):
    """[units, rows] is computed before what follows: ptxas moves instructions within a block alone.

    Else it waits for the products of all gates before it goes on with the first. No number has all bits set.
    """
    gl.inline_asm_elementwise(FINISH, FINISHED, [x], gl.int8, False, 8)
