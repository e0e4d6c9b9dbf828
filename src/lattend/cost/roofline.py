"""Roofline: the least time a machine needs for a cost, by its arithmetic or by its memory.

A multiply and the add after it are two operations. Arithmetic is no faster than the machine multiplies large
matrices, memory no faster than it copies what must be moved at least once: inputs and parameters read, the
result written. Whichever takes longer is the floor. Nothing here is fitted to a run of attention.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lattend.cost.amount import ZERO, Amount
from lattend.cost.layer import Layer
from lattend.errors import DomainError, NamingError

if TYPE_CHECKING:
    from lattend.cost.cost import Cost

ARITHMETIC, MEMORY = "arithmetic", "memory"
SIDE, REPEATS = 1536, 5  # of the matrices that are multiplied to measure this CPU, and how often
COPIED = 1 << 25  # numbers that are copied, far more than a cache holds
CPU = "cpu"


@dataclass(frozen=True)
class Machine:
    """How fast a machine multiplies matrices, in operations a second, and copies, in bytes a second."""

    name: str
    rate: float
    bandwidth: float
    width: int  # bytes of the numbers that were multiplied
    about: str = ""


MACHINES = {
    "H200": Machine("H200", 798e12, 4.3e12, 2, "measured: bf16 matrix product, copy"),
}


@dataclass(frozen=True)
class Floor:
    """The least time of a cost on a machine, and what it is bound by."""

    machine: Machine
    operations: int
    bytes: int
    arithmetic: float  # seconds of its products
    memory: float  # seconds of its compulsory traffic
    seconds: float
    width: int

    @property
    def binds(self) -> str:
        """What takes longer."""
        return ARITHMETIC if self.arithmetic >= self.memory else MEMORY

    def __str__(self) -> str:
        return (
            f"{shown(self.seconds)} on {self.machine.name}, bound by {self.binds}: "
            f"{self.operations:,} operations take {shown(self.arithmetic)}, "
            f"{self.bytes:,} bytes of {self.width}-byte numbers {shown(self.memory)}"
        )

    __repr__ = __str__


def machine_names() -> list[str]:
    """The machines that are known by name; "cpu" is the one this runs on."""
    return [*MACHINES, CPU]


def machine(name: str, *, again: bool = False) -> Machine:
    """A machine by name; this CPU is measured the first time, and again when asked."""
    known = {key.lower(): found for key, found in MACHINES.items()}
    if name.lower() in known:
        return known[name.lower()]
    if name.lower() in (CPU, "this cpu"):
        return this_cpu(again=again)
    raise NamingError(f'no machine is named "{name}"; there are {", ".join(machine_names())}')


def time_of(cost: Cost, on: str | Machine = "H200", *, width: int | None = None) -> Floor:
    """The least time of a cost, layer after layer, once every size has a number.

    Numbers are as wide as those the machine's rate was measured with, unless a `width` in bytes is given.

    >>> from lattend.cost import linear
    >>> time_of(linear(n=8192, d_in=8192, d_out=8192, bias=False), "H200")  # 2*8192^3 / 798e12
    1.38 ms on H200, bound by arithmetic: 1,099,511,627,776 operations take 1.38 ms, 402,653,184 bytes of \
2-byte numbers 93.6 µs
    """
    chosen = machine(on) if isinstance(on, str) else on
    wide = chosen.width if width is None else width
    if wide < 1:
        raise DomainError(f"width is in bytes and at least 1, got {wide}")
    seconds = 0.0
    operations = traffic = 0
    for times, layer in cost.parts:
        one = replace(cost, name=layer.name, parts=((Amount.number(1), layer),))
        many = cost.number(times)
        work = 2 * cost.number(one.amount("multiplies"))
        moved = wide * cost.number(compulsory(layer, backward=cost.way == "backward"))
        seconds += many * max(work / chosen.rate, moved / chosen.bandwidth)
        operations, traffic = operations + many * work, traffic + many * moved
    return Floor(
        chosen, operations, traffic, operations / chosen.rate, traffic / chosen.bandwidth, seconds, wide
    )


def compulsory(layer: Layer, *, backward: bool = False) -> Amount:
    """The numbers that must be moved at least once: inputs and parameters read, the result written.

    Backward, these and the gradient of the result are read, and the gradients of inputs and parameters
    written. A table that is only looked up counts nothing.
    """
    read = ZERO
    for array in layer.arrays():
        if array.kind in ("input", "parameter"):
            read = read + array.size.dense
    written = layer.statements[-1].writes.size.dense if layer.statements else ZERO
    return read * 2 + written if backward else read + written


def this_cpu(*, again: bool = False) -> Machine:
    """The CPU this runs on: measured once with NumPy, in float32, and kept in the user's cache folder."""
    file = cache_folder() / "machine.json"
    wanted = _identity()
    if not again:
        try:
            stored = json.loads(file.read_text())
            if stored.pop("identity") == wanted:
                return Machine(**stored)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            pass  # not measured yet, or by another version
    found = measure_cpu()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({**asdict(found), "identity": wanted}))
        temporary.replace(file)
    except OSError:
        pass  # a folder that cannot be written only means measuring again
    return found


def measure_cpu() -> Machine:
    """How fast NumPy multiplies float32 matrices and copies memory here, the best of a few runs."""
    left = np.ones((SIDE, SIDE), np.float32)
    right, product = np.ones_like(left), np.empty_like(left)
    best = min(_seconds(lambda: np.matmul(left, right, out=product)) for _ in range(REPEATS))
    source = np.ones(COPIED, np.float32)
    target = np.empty_like(source)
    copied = min(_seconds(lambda: np.copyto(target, source)) for _ in range(REPEATS))
    moved = 2 * source.nbytes  # each is read and written
    about = f"{_identity()}; measured: NumPy float32 matrix product, copy"
    return Machine("this CPU", 2 * SIDE**3 / best, moved / copied, source.itemsize, about)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cache_folder() -> Path:
    """Where this platform keeps what programs can make again."""
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "lattend"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lattend"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "lattend" / "Cache"
    return Path.home() / ".cache" / "lattend"


def _identity() -> str:
    """What must be the same for an earlier measurement to count."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_model()}, {cores} cores, NumPy {np.__version__}"


def _model() -> str:
    """What the processor is called, as far as the system says."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def shown(seconds: float) -> str:
    """Three digits in the unit that suits: 1.38 ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
