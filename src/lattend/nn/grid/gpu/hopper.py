"""lstm and gru on Hopper with all weights held on the chip, half a gate's in registers or shared memory each.

A program takes the 16 rows of a row block, as the other kernels do. Its products are Wᵀ: units are the rows
of a product, image rows its columns, so that 16 image rows are no waste. Of the 2 * G matrices of the weights
HELD lie in registers, as operands of products, and the others in shared memory; none is read again.
"""

# Kernels are compiled by Triton, whose values have no Python types
# ruff: noqa: SIM102
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false, reportOptionalSubscript=false

from __future__ import annotations

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)

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
    """[units, rows]: of a product's layout [16 w + 8 j + r, ..] unit 16 w + 2 r + j, so that units are pairs."""
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
def load_above(Base, place, there, unit, H: gl.constexpr):
    """[units] of a state in the row above the row block, past the nearest cache: another program wrote it."""
    return gl.load(Base + place * H + unit, mask=there, other=0.0, cache_modifier=".cg")


@gluon.jit
def wait_for(flag, chunks, Flags, spins):
    """As wavefront.wait_for has it."""
    reads = 0
    while (gl.atomic_add(flag, 0, sem="acquire", scope="gpu") < chunks) & (reads != spins):
        reads += 1
    if reads == spins:
        gl.store(Flags, 1)


@gluon.jit
def announce(Flags, own, done, cols, CHUNK: gl.constexpr):
    """As wavefront.announce has it, after a barrier."""
    if Flags is not None:
        if (done > 0) & (done <= cols) & ((done % CHUNK == 0) | (done == cols)):
            gl.atomic_xchg(Flags + own, gl.cdiv(done, CHUNK), sem="release", scope="gpu")


