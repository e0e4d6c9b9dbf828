"""Threads of torch: one in a worker, where many share the cores, and as many as elsewhere in predictions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

_elsewhere: list[int] = []  # how many a program of its own has, once a worker has one


def work_with_one() -> None:
    """One thread from now on: more would wait for those of other workers."""
    torch = import_module("torch")
    if not _elsewhere:
        _elsewhere.append(torch.get_num_threads())
    torch.set_num_threads(1)


@contextmanager
def as_elsewhere() -> Iterator[None]:
    """For what is said of a program of its own, and not run here."""
    torch = import_module("torch")
    here: int = torch.get_num_threads()
    torch.set_num_threads(_elsewhere[0] if _elsewhere else here)
    try:
        yield
    finally:
        torch.set_num_threads(here)
