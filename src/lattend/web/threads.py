"""Threads of torch: one in a worker, where many share the cores, and as many as elsewhere in predictions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module


@lru_cache(maxsize=1)
def threads_elsewhere() -> int:
    """How many threads a program of its own has: as many as torch has when it is first asked."""
    return import_module("torch").get_num_threads()


def work_with_one() -> None:
    """One thread from now on: more would wait for those of other workers."""
    threads_elsewhere()
    import_module("torch").set_num_threads(1)


@contextmanager
def as_elsewhere() -> Iterator[None]:
    """For what is said of a program of its own, and not run here."""
    torch = import_module("torch")
    here: int = torch.get_num_threads()
    torch.set_num_threads(threads_elsewhere())
    try:
        yield
    finally:
        torch.set_num_threads(here)
