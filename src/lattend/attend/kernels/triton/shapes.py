"""Which shape each kernel takes for a part: counts of its steps, times what each costs (tile_costs.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np
import torch
from torch import Tensor

from lattend.attend.kernels.tolerance import uses_tf32
from lattend.plans.part import Part
from lattend.plans.plan import Plan
from lattend.plans.tables.adjacency import in_boxes, in_order
from lattend.plans.tables.chunks import most_queries
from lattend.plans.tables.fused_parts import joined_parts
from lattend.plans.tables.image_tables import image_table, steps_loaded, steps_met
from lattend.plans.tables.part_passes import sequence
from lattend.plans.tables.skippable_steps import leaving, left_out
from lattend.plans.tables.tile_costs import (
    APART,
    BOXES,
    EXACT,
    EXACT_OUTER,
    FP8,
    HOPPER,
    HOPPER_BOXES,
    HOPPER_CUTS,
    INNER,
    LARGE,
    LARGE_OUTER,
    LEAST_ROWS,
    LINES,
    OUTER,
    TF32,
    TMA_BOXES,
    Choice,
    ShapeCost,
    TileShape,
)
from lattend.plans.tiles import Tiles

# Keys of all kv heads whose tiles leave the chip idle, and queries of all heads that meet one of these tiles
# from which on it takes long in float32
FEW_KEYS, MANY_ROWS = 128 * 64, 2048


def padded(size: int) -> int:
    """The next power of two, at least 16."""
    return max(LEAST_ROWS, 1 << (size - 1).bit_length())


def choose(
    plan: Plan, place: int, kernel: str, head_dim: int, dtype: torch.dtype, *, hopper: bool = False,
    tma: bool = True, shared: bool = False,
) -> Choice:  # fmt: skip
    """The shape with the least expected time for one part; `kernel` is forward, backward_dq or backward_dkdv.

    `hopper` says whether the call may take the kernels for Hopper, `tma` whether TMA can copy its rows, and
    `shared` whether heads share keys: then no group of warps skips steps of queries (skippable_steps.py).
    """
    parts = plan.transposed if kernel == "backward_dkdv" else plan.parts
    part, best, least = parts[place], None, float("inf")
    hopper = hopper and (len(part.axes) == 1 or len(parts) == 1)  # on images it adds to no sums
    goes_on = any(turn.continues for turn in sequence(parts)[0] if turn.place == place)
    for cost in _for_part(part, kernel, head_dim, dtype, hopper, tma):
        table = plan.tiles(place, cost.shape.outer, transposed=kernel == "backward_dkdv")
        programs = table.table.shape[1]
        if cost.shape.strips:
            found = image_table(plan, place, *cost.shape.cut, transposed=kernel == "backward_dkdv")
            masked, full = (float(x(found).sum()) / len(found) for x in (steps_met, steps_loaded))
        else:
            masked, full = steps(table, part, cost.shape)
        groups, left = None, 0.0
        if not (shared and kernel == "backward_dkdv"):
            groups = leaving(plan, place, part, kernel, cost.shape)
        if groups is not None:
            left = (masked + full) * left_out(groups.table, cost.shape.step, kernel)
            masked, full = masked + full - left, 0.0
        expected = cost.program * programs + cost.masked * masked + cost.full * full
        compared = expected + cost.sums * programs * goes_on
        if compared < least:
            best = Choice(cost.shape, expected, cost.measured, cost.masked, left, cost.sums)
            least = compared
    if best is None:
        raise ValueError(f"no shape for {kernel} at head dimension {head_dim}")
    return best


def apart(part: Part) -> bool:
    """Whether the inner rows of a part on a line do not follow each other, or any rows on an image."""
    if len(part.axes) == 1:
        return part.axes[0].inner_order.period > 1 or part.block_table is not None
    orders = [order for axis in part.axes for order in (axis.outer_order, axis.inner_order)]
    return len(part.axes) > 2 or any(order.period > 1 for order in orders)


def boxed(part: Part, shape: TileShape) -> bool:
    """Whether steps are boxes of an image."""
    return shape.tma and bool(shape.inner) and not apart(part)


@lru_cache(maxsize=64)
def candidates(
    kernel: str, head_dim: int, axes: int, dtype: torch.dtype, apart: bool, tf32: bool = False
) -> tuple[ShapeCost, ...]:
    """The shapes a kernel may take; `apart` where inner rows do not follow each other.

    `tf32` says whether float32 products may be rounded to TF32.
    """
    if head_dim > 256:
        return _large(kernel, axes, dtype)
    size = next(limit for limit in (64, 128, 256) if head_dim <= limit)
    if dtype == torch.float32 and tf32 and axes == 1 and not apart and (kernel, size) in TF32:
        return TF32[kernel, size]
    if dtype == torch.float32:
        costs = EXACT[kernel, size][2 if axes > 1 else int(apart)]
        line, step = axes == 1, 32 if size < 256 else 16
        return tuple(
            ShapeCost(TileShape(outer, step, 4, 2, tma=line and not apart, split=line), *costs)
            for outer in EXACT_OUTER[size][axes]
        )
    if axes == 1:
        return (APART if apart else LINES)[kernel, size]
    cost = BOXES[kernel, size]
    slots = tuple(replace(cost, shape=replace(cost.shape, outer=outer)) for outer in OUTER[axes])
    boxes = None if apart else TMA_BOXES.get((kernel, size))
    if boxes is None:
        return slots
    return slots + tuple(_cut(boxes, *cut) for cut in product((*OUTER[axes], (16, 4)), INNER))


def _cut(cost: ShapeCost, outer: tuple[int, ...], inner: tuple[int, ...]) -> ShapeCost:
    return replace(cost, shape=replace(cost.shape, outer=outer, inner=inner))


def on_hopper(kernel: str, head_dim: int, dtype: torch.dtype) -> Iterator[ShapeCost]:
    """The shapes of the kernels for Hopper, for parts whose positions follow each other, or lie in boxes."""
    if dtype == torch.float8_e4m3fn:
        yield from FP8.get((kernel, padded(head_dim)), ())
    elif dtype != torch.float32:
        yield from HOPPER.get((kernel, padded(head_dim)), ())


def images_on_hopper(kernel: str, head_dim: int, dtype: torch.dtype) -> Iterator[ShapeCost]:
    """The same for images, for parts whose bounds say which pairs are attended."""
    size = padded(head_dim)
    cost = HOPPER_BOXES.get((kernel, size))
    if cost is not None and dtype != torch.float32:
        for cut in HOPPER_CUTS:
            yield _cut(cost, *cut)


def _large(kernel: str, axes: int, dtype: torch.dtype) -> tuple[ShapeCost, ...]:
    """The shapes for head dimensions above 256."""
    rows, program, step = LARGE[kernel]
    if dtype == torch.float32:
        return tuple(
            ShapeCost(TileShape(outer, 16, 8, 1), 4 * program, 4 * step, measured=False)
            for outer in EXACT_OUTER[256][axes]
        )
    return tuple(
        ShapeCost(TileShape(outer, 32, 8, 1), program, step, measured=False)
        for outer in LARGE_OUTER[rows][axes]
    )


def _for_part(
    part: Part, kernel: str, head_dim: int, dtype: torch.dtype, hopper: bool, tma: bool
) -> Iterator[ShapeCost]:
    """The shapes a kernel may take for a part.

    Where blocks are listed, a tile is within one of them. If its steps are too, their inner rows follow each
    other: such shapes are taken before others.
    """
    block, axes = part.block_table, len(part.axes)
    if dtype == torch.float8_e4m3fn:
        yield from on_hopper(kernel, head_dim, dtype)
        return
    if block is None:
        scattered = apart(part) or (axes > 1 and not tma)
        yield from candidates(kernel, head_dim, axes, dtype, scattered, hopper and uses_tf32())
        if hopper and in_order(part):
            yield from on_hopper(kernel, head_dim, dtype)
        elif hopper and in_boxes(part, kernel):
            group = part.axes[0].inner_order.group  # steps have whole ones
            for cost in on_hopper(kernel, head_dim, dtype):
                if cost.shape.several:
                    yield replace(cost, shape=replace(cost.shape, aligned=group))
        if hopper and axes > 1 and not apart(part) and part.exact and not part.data:
            yield from images_on_hopper(kernel, head_dim, dtype)
        return
    lines = candidates(kernel, head_dim, axes, dtype, False)
    whole = [cost for cost in lines if block.inner % cost.shape.step == 0]
    for cost in whole or candidates(kernel, head_dim, axes, dtype, True):
        rows = min(cost.shape.rows, max(LEAST_ROWS, 1 << (block.outer - 1).bit_length()))
        yield replace(cost, shape=replace(cost.shape, outer=(rows,)), measured=False)


def steps(table: Tiles, part: Part, shape: TileShape) -> tuple[float, float]:
    """How many steps with and without a mask one head takes, on average."""
    heads = len(table.table)
    if boxed(part, shape):
        sides = [table.column("inner_end", axis) - table.column("inner_first", axis) for axis in range(2)]
        lines, across = (-(-side // size) for side, size in zip(sides, shape.inner, strict=True))
        return float((lines.astype(np.int64) * across).sum()) / heads, 0.0
    begin = table.column("inner_first").astype(np.int64)
    base = table.column("inner_base") if part.axes[0].inner_order.period == 1 else 0
    more = (base + begin) % shape.aligned * (table.inner > 0)
    every = float((-(-(table.inner + more) // shape.step)).sum()) / heads
    if not (shape.split and part.knows_full):
        return every, 0.0
    begin -= more
    first = -(-(table.column("full_first") - begin) // shape.step)
    end = (table.column("full_end") - begin) // shape.step
    full = float(np.maximum(0, end - first).sum()) / heads
    return every - full, full


@dataclass(frozen=True)
class Arranged:
    """What a kernel chooses for each part of a plan, and which parts join others: at the others' places."""

    choices: tuple[Choice, ...]
    joined: dict[int, int]


