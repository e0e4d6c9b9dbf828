"""AMX: whether torch's bfloat16 products end a process here, and what to set before torch is loaded.

Some machines announce AMX and stop a process at its first instruction of it. Nothing can be caught then, so
a child process tries a product first, once, and only where AMX is announced.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, MutableMapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lattend.errors import LattendError

if TYPE_CHECKING:
    from torch import Tensor

VARIABLE, VALUE = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
PRODUCTS = """
import warnings, torch
warnings.simplefilter("error")
x = torch.ones(64, 64, dtype=torch.bfloat16)
x @ x
torch.nn.functional.conv2d(x[None, None], x[None, None, :3, :3])
"""


def products_work() -> bool:
    """Whether a child process comes back from bfloat16 products, and nothing warns."""
    command = [sys.executable, "-c", PRODUCTS]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def needs_limit(environ: Mapping[str, str], cpuinfo: str, work: Callable[[], bool] = products_work) -> bool:
    """Whether oneDNN must be kept from AMX: it is announced, nobody has said anything, and products fail.

    >>> needs_limit({}, "flags : fpu amx_bf16 amx_tile", work=lambda: False)
    True
    """
    announced = re.search(r"\bamx_bf16\b", cpuinfo) is not None
    return announced and VARIABLE not in environ and not work()


def limit(environ: MutableMapping[str, str]) -> None:
    """Keeps oneDNN from AMX in this process and its children, where it must be; before torch is loaded."""
    if needs_limit(environ, _cpuinfo()):
        environ[VARIABLE] = VALUE


def check(x: Tensor) -> None:
    """Raises where a product of this tensor would end the process."""
    import torch

    if x.dtype == torch.bfloat16 and x.device.type == "cpu" and not torch.compiler.is_compiling() and _ends():
        raise LattendError(
            "this machine announces AMX, and torch's bfloat16 products end the process there: "
            f"set {VARIABLE}={VALUE} before Python starts, or use float32"
        )


@lru_cache(maxsize=1)
def _ends() -> bool:
    return needs_limit(os.environ, _cpuinfo())


def _cpuinfo() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text(errors="replace") if path.is_file() else ""
