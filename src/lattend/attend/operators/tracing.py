"""Marks functions for torch.compile without loading Dynamo, and refuses exporters that cannot hold attention.

torch.compiler's own decorators import torch._dynamo, 1.4 s at the first call of attention.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch

from lattend.errors import LattendError

F = TypeVar("F", bound=Callable[..., Any])


def constant(function: F) -> F:
    """The function, whose result is a constant where it is traced; what assume_constant_result does."""
    function._dynamo_marked_constant = True  # pyright: ignore[reportFunctionMemberAccess]
    return function


def left_to_python(method: F) -> F:
    """The method, which torch.compile does not trace; torch.compiler.disable once Dynamo is loaded."""
    disabled: dict[str, Callable[..., Any]] = {}  # Dynamo may come by here, and knows how to fill a dict

    @wraps(method)
    def run(*args: Any, **options: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return method(*args, **options)
        if not disabled:
            skipped: Callable[..., Any] = torch.compiler.disable(method)  # pyright: ignore[reportUnknownMemberType]
            disabled["method"] = skipped
        return disabled["method"](*args, **options)

    run._torchdynamo_disable = True  # pyright: ignore[reportAttributeAccessIssue]
    return run  # pyright: ignore[reportReturnType]


def check_exportable() -> None:
    """Raises under torch.jit.trace and torch.onnx.export."""
    onnx = sys.modules.get("torch.onnx")
    if torch.jit.is_tracing() or (onnx is not None and onnx.is_in_onnx_export()):  # pyright: ignore[reportPrivateImportUsage]
        raise LattendError(
            "TorchScript and ONNX have no operator for attention under a rule, so torch.jit.trace and "
            "torch.onnx.export cannot export it: use torch.export, which keeps the rule"
        )
