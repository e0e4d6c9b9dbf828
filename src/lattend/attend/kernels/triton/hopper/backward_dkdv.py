"""Gradients of keys and values on Hopper, in Gluon, as backward.py's second kernel makes them for any chip.

As in forward.py one warp loads and two groups of four compute, 64 keys each. A tile has its keys and values
in shared memory; steps bring queries, the gradients of their output, and two numbers of each: log-sum-exp and
delta. Rows are keys here, so that weights and slopes lie as the products with gradients and queries take
them; both gradients stay in registers.
"""

# Kernels are compiled by Triton, whose values have no Python types
# pyright: basic, reportGeneralTypeIssues=false, reportCallIssue=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportOptionalMemberAccess=false, reportAssignmentType=false

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma_wait,
)

from lattend.attend.kernels.triton.geometry import PLAIN
from lattend.attend.kernels.triton.hopper.masks import (
    OR_ZERO,
    bits_of,
    bounds_of,
    where_pairs_kept,
    where_set,
)
from lattend.attend.kernels.triton.hopper.orders import corner
from lattend.attend.kernels.triton.hopper.shared import (
    arrived,
    barriers_of,
    begun,
    give_back,
    has_sums,
    lay,
    lay_share,
    let_pass,
    load_step,
    load_tile,
    product,
    room,
    send,
    weighed,
)
from lattend.attend.kernels.triton.hopper.tiles import (
    GROUPS,
    LOADER,
    LOG2E,
    OWN,
    REGISTERS,
    ROWS,
    TILES,
    early_of,
    noted_again,
    notes,
    step_at,
    steps_left_out,
    tile_noted,
    tile_of,
    turns_of,
)


@gluon.jit
def keys_of(
    turn, Table, Header, numbers, STEP: gl.constexpr, HAS_FULL: gl.constexpr, HEIGHT: gl.constexpr,
    CHUNKED: gl.constexpr, OUTER: gl.constexpr = 0, INNER: gl.constexpr = 0, BY_HEAD: gl.constexpr = False,
    LEAVES: gl.constexpr = 0,
):  # fmt: skip
    """The tile of keys of a turn, as tile_of has tiles of queries; its queries begin at a multiple of four,
    since TMA copies numbers from there.
    """
    kv_heads, _, _, tiles, table_batch, table_head, works, _ = numbers
    of_tiles = (kv_heads, 1, 0, tiles, table_batch, table_head, works)
    return tile_of(
        turn, Table, Header, of_tiles, STEP, HAS_FULL, 4, HEIGHT, CHUNKED, OUTER, INNER, BY_HEAD, LEAVES
    )


