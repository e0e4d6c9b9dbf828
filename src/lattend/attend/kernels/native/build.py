"""Compiles the native kernel and the host's part: for a wheel or a checkout, never on a user's machine.

It needs a C++17 compiler, GCC or Clang, for the host's part Python's headers too, and imports nothing of
Lattend: hatch_build.py loads it by its path.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE / "source"
LIBRARY = HERE / "compiled.native"  # no .so: it is no module of Python
HOST = HERE.parents[1] / "replay" / "host"
HOST_SOURCE = HOST / "host.cpp"
HOST_MODULE = HOST / "compiled.abi3.so"  # one of Python, for 3.11 and all that follow
PASSES = {
    **dict.fromkeys(("forward", "backward", "decode", "grid_forward", "grid_backward"), ()),
    **{f"{name}_float64": ("-DGRID_FLOAT64",) for name in ("grid_forward", "grid_backward")},
}
FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-math-errno", "-Wall", "-Wextra")
# What each level of the same source may use; processors choose among them when the library is loaded
LEVELS: dict[str, tuple[str, ...]] = {"plain": ()}
if platform.machine().lower() in ("x86_64", "amd64"):
    LEVELS["avx2"] = ("-mavx2", "-mfma")
    LEVELS["avx512"] = ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma")


def source_hash(files: Sequence[Path] = ()) -> str:
    """What tells this source, that of the kernel unless files are given, from any other."""
    files = files or sorted(SOURCE.iterdir())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def compiler() -> str | None:
    """The C++ compiler: $CXX, or one of the usual names."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


def build(to: Path = LIBRARY, extra: Sequence[str] = ()) -> Path:
    """The library, compiled to this file; `extra` are more options of the compiler."""
    found = _compiler()
    with tempfile.TemporaryDirectory() as folder:
        units = [(Path(folder) / "levels.o", "levels", (f'-DSOURCE="{source_hash()}"',))]
        units += [
            (Path(folder) / f"{name}_{level}.o", name.removesuffix("_float64"), (*flags, *numbers))
            for level, flags in LEVELS.items()
            for name, numbers in PASSES.items()
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


def build_host(to: Path = HOST_MODULE, extra: Sequence[str] = ()) -> Path:
    """The module that does the host's part of a repeated call."""
    found, headers = _compiler(), sysconfig.get_path("include")
    if not (Path(headers) / "Python.h").exists():
        raise FileNotFoundError(f"Python's headers are not there: no Python.h in {headers}")
    made = to.with_suffix(".new")
    how = [*FLAGS, "-fvisibility=hidden", f'-DSOURCE="{source_hash([HOST_SOURCE])}"', f"-I{headers}", *extra]
    how += ["-undefined", "dynamic_lookup"] if platform.system() == "Darwin" else []
    run = [found, "-shared", *how, str(HOST_SOURCE), "-o", str(made)]
    if subprocess.run(run, check=False).returncode:
        raise RuntimeError(f"{found} could not compile the host's part: see its messages above")
    return made.replace(to)


def _compiler() -> str:
    found = compiler()
    if found is None:
        raise FileNotFoundError("there is no C++ compiler: none of $CXX, c++, g++ and clang++ was found")
    return found


if __name__ == "__main__":
    print(build())
    print(build_host())
