"""What panels use of the library, loaded before the first question, and the threads of torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec


@lru_cache(maxsize=1)
def program_threads() -> int:
    """The number of threads of torch in a program of its own: those that torch begins with."""
    return import_module("torch").get_num_threads()


def use_one_thread() -> None:
    """Use one thread from now on: more would wait for those of other workers."""
    program_threads()
    import_module("torch").set_num_threads(1)


@contextmanager
def with_program_threads() -> Iterator[None]:
    """Predict times for a program of its own, which has all threads; nothing runs here."""
    torch = import_module("torch")
    threads: int = torch.get_num_threads()
    torch.set_num_threads(program_threads())
    try:
        yield
    finally:
        torch.set_num_threads(threads)


TORCH = (  # these import torch, which takes seconds
    "attend.explain.explain",
    "attend.explain.memory",
    "attend.explain.text",
    "nn.convolution.convert",
    "nn.convolution.trial",
    "nn.grid.check",
    "study.generative.linear_picture",
)


def load_library(torch: bool) -> None:
    """Load what panels import inside their functions; what needs torch only where that is installed."""
    torch = torch and find_spec("torch") is not None
    with_torch = {f"lattend.{name}" for name in TORCH}
    for name in sorted(panel_imports() - with_torch) + (sorted(with_torch) if torch else []):
        import_module(name)
    if torch:
        use_one_thread()


def panel_imports() -> set[str]:
    """The modules of the library that functions of panels import, read off their source."""
    shared = files("lattend.web").joinpath("rules.py")
    panels = [file for file in files("lattend.web.panels").iterdir() if file.name.endswith(".py")]
    trees = [ast.parse(file.read_text("utf-8")) for file in (shared, *panels)]
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    imports = [node for function in functions for node in ast.walk(function)]
    return {node.module for node in imports if isinstance(node, ast.ImportFrom) and node.module}
