"""What the kernels for Hopper share, which hold all weights of an lstm or gru on the chip.

A program takes a row block of 16 rows, as the other kernels do. A product has units as its rows and the rows
of the image as its columns, so that 16 of these are no waste. Of the 2 * G matrices of the weights HELD lie
in registers, as operands of products, and the others in shared memory; none is read again.

What a row block hands on to the next is polled itself: no flags, and no thread waits for its own stores.
Tensor cores take products at the rate at which a warp issues them, so what is read is read before, and the
functions of a gate stand between the products of two others: while one group of four warps computes, the
other has the tensor cores.
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

ROWS: gl.constexpr = gl.constexpr(16)  # of a row block, the columns of a product
CHANNELS: gl.constexpr = gl.constexpr(16)  # of an image at most, a bias among them: the length of a product
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
# Words from memory as soon as of none all bits are set, or after so many reads. Those that were read sooner
# come in and are read again where they are not there; 0 where none is wanted.
# All threads of a warp go on together, as products of matrices ask of them
_LOAD = "ld.relaxed.gpu.global"
_RECEIVE = """{ .reg .pred more, on; .reg .b32 reads; mov.b32 reads, %(spins)s; %(copy)s
bra.uni CHECK; AGAIN: %(load)s CHECK: %(test)s setp.ne.and.s32 on, reads, 0, more; sub.s32 reads, reads, 1;
vote.sync.any.pred on, on, -1; @on bra AGAIN; @more st.global.b32 [%(stuck)s], 1; }"""


def _receive(load: str, words: int, **operands: str) -> str:
    found = [f"${word}" for word in range(words)]
    copy = " ".join(f"mov.b32 {word}, ${words + place};" for place, word in enumerate(found))
    test = " ".join(
        f"setp.eq{'.or' if place else ''}.s32 more, {word}, -1{', more' if place else ''};"
        for place, word in enumerate(found)
    )
    return (_RECEIVE % {"copy": copy, "load": load, "test": test, **operands}).replace("\n", " ")


def _expect(load: str, words: int, wanted: str) -> str:
    clear = " ".join(f"mov.b32 ${word}, 0;" for word in range(words))
    loads = load.replace(_LOAD, f"@there {_LOAD}")
    return f"{{ .reg .pred there; {clear} setp.ne.s32 there, {wanted}, 0; {loads} }}"


def _loads(words: int, first: str, second: str) -> str:
    """Loads of two times one word, or two times two."""
    if words == 2:
        return f"{_LOAD}.b32 $0, [{first}]; {_LOAD}.b32 $1, [{second}];"
    return f"{_LOAD}.v2.b32 {{$0, $1}}, [{first}]; {_LOAD}.v2.b32 {{$2, $3}}, [{second}];"


EXPECT_PAIRS: gl.constexpr = gl.constexpr(_expect(_loads(2, "$2", "$4"), 2, "$6"))
EXPECT_FLOATS: gl.constexpr = gl.constexpr(_expect(_loads(4, "$4", "$6"), 4, "$8"))
RECEIVE_PAIRS: gl.constexpr = gl.constexpr(_receive(_loads(2, "$4", "$6"), 2, spins="$8", stuck="$10"))
RECEIVE_FLOATS: gl.constexpr = gl.constexpr(_receive(_loads(4, "$8", "$10"), 4, spins="$12", stuck="$14"))


def _operands(word: str, *counts: int) -> str:
    """Constraints of so many words that come out, words, addresses, words and addresses that come in."""
    kinds = zip((f"=&{word}", word, "l", "r", "l"), counts, strict=True)
    return ",".join(kind for kind, count in kinds for _ in range(count))


OF_EXPECTED_PAIRS: gl.constexpr = gl.constexpr(_operands("r", 2, 0, 4, 2, 0))
OF_EXPECTED_FLOATS: gl.constexpr = gl.constexpr(_operands("f", 4, 0, 4, 2, 0))
OF_PAIRS: gl.constexpr = gl.constexpr(_operands("r", 2, 2, 4, 2, 2))
OF_FLOATS: gl.constexpr = gl.constexpr(_operands("f", 4, 4, 4, 2, 2))
BFLOATS: gl.constexpr = gl.constexpr((gl.bfloat16, gl.bfloat16))
HALVES: gl.constexpr = gl.constexpr((gl.float16, gl.float16))
FLOATS: gl.constexpr = gl.constexpr((gl.float32, gl.float32))
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
    """The layout of [units, rows]: a product's, with rows by `unit_of`: a thread has pairs of units."""
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
def unit_of(m):
    """The unit of a product's row: 16 w + 2 r + j of 16 w + 8 j + r."""
    return (m & -16) | ((m & 7) << 1) | ((m >> 3) & 1)


@gluon.jit
def load_tile(Base, H: gl.constexpr, LAYOUT: gl.constexpr, TRANSPOSED: gl.constexpr):
    """[H, H] of the weights, its rows in the order of a product's."""
    m = gl.arange(0, H, gl.SliceLayout(1, LAYOUT))
    k = gl.arange(0, H, gl.SliceLayout(0, LAYOUT))
    unit = unit_of(m)
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
def expected(First, Second, there):
    """Reads, before it is needed, what the row block above hands on: two times [units], 0 if not `there`.

    A number is there when its bits, or those of a pair of 16 bits, are not all set, as they are at first: no
    number that is computed, not even a NaN, has those bits. So there are no flags.
    """
    given = [First.to(gl.int64), Second.to(gl.int64), there.to(gl.int32)]
    if First.dtype.element_ty == gl.float32:
        return gl.inline_asm_elementwise(EXPECT_FLOATS, OF_EXPECTED_FLOATS, given, FLOATS, False, 2)
    elif First.dtype.element_ty == gl.bfloat16:
        return gl.inline_asm_elementwise(EXPECT_PAIRS, OF_EXPECTED_PAIRS, given, BFLOATS, False, 2)
    else:
        return gl.inline_asm_elementwise(EXPECT_PAIRS, OF_EXPECTED_PAIRS, given, HALVES, False, 2)


@gluon.jit
def received(first, second, First, Second, Stuck, spins):
    """What was expected, read again until it is there; after `spins` reads (-1: for ever) Stuck says so."""
    given = [first, second, First.to(gl.int64), Second.to(gl.int64), spins, Stuck.to(gl.int64)]
    if First.dtype.element_ty == gl.float32:
        return gl.inline_asm_elementwise(RECEIVE_FLOATS, OF_FLOATS, given, FLOATS, False, 2)
    elif First.dtype.element_ty == gl.bfloat16:
        return gl.inline_asm_elementwise(RECEIVE_PAIRS, OF_PAIRS, given, BFLOATS, False, 2)
    else:
        return gl.inline_asm_elementwise(RECEIVE_PAIRS, OF_PAIRS, given, HALVES, False, 2)


@gluon.jit
def finish(x):
    """[units, rows] is computed before what follows: ptxas moves instructions within a block alone.

    Else it waits for the products of all gates before it goes on with the first. No number has all bits set.
    """
    gl.inline_asm_elementwise(FINISH, FINISHED, [x], gl.int8, False, 8)
