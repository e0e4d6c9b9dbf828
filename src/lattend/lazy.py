"""Names that are loaded when they are first used, so that a folder is imported at once."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from lattend.errors import ExtraMissing, TorchMissing


def homes(folder: str, files: Mapping[str, str]) -> dict[str, str]:
    """The module of each public name, from the names that each file of a folder gives.

    >>> homes("lattend.nn", {"images.vit": "ViT", "grid.complete": "complete sample"})["sample"]
    'lattend.nn.grid.complete'
    """
    return {name: f"{folder}.{file}" for file, names in files.items() for name in names.split()}


def needing(packages: str, module: str, what: str, extra: str = "") -> ModuleType:
    """A module that needs packages, of the extra of that name or of another; `what` begins the error."""
    try:
        with _no_collection():
            return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name not in packages.split():
            raise
        error = TorchMissing if missing.name == "torch" else ExtraMissing
        raise error(
            f'{what}, an extra that is not installed: pip install "lattend[{extra or packages}]"'
        ) from missing


@contextmanager
def _no_collection() -> Iterator[None]:
    """Where Python looks for no garbage: modules make none, and where torch is loaded, a look takes 80 ms."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def on_first_use(
    namespace: dict[str, Any], called: str, home: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A module's `__getattr__` and `__dir__`: names from the modules that `home` says, kept in `namespace`.

    They are its `__all__` too. What is public under its own name is its own home. `called` is what users call
    the module, for the error.
    """

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"{called} has no {name!r}; it has {', '.join(home)}")
        module = needing("torch", home[name], f"{called}.{name} runs on torch")
        itself = home[name] == f"{namespace['__name__']}.{name}"
        namespace[name] = module if itself else getattr(module, name)
        return namespace[name]

    namespace["__all__"] = list(home)
    return load, lambda: list(home)