@gluon.jit
def member_step(index, tile, share, SHARED: gl.constexpr):
    """Which of the heads that share a tile's keys an index is about, and its step.

    Those with a mask come first, of one head after another, then the full ones.
    """
    member, within = 0, index
    if SHARED:
        masked = tile[7]
        full, rest = gl.maximum(tile[6] - masked, 1), index - masked * share
        member = gl.where(rest < 0, index // masked, rest // full)
        within = gl.where(rest < 0, index - member * masked, masked + rest - member * full)
    return member, step_at(within, tile)


@gluon.jit
def queries_of(index, tile, share, STEP: gl.constexpr, SHARED: gl.constexpr):
    """The first query of a step."""
    return tile[4] + member_step(index, tile, share, SHARED)[1] * STEP


@gluon.jit
def load(
    K, V, Q, G, Lse, Delta, Table, Header, buffers, barriers, numbers,
    STEP: gl.constexpr, STAGES: gl.constexpr, HAS_FULL: gl.constexpr, SHARED: gl.constexpr,
    CHUNKED: gl.constexpr, OUTER: gl.constexpr = 0, INNER: gl.constexpr = 0, BY_HEAD: gl.constexpr = False,
    LEAVES: gl.constexpr = 0,
):  # fmt: skip
    """The trade of the warp that loads."""
    k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, noted = buffers
    ready, free, q_ready, q_free, g_ready, g_free = barriers
    kv_heads, share, works, query_rows = numbers[0], numbers[1], numbers[6], numbers[7]
    done = 0  # steps of earlier turns
    HEIGHT: gl.constexpr = k_buffer.shape[0] // free.shape[0] * ROWS
    turns = turns_of(works)
    tile = keys_of(0, Table, Header, numbers, STEP, HAS_FULL, HEIGHT, CHUNKED, OUTER, INNER, BY_HEAD, LEAVES)
    load_tile((K, V), (k_buffer, v_buffer), noted, ready, free, 0, tile, OUTER)
    for turn in range(turns):
        tile = keys_of(
            turn, Table, Header, numbers, STEP, HAS_FULL, HEIGHT, CHUNKED, OUTER, INNER, BY_HEAD, LEAVES
        )
        for index in range(tile[6] * share):
            member, step = member_step(index, tile, share, SHARED)
            at, q_head = tile[4] + step * STEP, tile[1] * share + member
            base, row, stage = 0, at, (done + index) % STAGES
            if INNER > 0:  # the numbers of a class lie together
                base = tile[len(tile) - 3]
                row = at + base * (query_rows // tile[len(tile) - 2])
            place = corner(tile[0], q_head, at, base, INNER)
            row += (tile[0] * kv_heads * share + q_head) * query_rows
            load_step(Q, q_buffer, q_ready, q_free, done + index, place, STAGES, STEP * 4)
            tma.async_copy_global_to_shared(Lse, [row], q_ready.index(stage), lse_buffer.index(stage))
            load_step(G, g_buffer, g_ready, g_free, done + index, place, STAGES, STEP * 4)
            tma.async_copy_global_to_shared(Delta, [row], g_ready.index(stage), delta_buffer.index(stage))
            if (index == early_of(tile)) & (turn + 1 < turns):
                following = keys_of(
                    turn + 1, Table, Header, numbers, STEP, HAS_FULL, HEIGHT, CHUNKED, OUTER, INNER, BY_HEAD,
                    LEAVES,
                )  # fmt: skip
                load_tile((K, V), (k_buffer, v_buffer), noted, ready, free, turn + 1, following, OUTER)
        done += tile[6] * share


@gluon.jit
def compute(
    GROUP: gl.constexpr, RowsK, RowsV, SumK, SumV, FinalK, FinalV, OfRows, Header, Data, RowBounds,
    buffers, barriers, scale, k_strides, v_strides, numbers,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    SOME: gl.constexpr, SHARED: gl.constexpr, CHUNKED: gl.constexpr, GROUPS: gl.constexpr,
    OUTER: gl.constexpr = 0, INNER: gl.constexpr = 0, LEAVES: gl.constexpr = 0,
):  # fmt: skip
    """The trade of a group of warps: the gradients of its keys and values.

    A step begins the scores of the next, and the last one those of the next tile's first, so that a tile's
    beginning does not wait for them. Where rows of a group have no use for a step, it lets that pass: the
    first of two groups a tile's last one, the second its first. One of three groups has fewer registers: it
    waits for its product with values before it begins the others, and meanwhile other groups multiply.
    """
    VALUES_EARLY: gl.constexpr = GROUPS == 2  # whether values' gradients begin while slopes are made
    k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, noted = buffers
    ready, free, q_ready, q_free, g_ready, g_free = barriers
    kv_heads, share, rows, table_batch, works = numbers[0], numbers[1], numbers[2], numbers[4], numbers[6]
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, STEP, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DP, 16])
    OF_ROWS: gl.constexpr = gl.SliceLayout(1, S)
    OF_COLUMNS: gl.constexpr = gl.SliceLayout(0, S)
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, SUMS, 2)
    dtype: gl.constexpr = q_buffer.dtype
    MORE: gl.constexpr = CHUNKED + 2 * LEAVES + 3 * (OUTER + INNER > 0)
    sharpness = scale * LOG2E
    unscaled = gl.where(scale == 0.0, 0.0, 1.0 / gl.where(scale == 0.0, 1.0, scale))
    dk = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
    dv = gl.full([ROWS, DP], 0.0, gl.float32, SUMS)
    turns = turns_of(works)
    turn, done = 0, 0  # a tile, and the steps of those before it
    mbarrier.wait(ready.index(0), 0)
    opening = 0  # the first step that the group takes
    if LEAVES and GROUP == 1:
        opening = gl.minimum(steps_left_out(tile_noted(noted, 0, MORE), GROUP)[0], 1)
        let_pass(q_ready, q_free, 0, STAGES, opening > 0)
        let_pass(g_ready, g_free, 0, STAGES, opening > 0)
    arrived(q_ready, opening, STAGES)
    k = k_buffer.index(GROUP).reshape((ROWS, DP))
    s = warpgroup_mma_wait(0, deps=[product(k, q_buffer, opening, STEP, STAGES, DP, S)])
    while turn < turns:
        tile, held = tile_noted(noted, turn, MORE), (turn % TILES) * GROUPS + GROUP
        steps, masked = tile[6] * share, tile[7] * share
        first, left = 0, 0  # the first step of the group, and how many it leaves out at the end
        if LEAVES:
            own = steps_left_out(tile, GROUP)
            first, left = (0, gl.minimum(own[1], 1)) if GROUP == 0 else (gl.minimum(own[0], 1), 0)
        about = bounds_of(
            tile, table_batch, rows, Header, Data, RowBounds, BOUNDS, ROW_BOUNDS, GROUP, OF_ROWS,
            OWN, OUTER, INNER,
        )  # fmt: skip
        v = v_buffer.index(held).reshape((ROWS, DP))
        if CONTINUES:
            known = has_sums(OfRows, tile, GROUP, SUMS, SOME, OUTER)
            dv = begun(SumV, tile, known, kv_heads, rows, GROUP, DV, DP, SUMS, OUTER)
            dk = begun(SumK, tile, known, kv_heads, rows, GROUP, D, DP, SUMS, OUTER) * unscaled
        for FULL in gl.static_range(0, 1 + HAS_FULL):  # the steps with a mask, then those that need none
            begin, end = (masked, steps) if FULL else (first, masked - left)
            for index in range(begin, end):
                now, adds = done + index, CONTINUES or index > first
                stage = now % STAGES
                if not FULL:
                    at = queries_of(index, noted_again(noted, turn, MORE), share, STEP, SHARED)
                    kept = bits_of(at, about, S, STEP)
                arrived(g_ready, now, STAGES)
                dp_begun = product(v, g_buffer, now, STEP, STAGES, DP, S)
                lse = lse_buffer.index(stage).load(OF_COLUMNS) * LOG2E
                p = gl.exp2(s * sharpness - lse[None, :])
                if not FULL:
                    give_back(free, turn + 1, (index == first) & (turn > 0))
                    p = where_set(p, kept, OR_ZERO, S)
                    if PAIRS is not None:
                        p = where_pairs_kept(p, at, about, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
                if VALUES_EARLY:
                    weights = gl.convert_layout(p, WEIGHTS).to(dtype)
                    dv_begun = weighed(weights, g_buffer, now, dv, adds, STEP, STAGES, DP)
                dp, p = warpgroup_mma_wait(1 if VALUES_EARLY else 0, deps=[dp_begun, p])
                delta = delta_buffer.index(stage).load(OF_COLUMNS)
                ds = p * (dp - delta[None, :])
                if not FULL:
                    ds = where_set(ds, kept, OR_ZERO, S)
                    if PAIRS is not None:
                        ds = where_pairs_kept(ds, at, about, Header, Data, OR_ZERO, COLUMNS, PAIRS, S)
                if not VALUES_EARLY:
                    weights = gl.convert_layout(p, WEIGHTS).to(dtype)
                slopes = gl.convert_layout(ds, WEIGHTS).to(dtype)
                # beyond the last step the product is of old rows, and nobody reads it
                passed, ends = 0, index + 1 + left == steps
                following = turn + ends.to(gl.int32)
                arrived(ready, following, TILES, ends & (following < turns))
                if LEAVES and GROUP == 0:
                    passed = gl.where(ends, left, 0)
                elif LEAVES:
                    after = tile_noted(noted, gl.minimum(following, turns - 1), MORE)
                    begins = gl.minimum(steps_left_out(after, GROUP)[0], 1)
                    passed = gl.where(ends & (following < turns), begins, 0)
                if LEAVES:
                    let_pass(q_ready, q_free, now + 1, STAGES, passed > 0)
                    let_pass(g_ready, g_free, now + 1, STAGES, passed > 0)
                upcoming = now + 1 + passed
                arrived(q_ready, upcoming, STAGES, following < turns)
                k = k_buffer.index((following % TILES) * GROUPS + GROUP).reshape((ROWS, DP))
                if not VALUES_EARLY:
                    dv_begun = weighed(weights, g_buffer, now, dv, adds, STEP, STAGES, DP)
                s_begun = product(k, q_buffer, upcoming, STEP, STAGES, DP, S)
                dk_begun = weighed(slopes, q_buffer, now, dk, adds, STEP, STAGES, DP)
                dv, s = warpgroup_mma_wait(1, deps=[dv_begun, s_begun])
                mbarrier.arrive(g_free.index(stage), count=1)
                dk, s = warpgroup_mma_wait(0, deps=[dk_begun, s])
                mbarrier.arrive(q_free.index(stage), count=1)
        if CHUNKED:
            lay_share(SumK, dk * scale, tile, kv_heads, numbers[3], GROUP, D, DP, SUMS)
            lay_share(SumV, dv, tile, kv_heads, numbers[3], GROUP, DV, DP, SUMS)
        else:
            lay(
                FinalK, SumK, OfRows, dk * scale, k_buffer.index(held), tile, kv_heads, rows, k_strides,
                GROUP, D, DP, SUMS, False, ENDS, False, OUTER,
            )  # fmt: skip
            lay(
                FinalV, SumV, OfRows, dv, v_buffer.index(held), tile, kv_heads, rows, v_strides,
                GROUP, DV, DP, SUMS, False, ENDS, False, OUTER, 2,
            )  # fmt: skip
            send((RowsK, RowsV), (k_buffer, v_buffer), held, tile, GROUP, ENDS, OUTER)
        turn, done = turn + 1, done + steps
    tma.store_wait(0)


@gluon.jit
def rooms_of(
    K, V, Q, G, Lse, Delta, STEP: gl.constexpr, STAGES: gl.constexpr,
    CHUNKED: gl.constexpr, GROUPS: gl.constexpr, OUTER: gl.constexpr = 0, INNER: gl.constexpr = 0,
    LEAVES: gl.constexpr = 0,
):  # fmt: skip
    """Shared memory for tiles and steps, and the barriers of both."""
    k_buffer, v_buffer = room(K, TILES * GROUPS), room(V, TILES * GROUPS)
    q_buffer, g_buffer = room(Q, STAGES), room(G, STAGES)
    lse_buffer = gl.allocate_shared_memory(Lse.dtype, [STAGES, STEP], Lse.layout)
    delta_buffer = gl.allocate_shared_memory(Delta.dtype, [STAGES, STEP], Delta.layout)
    ready, free = barriers_of(TILES, 1), barriers_of(TILES, GROUPS)
    q_ready, g_ready = barriers_of(STAGES, 1), barriers_of(STAGES, 1)
    q_free, g_free = barriers_of(STAGES, GROUPS), barriers_of(STAGES, GROUPS)
    fence_async_shared()
    noted = notes(2, CHUNKED + 2 * LEAVES + 3 * (OUTER + INNER > 0))
    buffers = (k_buffer, v_buffer, q_buffer, g_buffer, lse_buffer, delta_buffer, noted)
    return buffers, (ready, free, q_ready, q_free, g_ready, g_free)


@gluon.jit(do_not_specialize=[*PLAIN, "heads", "share", "works", "query_rows"])
def attention_bwd_dkdv_hopper_kernel(
    K, V, Q, G, Lse, Delta, RowsK, RowsV, SumK, SumV, FinalK, FinalV, OfRows, Table, Header, Data, RowBounds,
    scale, k_batch, k_head, k_row, v_batch, v_head, v_row,
    heads, share, rows, tiles, table_batch, table_head, works, query_rows,
    BOUNDS: gl.constexpr, COLUMNS: gl.constexpr, PAIRS: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, D: gl.constexpr, DV: gl.constexpr, DP: gl.constexpr,
    HAS_FULL: gl.constexpr, ROW_BOUNDS: gl.constexpr, CONTINUES: gl.constexpr, ENDS: gl.constexpr,
    SOME: gl.constexpr, SHARED: gl.constexpr, CHUNKED: gl.constexpr,
    OUTER: gl.constexpr, INNER: gl.constexpr, BY_HEAD: gl.constexpr, LEAVES: gl.constexpr,
):  # fmt: skip
    """The gradients of tiles of keys and values; all query heads that share them are taken in turn.

    CHUNKED, tiles are chunks of others (chunks.py), whose sums have places of their own. If so many groups
    LEAVE out steps, the table says which (skippable_steps.py). OUTER and INNER are the orders of keys and
    queries (orders.py).
    """
    buffers, barriers = rooms_of(K, V, Q, G, Lse, Delta, STEP, STAGES, CHUNKED, GROUPS, OUTER, INNER, LEAVES)
    k_strides, v_strides = (k_batch, k_head, k_row), (v_batch, v_head, v_row)
    numbers = (heads, share, rows, tiles, table_batch, table_head, works, query_rows)
    gl.warp_specialize(
        [
            (compute, (
                0, RowsK, RowsV, SumK, SumV, FinalK, FinalV, OfRows, Header, Data, RowBounds,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                SOME, SHARED, CHUNKED, GROUPS, OUTER, INNER, LEAVES,
            )),
            (compute, (
                1, RowsK, RowsV, SumK, SumV, FinalK, FinalV, OfRows, Header, Data, RowBounds,
                buffers, barriers, scale, k_strides, v_strides, numbers,
                BOUNDS, COLUMNS, PAIRS, STEP, STAGES, D, DV, DP, HAS_FULL, ROW_BOUNDS, CONTINUES, ENDS,
                SOME, SHARED, CHUNKED, GROUPS, OUTER, INNER, LEAVES,
            )),
            (load, (
                K, V, Q, G, Lse, Delta, Table, Header, buffers, barriers, numbers,
                STEP, STAGES, HAS_FULL, SHARED, CHUNKED, OUTER, INNER, BY_HEAD, LEAVES,
            )),
        ],
        [4, 1],
        [REGISTERS, LOADER],
    )  # fmt: skip
