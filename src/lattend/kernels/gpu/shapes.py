"""Which shape each kernel takes for a part: exact counts of its steps, times what a step costs.

The costs were measured on an H200 (bfloat16, Triton 3.6) and are nanoseconds for the whole chip: for a
program to begin and end, for a step with a mask, and for a step with none. Counts and costs together
gave the times they were fitted to within 15%, so nothing is tried out when attention runs. Heads over 128,
float32 and lists of blocks were not measured: their costs are guesses, and no time is foretold from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np
import torch

from lattend.plans.part import Part
from lattend.plans.plan import Plan
from lattend.plans.tiles import Tiles


@dataclass(frozen=True)
class Shape:
    """How a kernel cuts its work, and how the compiler is to lay it out."""

    outer: tuple[int, ...]  # the box of outer slots of one program
    step: int  # inner slots in a step
    warps: int = 4
    stages: int = 2  # steps in flight
    bulk: bool = False  # copy inner rows that follow each other in bulk
    split: bool = False  # a loop of its own, with no mask, for the steps of full tiles
    registers: int | None = None  # at most so many for a thread, so that more programs fit beside each other

    @property
    def rows(self) -> int:
        return prod(self.outer)


@dataclass(frozen=True)
class Cost:
    """Nanoseconds for a program, for a step with a mask, and for a step without."""

    shape: Shape
    program: float
    masked: float
    full: float = 0.0
    measured: bool = True


def _line(rows: int, step: int, warps: int, stages: int, split: bool, registers: int | None) -> Shape:
    return Shape((rows,), step, warps, stages, True, split, registers)


# kernel, head size at most, on a line
_LINES: dict[tuple[str, int], tuple[Cost, ...]] = {
    ("forward", 64): (
        Cost(_line(64, 32, 4, 3, False, None), 6.3, 1.79),
        Cost(_line(64, 64, 4, 3, True, None), 11.9, 2.27, 2.34),
        Cost(_line(128, 64, 8, 3, True, None), 21.1, 6.46, 4.91),
    ),
    ("forward", 128): (
        Cost(_line(64, 32, 4, 2, False, None), 12.5, 2.49),
        Cost(_line(64, 64, 4, 3, True, None), 22.4, 3.02, 3.86),
        Cost(_line(128, 64, 8, 2, True, 128), 35.3, 9.91, 7.86),
    ),
    ("forward", 256): (Cost(_line(64, 32, 8, 2, True, None), 40.0, 10.0, 8.0, measured=False),),
    ("queries", 64): (
        Cost(_line(64, 32, 4, 3, False, None), 6.6, 1.64),
        Cost(_line(64, 32, 4, 3, True, None), 9.6, 0.78, 1.30),
        Cost(_line(64, 64, 4, 2, True, None), 10.4, 2.93, 2.37),
    ),
    ("queries", 128): (
        Cost(_line(64, 32, 4, 2, False, None), 15.4, 3.03),
        Cost(_line(64, 32, 4, 2, True, None), 20.0, 1.62, 2.69),
        Cost(_line(64, 64, 4, 2, True, None), 23.9, 1.98, 4.81),
        Cost(_line(128, 64, 8, 3, True, None), 49.9, 10.80, 9.02),
    ),
    ("queries", 256): (Cost(_line(64, 32, 8, 2, True, None), 50.0, 12.0, 10.0, measured=False),),
    ("keys", 64): (
        Cost(_line(64, 32, 4, 3, False, None), 12.2, 4.50),
        Cost(_line(64, 32, 4, 3, True, None), 16.6, 3.71, 2.68),
        Cost(_line(64, 64, 4, 2, True, None), 17.5, 6.02, 4.77),
    ),
    ("keys", 128): (
        Cost(_line(64, 32, 4, 3, False, None), 22.4, 5.42),
        Cost(_line(64, 32, 4, 3, True, None), 28.0, 4.23, 4.02),
        Cost(_line(64, 64, 4, 2, True, None), 33.4, 7.43, 7.23),
    ),
    ("keys", 256): (Cost(_line(64, 32, 8, 1, True, None), 70.0, 20.0, 18.0, measured=False),),
}

# the same on images and volumes: boxes of 64 rows, every step with a mask
_BOXES: dict[tuple[str, int], Cost] = {
    ("forward", 64): Cost(Shape((8, 8), 32, 4, 2), 7.2, 3.02),
    ("forward", 128): Cost(Shape((8, 8), 32, 4, 2, registers=128), 14.5, 3.37),
    ("forward", 256): Cost(Shape((8, 8), 32, 8, 2), 40.0, 10.0, measured=False),
    ("queries", 64): Cost(Shape((8, 8), 32, 4, 2), 7.2, 2.85),
    ("queries", 128): Cost(Shape((8, 8), 32, 4, 2), 21.0, 3.58),
    ("queries", 256): Cost(Shape((8, 8), 32, 8, 2), 50.0, 12.0, measured=False),
    ("keys", 64): Cost(Shape((8, 8), 32, 4, 2), 13.8, 5.79),
    ("keys", 128): Cost(Shape((8, 8), 32, 4, 2), 23.6, 7.54),
    ("keys", 256): Cost(Shape((8, 8), 32, 8, 1), 70.0, 20.0, measured=False),
}
_OUTER = {2: ((8, 8), (4, 16), (1, 64), (64, 1)), 3: ((4, 4, 4), (1, 8, 8), (1, 1, 64), (64, 1, 1))}
LEAST_ROWS = 16  # of a product of matrices
EXACT_FACTOR = 12.0  # float32 products without TF32 run on the plain units


@dataclass(frozen=True)
class Choice:
    """A shape and the nanoseconds that are expected of it, for one head of one batch element."""

    shape: Shape
    nanoseconds: float
    measured: bool


def choose(plan: Plan, place: int, kernel: str, head_size: int, dtype: torch.dtype) -> Choice:
    """The shape with the least expected time for one part; `kernel` is forward, queries or keys."""
    part = (plan.turned if kernel == "keys" else plan.parts)[place]
    best: Choice | None = None
    for candidate in _candidates(kernel, head_size, len(part.axes), dtype):
        cost = candidate if part.listed is None else _for_blocks(candidate, part.listed.outer)
        table = plan.tiles(place, cost.shape.outer, turned=kernel == "keys")
        expected = _expected(cost, table, part)
        if best is None or expected < best.nanoseconds:
            best = Choice(cost.shape, expected, cost.measured)
    if best is None:
        raise ValueError(f"no shape for {kernel} at head size {head_size}")
    return best


@lru_cache(maxsize=64)
def _candidates(kernel: str, head_size: int, axes: int, dtype: torch.dtype) -> tuple[Cost, ...]:
    size = next(limit for limit in (64, 128, 256) if head_size <= limit)
    if axes == 1:
        found = _LINES[kernel, size]
    else:
        cost = _BOXES[kernel, size]
        found = tuple(replace(cost, shape=replace(cost.shape, outer=outer)) for outer in _OUTER[axes])
    if dtype == torch.float32:
        found = tuple(dict.fromkeys(_for_float32(cost, size) for cost in found if cost.shape.rows <= 64))
    return found


def _for_float32(cost: Cost, size: int) -> Cost:
    """The same in float32, on the plain units: factors are held in registers, so tiles are small."""
    rows = 16 if size == 256 else 32
    outer = list(cost.shape.outer)
    while prod(outer) > rows:
        outer[outer.index(max(outer))] //= 2
    shape = Shape(tuple(outer), 16, warps=8, stages=1)
    return Cost(shape, cost.program, cost.masked * EXACT_FACTOR, cost.full * EXACT_FACTOR, measured=False)


def _for_blocks(cost: Cost, block: int) -> Cost:
    """The same for listed blocks: a tile is within one block, and its inner rows do not follow each other."""
    rows = min(cost.shape.rows, max(LEAST_ROWS, 1 << (block - 1).bit_length()))
    return replace(cost, shape=replace(cost.shape, outer=(rows,), bulk=False, split=False), measured=False)


def _expected(cost: Cost, table: Tiles, part: Part) -> float:
    masked, full = steps(table, part, cost.shape)
    return cost.program * table.table.shape[1] + cost.masked * masked + cost.full * full


def steps(table: Tiles, part: Part, shape: Shape) -> tuple[float, float]:
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
