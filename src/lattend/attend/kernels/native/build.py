"""Compiles the native kernel: when a wheel is built or a checkout installed, never on a user's machine.

It needs a C++17 compiler, GCC or Clang, and imports nothing of Lattend: hatch_build.py loads it by its path.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE / "source"
LIBRARY = HERE / "compiled.native"  # no .so: it is no module of Python
PASSES = ("forward", "backward", "grid_forward", "grid_backward")
FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-math-errno", "-Wall", "-Wextra")
# What each level of the same source may use; processors choose among them when the library is loaded
LEVELS: dict[str, tuple[str, ...]] = {"plain": ()}
if platform.machine().lower() in ("x86_64", "amd64"):
    LEVELS["avx2"] = ("-mavx2", "-mfma")
    LEVELS["avx512"] = ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma")


def source_hash() -> str:
    """What tells this source from any other."""
    files = sorted(SOURCE.iterdir())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def compiler() -> str | None:
    """The C++ compiler: $CXX, or one of the usual names."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


def build(to: Path = LIBRARY, extra: Sequence[str] = ()) -> Path:
    """The library, compiled to this file; `extra` are more options of the compiler."""
    found = compiler()
    if found is None:
        raise FileNotFoundError("there is no C++ compiler: none of $CXX, c++, g++ and clang++ was found")
    with tempfile.TemporaryDirectory() as folder:
        units = [(Path(folder) / "levels.o", "levels", (f'-DSOURCE="{source_hash()}"',))]
        units += [
            (Path(folder) / f"{name}_{level}.o", name, flags)
            for level, flags in LEVELS.items()
            for name in PASSES
        ]
        start = [found, *FLAGS, *extra]
        runs = [
            subprocess.Popen([*start, *flags, "-c", str(SOURCE / f"{name}.cpp"), "-o", str(at)])
            for at, name, flags in units
        ]
        failed = sum(run.wait() != 0 for run in runs)  # all are waited for
        made = to.with_suffix(".new")  # a library that is in use is not written over
        objects = [str(at) for at, _, _ in units]
        link = [found, "-shared", *extra, *objects, "-lm", "-o", str(made)]
        if failed or subprocess.run(link, check=False).returncode:
            raise RuntimeError(f"{found} could not compile the native kernel: see its messages above")
        made.replace(to)
    return to


if __name__ == "__main__":
    print(build())