def arranged(
    plan: Plan, kernel: str, head_dim: int, dtype: torch.dtype, *, hopper: Sequence[bool], tma: bool = True
) -> Arranged:
    """The choices for parts of queries; a part that joins has the other's shape, and all its steps masks.

    `hopper` says of each part whether the kernels for Hopper may take it.
    """
    made = [
        choose(plan, place, kernel, head_dim, dtype, hopper=may, tma=tma) for place, may in enumerate(hopper)
    ]
    joined = joined_parts(plan, lambda place: made[place].shape)
    for place, guest in joined.items():
        host = made[place]
        masked, full = steps(plan.tiles(guest, host.shape.outer), plan.parts[guest], host.shape)
        made[guest] = Choice(host.shape, (masked + full) * host.masked, host.measured, host.masked)
        whole = host.nanoseconds + host.left * host.masked  # no step is left out where another part joins
        made[place] = replace(host, nanoseconds=whole, left=0.0)
    return Arranged(tuple(made), joined)


def heads_apart(plan: Plan, q: Tensor, k: Tensor) -> bool:
    """Whether heads that share keys have gradients of these of their own first: few keys, many queries.

    >>> from lattend import rules
    >>> from lattend.plans.plan import plan
    >>> q, k = (torch.empty(1, heads, 4096, 64, device="meta") for heads in (8, 1))
    >>> heads_apart(plan(rules.causal(), n=4096), q, k), heads_apart(plan(rules.strided(t=9), n=4096), q, k)
    (True, False)
    """
    share = q.shape[1] // max(1, k.shape[1])
    many = MANY_ROWS if q.dtype == torch.float32 else 4 * MANY_ROWS
    return share > 1 and k.shape[:3].numel() < FEW_KEYS and share * most_queries(plan) >= many
