"""Machines: how fast those known by name compute and copy, and the CPU this runs on, measured once."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path

import numpy as np

from lattend.errors import DomainError, NamingError
from lattend.report.numbers import with_prefix

SIDE, REPEATS = 1536, 5  # of the matrices that are multiplied to measure this CPU, and how often
COPIED = 1 << 25  # numbers that are copied, far more than a cache holds
CPU = "cpu"


@dataclass(frozen=True)
class Machine:
    """How many operations a second a machine does in products of matrices, and how many bytes it copies.

    A multiply-add is two operations. `rate` is that of dense bf16 products (of a CPU: float32), `fp8` and
    `fp32` those of these formats where they are known. `memory` is in bytes, None where it is not known.
    """

    name: str
    rate: float
    bandwidth: float
    width: int  # bytes of the numbers that were multiplied
    about: str = ""
    memory: float | None = None
    fp8: float | None = None
    fp32: float | None = None

    def rate_of(self, format: str) -> float:
        """Operations a second on numbers of this format; that of `rate` where it has no other for it."""
        return {"fp8": self.fp8, "fp32": self.fp32}.get(format) or self.rate

    def times(self, count: int) -> Machine:
        """So many of it as one: all rates and memories together, nothing lost on the way between them.

        >>> MACHINES["H100"].times(8).memory
        640000000000.0
        """
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError(f"so many machines must be a whole number of at least 1, got {count!r}")
        if count == 1:
            return self
        more = {
            name: None if (one := getattr(self, name)) is None else one * count
            for name in ("rate", "bandwidth", "memory", "fp8", "fp32")
        }
        return replace(self, name=f"{count:,} × {self.name}", **more)

    def __str__(self) -> str:
        found = f"{self.name}: {with_prefix(self.rate)}FLOP/s, {with_prefix(self.bandwidth)}B/s"
        return found if self.memory is None else f"{found}, {with_prefix(self.memory)}B"


DATA_SHEET = "data sheet: "
MACHINES = {
    key: Machine(**{"name": key, **entry})
    for key, entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
OWN = "flops=990T,bandwidth=3.35TB/s,memory=80GB"
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?) *([kKMGTP]?)(i?)(B/s|B|FLOP/s|FLOPS|flops|OP/s)?", re.A)
_UNITS = {"flops": ("FLOP/s", "FLOPS", "flops", "OP/s"), "bandwidth": ("B/s",), "memory": ("B",)}
_UNITS["fp8"] = _UNITS["fp32"] = _UNITS["flops"]


def compared_machines() -> list[Machine]:
    """All by their data sheets, so that one can be held against another, then those that were measured.

    >>> [one.name for one in compared_machines()]
    ['H200', 'H100', 'A100', 'L40S', 'MI300X', 'laptop', 'H200, measured']
    """
    return list(MACHINES.values())


def machine(name: str | Machine, *, again: bool = False) -> Machine:
    """A machine by name, by one's own numbers, or as it is; this CPU is measured once, and again when asked.

    >>> print(machine("flops=1P,bandwidth=3.35TB/s,memory=80GB"))
    your machine: 1 PFLOP/s, 3.35 TB/s, 80 GB
    """
    if isinstance(name, Machine):
        return name
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(f'a machine is a name, such as "H100", or a text "{OWN}", not {name!r}')
    if "=" in name:
        return _own_machine(name)
    known = {key.lower(): found for key, found in MACHINES.items()}
    wanted = name.strip().lower().replace(",", "")
    if wanted in known:
        return known[wanted]
    if wanted in (CPU, "this cpu"):
        return this_cpu(again=again)
    raise NamingError(
        f'no machine is named "{name}"; there are {", ".join((*MACHINES, CPU))}, or your own as {OWN}'
    )


def _own_machine(text: str) -> Machine:
    found: dict[str, float] = {}
    for part in text.split(","):
        key, _, value = (side.strip() for side in part.partition("="))
        if key not in _UNITS:
            raise NamingError(f'a machine has no "{key}"; it has {", ".join(_UNITS)}, as in {OWN}')
        if key in found:
            raise NamingError(f'"{text}" gives {key} twice; give it once')
        found[key] = amount(key, value)
    for key in ("flops", "bandwidth"):
        if key not in found:
            raise NamingError(f'"{text}" does not say {key}; write a machine as {OWN}')
    return Machine("your machine", found.pop("flops"), found.pop("bandwidth"), 2, "your numbers", **found)


def amount(key: str, text: str) -> float:
    """990T, 3.35TB/s, 80GB, 80GiB or 8e10 as a number."""
    match = _AMOUNT.fullmatch(text)
    if match is None or match[4] not in (None, *_UNITS[key]) or (match[3] and not match[2]):
        example = next((part for part in OWN.split(",") if part.startswith(key)), f"{key}=1979T")
        raise NamingError(f"{key}={text} is not read; write a number with its unit, as in {example}")
    steps = "KMGTP".find(match[2].upper()) + 1 if match[2] else 0
    found = float(match[1]) * (1024 if match[3] else 1000) ** steps
    if not 0 < found < inf:
        raise DomainError(f"{key}={text} must be above 0 and finite")
    return found


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
    return Machine("this CPU", 2 * SIDE**3 / best, moved / copied, source.itemsize, about, _memory())


def _memory() -> float | None:
    """The bytes of memory that this machine has, as far as the system says."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


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
