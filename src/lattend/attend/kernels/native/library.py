"""The compiled library: whether it is there, which level of it runs, and its functions."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

import torch

from lattend.attend.kernels.native.build import LEVELS, LIBRARY, source_hash

NAMES = tuple(LEVELS)
ARGUMENTS = {
    "forward": (*[ctypes.c_void_p] * 9, ctypes.c_int64),
    "backward": (*[ctypes.c_void_p] * 15, ctypes.c_int64),
    "decode": (*[ctypes.c_void_p] * 18, *[ctypes.c_int64] * 4),
    **{
        f"grid_{work}_{number}": (*[ctypes.c_void_p] * 2, ctypes.c_int64)
        for work in ("forward", "backward")
        for number in ("float32", "float64")
    },
}
_ASKED: ContextVar[str | None] = ContextVar("level", default=None)  # by tests


@lru_cache(maxsize=1)
def missing() -> str | None:
    """Why there is no compiled code to run; None where there is."""
    if not LIBRARY.exists():
        return "this installation was built without a C++ compiler, and so without its compiled code"
    try:
        library = _library()
    except OSError as error:
        return f"its compiled code cannot be loaded: {error}"
    library.lattend_source.restype = ctypes.c_char_p
    if library.lattend_source().decode() != source_hash():
        return "its compiled code is not that of this source: build it again with make setup"
    return None


def level() -> str:
    """The best level that this processor runs, or the one that was asked for."""
    return _ASKED.get() or levels()[-1]


@lru_cache(maxsize=1)
def levels() -> tuple[str, ...]:
    """The levels that this processor runs, the best last."""
    return NAMES[: _library().lattend_level() + 1]


@contextmanager
def at_level(name: str) -> Generator[None]:
    """Inside, this level runs."""
    before = _ASKED.set(name)
    try:
        yield
    finally:
        _ASKED.reset(before)


def function(name: str) -> Callable[..., int]:
    """`forward`, `backward`, or those of the grid, of the level that runs."""
    return _function(name, level())


@lru_cache(maxsize=32)
def _function(name: str, level: str) -> Callable[..., int]:
    found = getattr(_library(), f"lattend_{name}_{level}")
    found.argtypes, found.restype = ARGUMENTS[name], ctypes.c_int64
    return found


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(os.fspath(LIBRARY))


@lru_cache(maxsize=1)
def parallel() -> int | None:
    """The address of OpenMP's function that runs threads, the one that torch uses; None where it has none."""
    folder = Path(torch.__file__).parent / "lib"
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        try:
            found = ctypes.CDLL(os.fspath(folder / name)).GOMP_parallel
        except (OSError, AttributeError):
            continue
        return ctypes.cast(found, ctypes.c_void_p).value
    return None
