"""Machines: how fast those known by name compute and copy, and the CPU this runs on, measured once."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from lattend.errors import NamingError

SIDE, REPEATS = 1536, 5  # of the matrices that are multiplied to measure this CPU, and how often
COPIED = 1 << 25  # numbers that are copied, far more than a cache holds
CPU = "cpu"


@dataclass(frozen=True)
class Machine:
    """How fast a machine multiplies matrices, in operations a second, and copies, in bytes a second.

    A multiply-add is two operations. `peak` and `peak_bandwidth` are what the data sheet says, `rate` and
    `bandwidth` what was reached where that was measured.
    """

    name: str
    rate: float
    bandwidth: float
    width: int  # bytes of the numbers that were multiplied
    about: str = ""
    peak: float | None = None
    peak_bandwidth: float | None = None


DATA_SHEET = "data sheet: SXM, dense bf16"
MACHINES = {
    "H200": Machine(
        "H200, measured", 798e12, 4.3e12, 2, "measured: bf16 matrix product, copy", 989.4e12, 4.8e12
    ),
    "H100": Machine("H100", 989.4e12, 3.35e12, 2, DATA_SHEET, 989.4e12, 3.35e12),
    "A100": Machine("A100", 312e12, 2.039e12, 2, DATA_SHEET, 312e12, 2.039e12),
}


def compared_machines() -> list[Machine]:
    """All by their data sheets, so that one can be held against another, then those that were measured.

    >>> [one.name for one in compared_machines()]
    ['H200', 'H100', 'A100', 'H200, measured']
    """
    sheets = [
        replace(one, name=name, rate=one.peak, bandwidth=one.peak_bandwidth, about=DATA_SHEET)
        for name, one in MACHINES.items()
        if one.peak is not None and one.peak_bandwidth is not None
    ]
    return sheets + [one for one in MACHINES.values() if one.about != DATA_SHEET]


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
