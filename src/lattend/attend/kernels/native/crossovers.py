"""From where on torch's own attention is faster than the native kernel, as crossovers.json has it.

That file is data: `python benchmarks/calibrate_cpu.py --save` measures both kernels and writes it, for each
pass, dtype and kind of block, as numbers in a block's keys (keys times D), null where none was found.
"""

from __future__ import annotations

import json
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import NamedTuple

import torch

from lattend.attend.bias import dtype_name
from lattend.attend.kernels.crossover import KernelCrossover

FILE = Path(__file__).with_name("crossovers.json")
PASSES = ("forward", "backward")


class Measured(NamedTuple):
    """Numbers in a block's keys: those of the crossover, inf where there is none, and the most measured."""

    crossover: float
    most: int


@lru_cache(maxsize=1)
def measured() -> dict[tuple[str, str, str], Measured]:
    """What was found for a pass, a dtype, and causal or full blocks."""
    table = json.loads(FILE.read_text())["numbers"]
    return {
        (work, dtype, blocks): Measured(inf if at is None else at, found["measured to"])
        for work, dtypes in table.items()
        for dtype, some in dtypes.items()
        for blocks, found in some.items()
        for at in (found["crossover"],)
    }


def crossover(work: str, dtype: torch.dtype, causal: bool, keys: int, width: int) -> KernelCrossover | None:
    """Where torch's own attention overtakes on such blocks; None for a dtype that was not measured."""
    found = measured().get((work, dtype_name(dtype), "causal" if causal else "full"))
    return None if found is None else KernelCrossover(work, keys, width, *found)
