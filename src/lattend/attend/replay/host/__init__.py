"""What a repeated call does on the host, compiled where Lattend was built with a C++ compiler.

Python takes longer to look at three tensors, and to hand their addresses to a kernel, than a small kernel
runs. Each function of host.cpp has a twin in Python, by which it is tested, and which runs where the module
is missing: `tensor_signature` and `plain_signature` in replay/signature.py, `caller` in
kernels/native/kernel.py, `launcher` in kernels/triton/driver.py.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from lattend.attend.kernels.native.build import HOST_SOURCE, source_hash


@lru_cache(maxsize=1)
def module() -> Any | None:
    """The module of host.cpp; None where it was not built, or of another source."""
    try:
        found = import_module("lattend.attend.replay.host.compiled")
    except ImportError:
        return None
    return found if source_hash([HOST_SOURCE]) == found.SOURCE else None
