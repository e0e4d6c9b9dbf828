"""Shapes of tiles, and what each costs a kernel.

The costs were measured on an H200 (Triton 3.6, benchmarks/calibrate_gpu.py) and are nanoseconds for the
whole chip: for a program to begin and end, for a step with a mask, and for a step with none. Counts of steps
and costs together gave the times they were fitted to within 30%, most within 10%, so nothing is tried out
when it runs. Those of Hopper's kernels were fitted to rows of benchmarks/hopper_gpu.py. Lists of blocks were
not measured: they are given the costs of rows that follow each other where a step lies within a block, and
else those of rows that lie apart; no time is predicted from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


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
    inner: tuple[int, ...] = ()  # on images: a step is such a box of inner slots, copied by TMA
    hopper: bool = False  # of the warp-specialized kernels (hopper/)
    several: bool = False  # whether those take parts that join, chunks and orders (fused_parts.py, chunks.py)
    aligned: int = 1  # the first step of a tile begins with a multiple of this: an inner position, or a slot
    in_turn: bool = False  # of a forward pass with two groups of warps: these begin their products in turn

    @property
    def rows(self) -> int:
        return prod(self.outer)

    @property
    def cut(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """The box of a program and of a step, and steps in flight."""
        return self.outer, self.inner, self.stages

    @property
    def strips(self) -> bool:
        """Whether it is of the kernels for images on Hopper (image_tables.py)."""
        return self.hopper and bool(self.inner)


@dataclass(frozen=True)
class ShapeCost:
    """Nanoseconds for a program, for a step with a mask, and for a step without; for one of the kernels for
    images on Hopper (`strips`), for a step that is met and for a step that is loaded.
    """

    shape: TileShape
    program: float
    masked: float
    full: float = 0.0
    measured: bool = True
    sums: float = 0.0  # more, where it is chosen, for a program that goes on from the sums of another part


def _line(rows: int, step: int, warps: int, stages: int, split: bool, registers: int | None) -> TileShape:
    return TileShape((rows,), step, warps, stages, True, split, registers)


def _apart(rows: int, step: int, warps: int, stages: int, split: bool, registers: int | None) -> TileShape:
    return TileShape((rows,), step, warps, stages, False, split, registers)


def _hopper(
    step: int, stages: int, rows: int = 128, *, several: bool = False, aligned: int = 1, in_turn: bool = False
) -> TileShape:  # fmt: skip
    return TileShape(
        (rows,), step, 12, stages, True, True,
        hopper=True, several=several, aligned=aligned, in_turn=in_turn,
    )  # fmt: skip


# kernel, head dimension at most, on a line
LINES: dict[tuple[str, int], tuple[ShapeCost, ...]] = {
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

# the same of the kernels for Hopper (hopper/), which take some calls; of 192 rows for three groups of warps
HOPPER: dict[tuple[str, int], tuple[ShapeCost, ...]] = {
    ("forward", 64): (
        ShapeCost(_hopper(128, 3, 192), 28.0, 14.5, 10.7),
        ShapeCost(_hopper(128, 3, several=True), 13.5, 8.6, 8.15),
        ShapeCost(_hopper(64, 8, several=True), 12.0, 5.2, 5.2),  # fitted to t = 255
    ),
    ("forward", 128): (
        ShapeCost(_hopper(128, 2, several=True), 26.0, 12.0, 11.2, sums=20.0),
        # fitted to windows of one side and of both, with full steps dear: it was slower on causal rows
        ShapeCost(_hopper(128, 2, several=True, in_turn=True), 25.2, 9.7, 12.4, sums=20.0),
        # short tiles of which groups leave out steps; fitted to t = 255, 511 and blocks of 256
        ShapeCost(_hopper(64, 5, several=True), 16.0, 7.4, 7.4, sums=20.0),
    ),
    ("forward", 256): (ShapeCost(_hopper(64, 2), 27.0, 11.5, 10.8),),
    ("backward_dq", 128): (ShapeCost(_hopper(64, 3, several=True), 35.0, 7.5, 7.5),),
    ("backward_dq", 256): (ShapeCost(_hopper(64, 2), 85.0, 18.0, 16.4),),
    ("backward_dkdv", 64): (ShapeCost(_hopper(64, 4, 192), 18.0, 9.6, 9.4),),
    ("backward_dkdv", 128): (ShapeCost(_hopper(64, 3, several=True), 20.0, 11.0, 10.6, sums=40.0),),
    ("backward_dkdv", 256): (ShapeCost(_hopper(64, 2, 64), 10.0, 15.0, 14.9),),
}

# the forward pass of 8 bits, which only these kernels have, with the transposing of values; 64 is a guess
FP8: dict[tuple[str, int], tuple[ShapeCost, ...]] = {
    ("forward", 64): (ShapeCost(_hopper(128, 4, aligned=16), 22.0, 8.0, 7.0, measured=False),),
    ("forward", 128): (ShapeCost(_hopper(128, 4, aligned=16), 27.0, 9.5, 8.8),),
}

# the same where inner rows lie apart, every l-th or c out of l, and cannot be copied by TMA
APART: dict[tuple[str, int], tuple[ShapeCost, ...]] = {
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
BOXES: dict[tuple[str, int], ShapeCost] = {
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

# the same where both axes are in order and steps are boxes that TMA copies; fitted to neighbourhoods of 7 × 7
# and 13 × 13, gradients of keys to the first of them. Smaller heads were not measured
TMA_BOXES: dict[tuple[str, int], ShapeCost] = {
    ("forward", 128): ShapeCost(TileShape((8, 8), 32, 4, 2, True, registers=128), 14.4, 2.37),
    ("backward_dq", 128): ShapeCost(TileShape((8, 8), 32, 4, 2, True), 26.2, 2.67),
    ("backward_dkdv", 128): ShapeCost(TileShape((8, 8), 32, 4, 2, True), 22.8, 4.92),
}
INNER = ((2, 16), (4, 8), (8, 4), (1, 32), (32, 1))
# the same by the kernels for Hopper (hopper/images.py), whose tiles are two boxes: a program, a step that one
# of them meets, and a step that is loaded. Fitted to neighbourhoods of 5 × 5 to 13 × 13 and Swin's windows of
# 12 × 12, in all of these cuts: within 13%, but for Swin's, which take up to 26% longer
HOPPER_BOXES: dict[tuple[str, int], ShapeCost] = {
    ("forward", 64): ShapeCost(TileShape((16, 8), 64, 12, 8, True, hopper=True), 10.1, 3.8),
    ("forward", 128): ShapeCost(TileShape((16, 8), 64, 12, 5, True, hopper=True), 16.2, 4.4),
    ("backward_dq", 128): ShapeCost(TileShape((16, 8), 64, 12, 3, True, hopper=True), 43.0, 1.9, 4.5),
    ("backward_dkdv", 64): ShapeCost(TileShape((16, 8), 64, 12, 6, True, hopper=True), 11.9, 4.8),
    ("backward_dkdv", 128): ShapeCost(TileShape((16, 8), 64, 12, 3, True, hopper=True), 35.0, 5.0, 2.5),
}
HOPPER_CUTS = (((16, 8), (4, 16)), ((16, 8), (8, 8)), ((32, 4), (4, 16)))

# float32 as three products in TF32, which hold factors twice, so that tiles are small: a program and a step
# with and without a mask, on a line where rows follow each other, on one where they lie apart, and on
# images. The last are within 40%, and guesses for the backward at 256
Costs = tuple[float, float, float]
EXACT: dict[tuple[str, int], tuple[Costs, Costs, Costs]] = {
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
# float32 as one product in TF32 on Hopper, which has room for such tiles, where rows follow each other
TF32: dict[tuple[str, int], tuple[ShapeCost, ...]] = {
    ("forward", 64): (
        ShapeCost(_line(64, 64, 4, 2, True, None), 18.9, 9.7, 9.7),
        ShapeCost(_line(128, 32, 4, 2, True, None), 31.4, 9.07, 8.44),
    ),
    ("forward", 128): (
        ShapeCost(_line(32, 32, 4, 2, True, None), 10.4, 6.66, 6.66),
        ShapeCost(_line(128, 64, 8, 2, True, None), 66.9, 38.4, 38.4),
    ),
    ("backward_dq", 64): (ShapeCost(_line(64, 64, 4, 2, True, None), 23.2, 10.4, 10.4),),
    ("backward_dq", 128): (
        ShapeCost(_line(32, 32, 4, 2, True, None), 20.4, 8.43, 8.24),
        ShapeCost(_line(128, 32, 8, 2, True, None), 87.3, 23.4, 23.4),
    ),
    ("backward_dkdv", 64): (
        ShapeCost(_line(32, 32, 4, 2, True, None), 9.34, 6.66, 6.66),
        ShapeCost(_line(64, 32, 4, 2, True, None), 28.6, 10.0, 10.0),
        ShapeCost(_line(128, 32, 8, 2, True, None), 70.5, 17.1, 17.1),
    ),
    ("backward_dkdv", 128): (ShapeCost(_line(32, 32, 4, 2, True, None), 20.4, 10.9, 10.9),),
}
EXACT_OUTER = {
    64: {1: ((32,),), 2: ((4, 8), (1, 32), (32, 1)), 3: ((2, 4, 4), (1, 1, 32), (32, 1, 1))},
    128: {1: ((32,),), 2: ((4, 8), (1, 32), (32, 1)), 3: ((2, 4, 4), (1, 1, 32), (32, 1, 1))},
    256: {1: ((16,),), 2: ((4, 4), (1, 16), (16, 1)), 3: ((2, 2, 4), (1, 1, 16), (16, 1, 1))},
}
OUTER = {2: ((8, 8), (4, 16), (1, 64), (64, 1)), 3: ((4, 4, 4), (1, 8, 8), (1, 1, 64), (64, 1, 1))}
# head dimensions above 256, with guessed costs: few rows, so that sums fit the registers and factors the
# shared memory, and no TMA, which copies 256 numbers of a row at most
LARGE = {"forward": (64, 120.0, 48.0), "backward_dq": (32, 150.0, 64.0), "backward_dkdv": (32, 230.0, 130.0)}
LARGE_OUTER = {
    64: {1: ((64,),), **OUTER},
    32: {1: ((32,),), 2: ((4, 8), (1, 32), (32, 1)), 3: ((2, 4, 4), (1, 1, 32), (32, 1, 1))},
}
LEAST_ROWS = 16  # of a product of matrices


@dataclass(frozen=True)
class Choice:
    """A shape and the nanoseconds that are expected of it, for one head of one batch element."""

    shape: TileShape
    nanoseconds: float
    measured: bool
    masked: float = 0.0  # nanoseconds of a step with a mask
    left: float = 0.0  # steps that groups of warps leave out (skippable_steps.py)
    sums: float = 0.0  # nanoseconds more of a program that goes on from the sums of another part
    chunks: int = 0  # into which its tiles are cut (chunks.py)
