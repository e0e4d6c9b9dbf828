"""Terms and conditions at positions that may be integers, NumPy arrays or tensors, without checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add, mod, mul, neg, pos, sub
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lattend.rules.language import expr
from lattend.rules.language.evaluation import COMPARE
from lattend.rules.language.expr import And, Arith, Compare, Lookup, Name, Node, Not, Num, Or, Truth

ELEMENT = "batch"  # the name of a batch element


def evaluate(node: Node, names: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None) -> Any:
    """The value of a term, or whether a condition holds, where the names have these values.

    Torch can differentiate it by the tensors, which are read at the nearest end where an index lies outside:
    a pair that is not attended may ask for any. A tensor with one axis more than it is looked up with has
    the batch first.
    """
    read = tensors or {}

    def step(node: Node, parts: Sequence[Any]) -> Any:
        match node:
            case Truth() | Num():
                return node.value
            case Name():
                return read[node.name] if node.name in read else names[node.name]
            case Lookup():
                table = read[node.array]
                places = parts if table.dim() == len(parts) else (names[ELEMENT], *parts)
                return table[
                    tuple(nearest(place, size) for place, size in zip(places, table.shape, strict=True))
                ]
            case Arith():
                return reduce(_JOIN[node.op], parts) if len(parts) > 1 else _ALONE[node.op](parts[0])
            case Compare():
                return COMPARE[node.op](*parts)
            case And():
                return reduce(lambda a, b: a & b, parts)
            case Or():
                return reduce(lambda a, b: a | b, parts)
            case Not():
                return not parts[0] if isinstance(parts[0], bool) else ~parts[0]

    return expr.fold(node, step)


def nearest(place: Any, size: int) -> Any:
    """The place, or the end that it lies beyond."""
    return place.clamp(0, size - 1) if isinstance(place, Tensor) else max(0, min(size - 1, place))


def _least(a: Any, b: Any) -> Any:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        a, b = (a, b) if isinstance(a, Tensor) else (b, a)
        return torch.minimum(a, b) if isinstance(b, Tensor) else a.clamp(max=b)
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


_JOIN: dict[str, Callable[[Any, Any], Any]] = {
    **{"+": add, "-": sub, "*": mul, "%": mod, "min": _least},
    "//": lambda a, b: a // b,
    "max": lambda a, b: -_least(-a, -b),
}
_ALONE: dict[str, Callable[[Any], Any]] = {"neg": neg, "abs": abs, "min": pos, "max": pos}