@gluon.jit
def grid_hopper_fwd_kernel(
    Pre, States, Cells, Gates, Mask, Left, Top, Flags,
    spins, first_image, images, first_block, batch, rows, cols,
    CELL: gl.constexpr, G: gl.constexpr, H: gl.constexpr, MASKED: gl.constexpr, SAVE: gl.constexpr,
    BR: gl.constexpr, CHUNK: gl.constexpr, HELD: gl.constexpr,
):  # fmt: skip
    """Pre [image, rows, cols, G*H]; States and Cells [image, rows + 1, cols + 1, H]; Gates [.., 5*H]."""
    dtype: gl.constexpr = States.dtype.element_ty
    MMA: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [H // 16, 1], [16, ROWS, 16])
    UNITS: gl.constexpr = unit_layout(H)
    program = gl.program_id(0)
    image = (first_image + program % images).to(gl.int64)
    row_block = first_block + program // images
    own = 1 + image * gl.cdiv(rows, BR) + row_block
    weights = (image // batch) * G * H * H
    held, buffer = load_all(Left + weights, Top + weights, G, H, HELD, MMA, False)
    near = gl.allocate_shared_memory(  # h_left and h_top, of this step and of the next
        dtype, [4, ROWS, H], gl.NVMMASharedLayout.get_default_for([ROWS, H], dtype)
    )

    i = gl.arange(0, ROWS, gl.SliceLayout(0, UNITS))
    n = gl.arange(0, H, gl.SliceLayout(1, UNITS))
    row = row_block * BR + i
    wide = cols + 1
    waits = row_block > first_block
    Pre += image * rows * cols * (G * H)
    States += image * (rows + 1) * wide * H
    if CELL == "lstm":
        Cells += image * (rows + 1) * wide * H
    if SAVE:
        Gates += image * rows * cols * (5 * H)
    edge = ((row + 1) * wide)[None, :] * H + n[:, None]
    inside = (row < rows)[None, :]
    h_left = gl.load(States + edge, mask=inside, other=0.0)
    if CELL == "lstm":
        c_left = gl.load(Cells + edge, mask=inside, other=0.0)
    if Flags is not None:
        if waits:
            wait_for(Flags + own - 1, 1, Flags, spins)
    top = row_block * BR * wide + 1
    above = load_above(States, top, True, n, H)
    h_top = lowered(h_left, gl.expand_dims(above, 1).broadcast_to(h_left.shape))
    if CELL == "lstm":
        above = load_above(Cells, top, True, n, H)
        c_top = lowered(c_left, gl.expand_dims(above, 1).broadcast_to(c_left.shape))
    near.index(0).store(h_left.permute((1, 0)))
    near.index(1).store(h_top.permute((1, 0)))
    fence_async_shared()
    gl.thread_barrier()
    for step in range(0, cols + BR - 1):
        now = step % 2 * 2
        sums = ()
        for gate in gl.static_range(G):
            total = gl.full([H, ROWS], 0, gl.float32, MMA)
            for side in gl.static_range(2):
                total = warpgroup_mma(
                    weights_of(held, buffer, 2 * gate + side, 2 * G, HELD),
                    near.index(now + side).permute((1, 0)), total, use_acc=side > 0, is_async=True,
                )  # fmt: skip
            sums = sums + (total,)

        # While the products run
        announce(Flags, own, step - BR + 1, cols, CHUNK)
        col = step - i
        here = (row < rows) & (col >= 0) & (col < cols)
        at = row * cols + col
        pre = ()
        for gate in gl.static_range(G):
            place = (at * (G * H))[None, :] + gate * H + n[:, None]
            pre = pre + (gl.load(Pre + place, mask=here[None, :], other=0.0),)
        there = here
        if MASKED:
            there = gl.load(Mask + image * rows * cols + at, mask=here, other=0) != 0
        after = step + 1
        if Flags is not None:
            if waits & (after % CHUNK == 0) & (after < cols):
                wait_for(Flags + own - 1, after // CHUNK + 1, Flags, spins)
        above_h = load_above(States, top + after, after < cols, n, H)
        if CELL == "lstm":
            above_c = load_above(Cells, top + after, after < cols, n, H)

        a = sigmoid(by_unit(warpgroup_mma_wait(2 * (G - 1), [sums[0]]), H, UNITS) + pre[0])
        b = sigmoid(by_unit(warpgroup_mma_wait(2 * (G - 2), [sums[1]]), H, UNITS) + pre[1])
        c = sigmoid(by_unit(warpgroup_mma_wait(2 * (G - 3), [sums[2]]), H, UNITS) + pre[2])
        d = by_unit(warpgroup_mma_wait(2 * (G - 4), [sums[3]]), H, UNITS)
        place = ((row + 1) * wide + col + 1)[None, :] * H + n[:, None]
        if CELL == "lstm":
            d = tanh(d + pre[3])
            left = c_left.to(gl.float32)
            kept = c_top.to(gl.float32)
            cell = b * (kept + c * (left - kept)) + a * d
            out = tanh(cell)
            cell = gl.where(there[None, :], cell, 0.0).to(dtype)
            e = sigmoid(by_unit(warpgroup_mma_wait(0, [sums[4]]), H, UNITS) + pre[4])
            h = e * out
        else:
            e = d
            d = tanh(pre[3] + a * e)
            left = h_left.to(gl.float32)
            kept = h_top.to(gl.float32)
            h = (1 - b) * d + b * (kept + c * (left - kept))
        h = gl.where(there[None, :], h, 0.0).to(dtype)
        h_left = gl.where((col >= 0)[None, :], h, h_left)  # rows that have not begun keep their edge
        h_top = lowered(h_left, gl.expand_dims(above_h, 1).broadcast_to(h_left.shape))
        near.index(2 - now).store(h_left.permute((1, 0)))
        near.index(3 - now).store(h_top.permute((1, 0)))
        fence_async_shared()
        gl.store(States + place, h, mask=here[None, :])
        if CELL == "lstm":
            gl.store(Cells + place, cell, mask=here[None, :])
            c_left = gl.where((col >= 0)[None, :], cell, c_left)
            c_top = lowered(c_left, gl.expand_dims(above_c, 1).broadcast_to(c_left.shape))
        gl.thread_barrier()
        if SAVE:
            place = (at * (5 * H))[None, :] + n[:, None]
            gl.store(Gates + place, a.to(dtype), mask=here[None, :])
            gl.store(Gates + H + place, b.to(dtype), mask=here[None, :])
            gl.store(Gates + 2 * H + place, c.to(dtype), mask=here[None, :])
            gl.store(Gates + 3 * H + place, d.to(dtype), mask=here[None, :])
            gl.store(Gates + 4 * H + place, e.to(dtype), mask=here[None, :])
    announce(Flags, own, cols, cols, CHUNK)


@gluon.jit
def load_state(Base, place, here):
    """Numbers of a pixel."""
    return gl.load(Base + place, mask=here, other=0.0)


@gluon.jit
def grid_hopper_bwd_kernel(
    GradH, GradC, States, Cells, Gates, Mask, Left, Top, DPre, DHidden, DState, Hand, Flags,
    spins, first_image, images, first_block, batch, rows, cols,
    CELL: gl.constexpr, G: gl.constexpr, H: gl.constexpr, MASKED: gl.constexpr, BR: gl.constexpr,
    CHUNK: gl.constexpr, HELD: gl.constexpr,
):  # fmt: skip
    """The same wavefront from the last pixel, rows and columns counted from the end.

    DPre, DHidden [image, rows, cols, G*H]; GradH, GradC, DState [.., H]; Gates [.., 5*H]. A step begins with
    the products of the gradients that the step before has found: for the pixel to the left of each, and for
    the one above it. Hand [image, row blocks, cols, 2, H], in float32, has what the last row of a row block
    hands to the pixels above it: the product, and of an lstm the gradient at c.
    """
    dtype: gl.constexpr = States.dtype.element_ty
    MMA: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [H // 16, 1], [16, ROWS, 16])
    UNITS: gl.constexpr = unit_layout(H)
    program = gl.program_id(0)
    image = (first_image + program % images).to(gl.int64)
    row_block = first_block + program // images
    own = 1 + image * gl.cdiv(rows, BR) + row_block
    weights = (image // batch) * G * H * H
    held, buffer = load_all(Left + weights, Top + weights, G, H, HELD, MMA, True)
    found = gl.allocate_shared_memory(
        dtype, [G, ROWS, H], gl.NVMMASharedLayout.get_default_for([ROWS, H], dtype)
    )
    i = gl.arange(0, ROWS, gl.SliceLayout(0, UNITS))
    n = gl.arange(0, H, gl.SliceLayout(1, UNITS))
    row = row_block * BR + i
    wide = cols + 1
    waits = row_block > first_block
    pixels = image * rows * cols
    GradH += pixels * H
    DState += pixels * H
    Gates += pixels * (5 * H)
    DPre += pixels * (G * H)
    DHidden += pixels * (G * H)
    if GradC is not None:
        GradC += pixels * H
    if CELL == "lstm":
        Old = Cells + image * (rows + 1) * wide * H
    else:
        Old = States + image * (rows + 1) * wide * H
    if Flags is not None:
        Hand += (own - 1) * cols * (2 * H)
    zeros = gl.full([H, ROWS], 0.0, gl.float32, UNITS)
    for gate in gl.static_range(G):
        found.index(gate).store(zeros.to(dtype).permute((1, 0)))
    fence_async_shared()
    gl.thread_barrier()
    kept_left = zeros  # of the gradients at the states the shares that go left, and up
    kept_up = zeros
    for step in range(0, cols + BR):
        d_left = gl.full([H, ROWS], 0, gl.float32, MMA)
        d_up = gl.full([H, ROWS], 0, gl.float32, MMA)
        for gate in gl.static_range(G):
            near = found.index(gate + (step >> 24)).permute((1, 0))
            w_left = weights_of(held, buffer, 2 * gate, 2 * G, HELD)
            w_top = weights_of(held, buffer, 2 * gate + 1, 2 * G, HELD)
            d_left = warpgroup_mma(w_left, near, d_left, use_acc=gate > 0, is_async=True)
            d_up = warpgroup_mma(w_top, near, d_up, use_acc=gate > 0, is_async=True)

        # While the products run
        announce(Flags, own, step - BR, cols, CHUNK)
        col = step - i
        here = (row < rows) & (col >= 0) & (col < cols)
        at = (rows - row) * cols - col - 1
        place = (at * H)[None, :] + n[:, None]
        gate_place = (at * (5 * H))[None, :] + n[:, None]
        state_place = (((rows - row + 1) * wide - col - 1) * H)[None, :] + n[:, None]
        shown = here[None, :]
        dh = load_state(GradH, place, shown)
        a = load_state(Gates, gate_place, shown)
        b = load_state(Gates + H, gate_place, shown)
        c = load_state(Gates + 2 * H, gate_place, shown)
        d = load_state(Gates + 3 * H, gate_place, shown)
        e = load_state(Gates + 4 * H, gate_place, shown)
        if CELL == "lstm":
            out = load_state(Old, state_place, shown)
            if GradC is not None:
                grad_c = load_state(GradC, place, shown)
        s_left = load_state(Old - H, state_place, shown)
        s_top = load_state(Old - wide * H, state_place, shown)
        there = here
        if MASKED:
            there = gl.load(Mask + pixels + at, mask=here, other=0) != 0
        if Flags is not None:
            if waits & (step % CHUNK == 0) & (step < cols):
                wait_for(Flags + own - 1, step // CHUNK + 1, Flags, spins)
            handed = (step - cols) * 2
            above = load_above(Hand, handed, (row_block > 0) & (step < cols), n, H)
            above_c = load_above(Hand, handed + 1, (row_block > 0) & (step < cols), n, H)
            above = gl.expand_dims(above, 1).broadcast_to(zeros.shape)
            above_c = gl.expand_dims(above_c, 1).broadcast_to(zeros.shape)
        else:
            above = zeros
            above_c = zeros
        d_left, d_up = warpgroup_mma_wait(0, [d_left, d_up])
        d_left = by_unit(d_left, H, UNITS)
        d_up = by_unit(d_up, H, UNITS)
        if CELL == "gru":
            d_left += kept_left
            d_up += kept_up
        if Flags is not None:
            handing = (step - BR) * 2
            at_last = ((i == BR - 1) & (step >= BR))[None, :]
            place_up = (handing * H + n)[:, None] + (i * 0)[None, :]
            gl.store(Hand + place_up, d_up, mask=at_last)
            if CELL == "lstm":
                gl.store(Hand + H + place_up, kept_up, mask=at_last)
        a, b, c, d, e = a.to(gl.float32), b.to(gl.float32), c.to(gl.float32), d.to(gl.float32), e.to(gl.float32)
        s_left, s_top = s_left.to(gl.float32), s_top.to(gl.float32)
        mixed = s_top + c * (s_left - s_top)
        if CELL == "lstm":
            out = tanh(out.to(gl.float32))
            of_a = d * a * (1 - a)
            of_b = mixed * b * (1 - b)
            of_d = a * (1 - d * d)
            of_e = out * e * (1 - e)
            of_state = e * (1 - out * out)
            back = kept_left + lowered(kept_up, above_c)
            if GradC is not None:
                back += grad_c.to(gl.float32)
        else:
            of_d = (1 - b) * (1 - d * d)
            of_a = of_d * e * a * (1 - a)
            of_b = (mixed - d) * b * (1 - b)
        of_c = b * (s_left - s_top) * c * (1 - c)
        to_left = b * c
        to_up = b - to_left
        dh = dh.to(gl.float32) + d_left + lowered(d_up, above)
        dh = gl.where(there[None, :], dh, 0.0)
        if CELL == "lstm":
            state = gl.where(there[None, :], dh * of_state + back, 0.0)
            of_e = dh * of_e
        else:
            state = dh
        grads = (state * of_a, state * of_b, state * of_c, state * of_d)
        kept_left = state * to_left
        kept_up = state * to_up
        gl.thread_barrier()  # every product has read what is overwritten now
        for gate in gl.static_range(3):
            found.index(gate).store(grads[gate].to(dtype).permute((1, 0)))
        if CELL == "lstm":
            found.index(3).store(grads[3].to(dtype).permute((1, 0)))
            found.index(4).store(of_e.to(dtype).permute((1, 0)))
        else:
            found.index(3).store((grads[3] * a).to(dtype).permute((1, 0)))
        fence_async_shared()
        gl.thread_barrier()
        out_place = (at * (G * H))[None, :] + n[:, None]
        for gate in gl.static_range(4):
            gl.store(DPre + gate * H + out_place, grads[gate].to(dtype), mask=shown)
        if CELL == "lstm":
            gl.store(DPre + 4 * H + out_place, of_e.to(dtype), mask=shown)
        else:
            for gate in gl.static_range(3):
                gl.store(DHidden + gate * H + out_place, grads[gate].to(dtype), mask=shown)
            gl.store(DHidden + 3 * H + out_place, (grads[3] * a).to(dtype), mask=shown)
        gl.store(DState + place, state.to(dtype), mask=shown)
    gl.thread_barrier()
    announce(Flags, own, cols, cols, CHUNK)
