"""Which shape each kernel takes for a part: exact counts of its steps, times what a step costs.

The costs were measured on an H200 (Triton 3.6, benchmarks/calibrate_gpu.py) and are nanoseconds for the
whole chip: for a program to begin and end, for a step with a mask, and for a step with none. Counts and costs
together gave the times they were fitted to within 30%, most within 10%, so nothing is tried out when it
runs. Those of Hopper's kernels were fitted to rows of benchmarks/hopper_gpu.py. Lists of blocks were not
measured: they are given the costs of rows that follow each other where a step lies within a block, and else
those of rows that lie apart; no time is predicted from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np
import torch

from lattend.attend.kernels.triton.tables import in_order
from lattend.plans.part import Part
from lattend.plans.plan import Plan
from lattend.plans.tiles import Tiles


@dataclass(frozen=True)
class TileShape:
    """How a kernel cuts its work, and how the compiler is to lay it out."""

    outer: tuple[int, ...]  # the box of outer slots of one program
    step: int  # inner slots in a step
    warps: int = 4
    stages: int = 2  # steps in flight
    tma: bool = False  # copy inner rows that follow each other by TMA
    split: bool = False  # a loop of its own, with no mask, for the steps of full tiles
    registers: int | None = None  # at most so many for a thread, so that more programs fit beside each other
    hopper: bool = False  # of the warp-specialized kernels (hopper/)

    @property
    def rows(self) -> int:
        return prod(self.outer)


@dataclass(frozen=True)
class ShapeCost:
    """Nanoseconds for a program, for a step with a mask, and for a step without."""

    shape: TileShape
    program: float
    masked: float
    full: float = 0.0
    measured: bool = True


def _line(rows: int, step: int, warps: int, stages: int, split: bool, registers: int | None) -> TileShape:
    return TileShape((rows,), step, warps, stages, True, split, registers)


def _apart(rows: int, step: int, warps: int, stages: int, split: bool, registers: int | None) -> TileShape:
    return TileShape((rows,), step, warps, stages, False, split, registers)


def _hopper(step: int, stages: int) -> TileShape:
    return TileShape((128,), step, 12, stages, True, True, hopper=True)


# kernel, head dimension at most, on a line
_LINES: dict[tuple[str, int], tuple[ShapeCost, ...]] = {
    ("forward", 64): (
        ShapeCost(_line(64, 32, 4, 3, False, None), 5.71, 1.62),
        ShapeCost(_line(64, 64, 4, 3, True, None), 10.3, 2.39, 2.39),
        ShapeCost(_line(128, 64, 8, 3, True, None), 18.4, 5.82, 4.88),
    ),
    ("forward", 128): (
        ShapeCost(_line(64, 32, 4, 2, False, None), 11.4, 2.38),
        ShapeCost(_line(64, 64, 4, 3, True, None), 18.4, 3.87, 3.87),
        ShapeCost(_line(128, 64, 8, 2, True, 128), 35.7, 8.29, 7.67),
    ),
    ("forward", 256): (ShapeCost(_line(64, 32, 8, 2, True, None), 43.3, 11.6, 11.6),),
    ("backward_dq", 64): (
        ShapeCost(_line(64, 32, 4, 3, False, None), 7.58, 1.48),
        ShapeCost(_line(64, 32, 4, 3, True, None), 9.4, 1.26, 1.26),
        ShapeCost(_line(64, 64, 4, 2, True, None), 11.8, 2.33, 2.33),
    ),
    ("backward_dq", 128): (
        ShapeCost(_line(64, 32, 4, 2, False, None), 17.8, 2.91),
        ShapeCost(_line(64, 32, 4, 2, True, None), 18.4, 2.65, 2.65),
        ShapeCost(_line(64, 64, 4, 2, True, None), 20.8, 4.58, 4.58),
        ShapeCost(_line(128, 64, 8, 3, True, None), 51.1, 9.34, 8.89),
    ),
    ("backward_dq", 256): (ShapeCost(_line(64, 32, 8, 2, True, None), 52.0, 15.8, 15.8),),
    ("backward_dkdv", 64): (
        ShapeCost(_line(64, 32, 4, 3, False, None), 13.4, 3.96),
        ShapeCost(_line(64, 32, 4, 3, True, None), 20.2, 2.73, 2.73),
        ShapeCost(_line(64, 64, 4, 2, True, None), 18.4, 4.87, 4.87),
    ),
    ("backward_dkdv", 128): (
        ShapeCost(_line(64, 32, 4, 3, False, None), 21.2, 5.29),
        ShapeCost(_line(64, 32, 4, 3, True, None), 26.7, 4.18, 4.18),
        ShapeCost(_line(64, 64, 4, 2, True, None), 36.3, 7.24, 7.24),
    ),
    ("backward_dkdv", 256): (ShapeCost(_line(64, 32, 8, 1, True, None), 76.6, 37.0, 37.0),),
}

# the same of the kernels for Hopper (hopper/), which take some calls
_HOPPER: dict[tuple[str, int], ShapeCost] = {
    ("forward", 64): ShapeCost(_hopper(128, 3), 22.0, 13.0, 9.8),
    ("forward", 128): ShapeCost(_hopper(128, 2), 29.0, 12.0, 11.5),
    ("backward_dq", 128): ShapeCost(_hopper(64, 3), 38.0, 7.8, 7.75),
    ("backward_dkdv", 64): ShapeCost(_hopper(64, 4), 13.0, 8.6, 7.0),
    ("backward_dkdv", 128): ShapeCost(_hopper(64, 3), 20.0, 11.0, 10.6),
}

# the same of the kernel for Hopper that makes all gradients, by whether its tiles add to the queries' one in
# order, and nanoseconds for a row of what comes before and after it
FUSED_SHAPE = _hopper(64, 2)
_FUSED = {
    False: ShapeCost(FUSED_SHAPE, 40.0, 17.5, 17.0),
    True: ShapeCost(FUSED_SHAPE, 40.0, 21.0, 20.5),
}
FUSED_ROW = 0.42

# the same where inner rows lie apart, every l-th or c out of l, and cannot be copied by TMA
_APART: dict[tuple[str, int], tuple[ShapeCost, ...]] = {
    ("forward", 64): (
        ShapeCost(_apart(64, 32, 4, 3, False, None), 3.85, 2.36),
        ShapeCost(_apart(64, 64, 4, 3, True, None), 11.5, 2.55, 2.55),
        ShapeCost(_apart(128, 64, 8, 3, True, None), 31.9, 6.75, 6.05),
    ),
    ("forward", 128): (
        ShapeCost(_apart(64, 32, 4, 2, False, None), 15.2, 3.64),
        ShapeCost(_apart(64, 64, 4, 3, True, None), 20.7, 4.9, 4.9),
        ShapeCost(_apart(128, 64, 8, 2, True, 128), 35.3, 9.36, 8.3),
    ),
    ("forward", 256): (ShapeCost(_apart(64, 32, 8, 2, True, None), 40.9, 12.0, 12.0),),
    ("backward_dq", 64): (
        ShapeCost(_apart(64, 32, 4, 3, False, None), 6.28, 2.1),
        ShapeCost(_apart(64, 32, 4, 3, True, None), 10.4, 1.44, 1.44),
        ShapeCost(_apart(64, 64, 4, 2, True, None), 12.1, 2.9, 2.9),
    ),
    ("backward_dq", 128): (
        ShapeCost(_apart(64, 32, 4, 2, False, None), 15.1, 5.14),
        ShapeCost(_apart(64, 32, 4, 2, True, None), 24.1, 3.42, 3.23),
        ShapeCost(_apart(64, 64, 4, 2, True, None), 23.3, 5.62, 5.62),
        ShapeCost(_apart(128, 64, 8, 3, True, None), 60.0, 9.34, 9.16),
    ),
    ("backward_dq", 256): (ShapeCost(_apart(64, 32, 8, 2, True, None), 48.5, 16.7, 16.7),),
    ("backward_dkdv", 64): (
        ShapeCost(_apart(64, 32, 4, 3, False, None), 12.6, 4.08),
        ShapeCost(_apart(64, 32, 4, 3, True, None), 19.9, 2.73, 2.62),
        ShapeCost(_apart(64, 64, 4, 2, True, None), 21.0, 4.92, 4.92),
    ),
    ("backward_dkdv", 128): (
        ShapeCost(_apart(64, 32, 4, 3, False, None), 26.7, 6.03),
        ShapeCost(_apart(64, 32, 4, 3, True, None), 34.5, 4.26, 4.26),
        ShapeCost(_apart(64, 64, 4, 2, True, None), 40.0, 9.75, 9.75),
    ),
    ("backward_dkdv", 256): (ShapeCost(_apart(64, 32, 8, 1, True, None), 80.2, 31.5, 31.5),),
}

# the same on images and volumes: boxes of 64 rows, every step with a mask
_BOXES: dict[tuple[str, int], ShapeCost] = {
    ("forward", 64): ShapeCost(TileShape((8, 8), 32, 4, 2), 9.0, 2.63),
    ("forward", 128): ShapeCost(TileShape((8, 8), 32, 4, 2, registers=128), 15.1, 3.79),
    ("forward", 256): ShapeCost(TileShape((8, 8), 32, 8, 2), 45.2, 15.1),
    ("backward_dq", 64): ShapeCost(TileShape((8, 8), 32, 4, 2), 10.8, 2.44),
    ("backward_dq", 128): ShapeCost(TileShape((8, 8), 32, 4, 2), 23.2, 3.91),
    ("backward_dq", 256): ShapeCost(TileShape((8, 8), 32, 8, 2), 54.7, 20.3),
    ("backward_dkdv", 64): ShapeCost(TileShape((8, 8), 32, 4, 2), 14.4, 5.66),
    ("backward_dkdv", 128): ShapeCost(TileShape((8, 8), 32, 4, 2), 27.4, 7.53),
    ("backward_dkdv", 256): ShapeCost(TileShape((8, 8), 32, 8, 1), 67.9, 28.4),
}

# float32 as three products in TF32, which hold factors twice, so that tiles are small: a program and a step
# with and without a mask, on a line where rows follow each other, on one where they lie apart, and on
# images. The last are within 40%, and guesses for the backward at 256
_Costs = tuple[float, float, float]
_EXACT: dict[tuple[str, int], tuple[_Costs, _Costs, _Costs]] = {
    ("forward", 64): ((7.59, 7.84, 7.84), (13.3, 8.39, 8.39), (20.3, 10.5, 0.0)),
    ("forward", 128): ((14.2, 18.0, 13.4), (28.9, 14.4, 14.4), (37.3, 18.0, 0.0)),
    ("forward", 256): ((19.1, 13.1, 13.1), (25.8, 13.7, 13.7), (30.2, 16.6, 0.0)),
    ("backward_dq", 64): ((15.2, 9.04, 9.04), (17.5, 9.9, 9.9), (24.6, 13.5, 0.0)),
    ("backward_dq", 128): ((30.6, 19.2, 19.2), (33.9, 24.6, 24.6), (45.8, 29.2, 0.0)),
    ("backward_dq", 256): ((27.2, 20.5, 20.5), (32.1, 23.1, 23.1), (43.0, 28.0, 0.0)),
    ("backward_dkdv", 64): ((13.5, 14.2, 14.2), (16.4, 14.2, 13.3), (27.4, 20.2, 0.0)),
    ("backward_dkdv", 128): ((34.6, 38.9, 32.7), (48.4, 37.2, 37.2), (65.3, 41.6, 0.0)),
    ("backward_dkdv", 256): ((51.4, 32.0, 32.0), (40.1, 49.1, 37.3), (70.0, 48.0, 0.0)),
}
_EXACT_OUTER = {
    64: {1: ((32,),), 2: ((4, 8), (1, 32), (32, 1)), 3: ((2, 4, 4), (1, 1, 32), (32, 1, 1))},
    128: {1: ((32,),), 2: ((4, 8), (1, 32), (32, 1)), 3: ((2, 4, 4), (1, 1, 32), (32, 1, 1))},
    256: {1: ((16,),), 2: ((4, 4), (1, 16), (16, 1)), 3: ((2, 2, 4), (1, 1, 16), (16, 1, 1))},
}
_OUTER = {2: ((8, 8), (4, 16), (1, 64), (64, 1)), 3: ((4, 4, 4), (1, 8, 8), (1, 1, 64), (64, 1, 1))}
# head dimensions above 256, with guessed costs: few rows, so that sums fit the registers and factors the
# shared memory, and no TMA, which copies 256 numbers of a row at most
_LARGE = {"forward": (64, 120.0, 48.0), "backward_dq": (32, 150.0, 64.0), "backward_dkdv": (32, 230.0, 130.0)}
_LARGE_OUTER = {
    64: {1: ((64,),), **_OUTER},
    32: {1: ((32,),), 2: ((4, 8), (1, 32), (32, 1)), 3: ((2, 4, 4), (1, 1, 32), (32, 1, 1))},
}
LEAST_ROWS = 16  # of a product of matrices


def padded(size: int) -> int:
    """The next power of two, at least 16."""
    return max(LEAST_ROWS, 1 << (size - 1).bit_length())


@dataclass(frozen=True)
class Choice:
    """A shape and the nanoseconds that are expected of it, for one head of one batch element."""

    shape: TileShape
    nanoseconds: float
    measured: bool


def choose(
    plan: Plan, place: int, kernel: str, head_dim: int, dtype: torch.dtype, *, hopper: bool = False
) -> Choice:
    """The shape with the least expected time for one part; `kernel` is forward, backward_dq or backward_dkdv.

    `hopper` says whether the call may take the kernels for Hopper.
    """
    part = (plan.transposed if kernel == "backward_dkdv" else plan.parts)[place]
    best: Choice | None = None
    for cost in _for_part(part, kernel, head_dim, dtype, hopper):
        table = plan.tiles(place, cost.shape.outer, transposed=kernel == "backward_dkdv")
        expected = _expected(cost, table, part)
        if best is None or expected < best.nanoseconds:
            best = Choice(cost.shape, expected, cost.measured)
    if best is None:
        raise ValueError(f"no shape for {kernel} at head dimension {head_dim}")
    return best


def fused_cost(plan: Plan, place: int, *, ordered: bool) -> Choice:
    """The shape and time of the kernel that makes all gradients, for one part of keys."""
    cost = _FUSED[ordered]
    table = plan.tiles(place, cost.shape.outer, transposed=True)
    return Choice(cost.shape, _expected(cost, table, plan.transposed[place]), cost.measured)


def apart(part: Part) -> bool:
    """Whether the inner rows of a part on a line do not follow each other."""
    return len(part.axes) == 1 and (part.axes[0].inner_order.period > 1 or part.block_table is not None)


@lru_cache(maxsize=64)
def candidates(
    kernel: str, head_dim: int, axes: int, dtype: torch.dtype, apart: bool
) -> tuple[ShapeCost, ...]:
    """The shapes a kernel may take; `apart` where inner rows do not follow each other."""
    if head_dim > 256:
        return _large(kernel, axes, dtype)
    size = next(limit for limit in (64, 128, 256) if head_dim <= limit)
    if dtype == torch.float32:
        costs = _EXACT[kernel, size][2 if axes > 1 else int(apart)]
        line, step = axes == 1, 32 if size < 256 else 16
        return tuple(
            ShapeCost(TileShape(outer, step, 4, 2, tma=line and not apart, split=line), *costs)
            for outer in _EXACT_OUTER[size][axes]
        )
    if axes == 1:
        return (_APART if apart else _LINES)[kernel, size]
    cost = _BOXES[kernel, size]
    return tuple(replace(cost, shape=replace(cost.shape, outer=outer)) for outer in _OUTER[axes])


def on_hopper(kernel: str, head_dim: int, dtype: torch.dtype) -> Iterator[ShapeCost]:
    """The shapes of the kernels for Hopper, for parts whose positions follow each other."""
    cost = _HOPPER.get((kernel, padded(head_dim)))
    if cost is not None and dtype != torch.float32:
        yield cost


def _large(kernel: str, axes: int, dtype: torch.dtype) -> tuple[ShapeCost, ...]:
    """The shapes for head dimensions above 256."""
    rows, program, step = _LARGE[kernel]
    if dtype == torch.float32:
        return tuple(
            ShapeCost(TileShape(outer, 16, 8, 1), 4 * program, 4 * step, measured=False)
            for outer in _EXACT_OUTER[256][axes]
        )
    return tuple(
        ShapeCost(TileShape(outer, 32, 8, 1), program, step, measured=False)
        for outer in _LARGE_OUTER[rows][axes]
    )


def _for_part(
    part: Part, kernel: str, head_dim: int, dtype: torch.dtype, hopper: bool
) -> Iterator[ShapeCost]:
    """The shapes a kernel may take for a part.

    Where blocks are listed, a tile is within one of them. If its steps are too, their inner rows follow each
    other: such shapes are taken before others.
    """
    block, axes = part.block_table, len(part.axes)
    if block is None:
        yield from candidates(kernel, head_dim, axes, dtype, apart(part))
        if hopper and in_order(part):
            yield from on_hopper(kernel, head_dim, dtype)
        return
    lines = candidates(kernel, head_dim, axes, dtype, False)
    whole = [cost for cost in lines if block.inner % cost.shape.step == 0]
    for cost in whole or candidates(kernel, head_dim, axes, dtype, True):
        rows = min(cost.shape.rows, max(LEAST_ROWS, 1 << (block.outer - 1).bit_length()))
        yield replace(cost, shape=replace(cost.shape, outer=(rows,)), measured=False)


def _expected(cost: ShapeCost, table: Tiles, part: Part) -> float:
    masked, full = steps(table, part, cost.shape)
    return cost.program * table.table.shape[1] + cost.masked * masked + cost.full * full


def steps(table: Tiles, part: Part, shape: TileShape) -> tuple[float, float]:
    """How many steps with and without a mask one head takes, on average."""
    heads = len(table.table)
    every = float((-(-table.inner // shape.step)).sum()) / heads
    if not (shape.split and part.knows_full):
        return every, 0.0
    begin = table.column("inner_first").astype(np.int64)
    first = -(-(table.column("full_first") - begin) // shape.step)
    end = (table.column("full_end") - begin) // shape.step
    full = float(np.maximum(0, end - first).sum()) / heads
    return every - full, full
