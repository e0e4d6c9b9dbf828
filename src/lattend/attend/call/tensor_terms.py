"""Terms and conditions at positions that may be integers, NumPy arrays or tensors, without checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import add, invert, mod, mul, neg, pos, sub
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lattend.rules.language import expr
from lattend.rules.language.evaluation import COMPARE
from lattend.rules.language.expr import And, Arith, Compare, Lookup, Name, Node, Not, Num, Or, Truth

ELEMENT = "batch"  # the name of a batch element


def at_once(step: Callable[..., Any], *parts: Any) -> Any:
    """What the step gives."""
    return step(*parts)


def evaluate(
    node: Node, names: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None,
    do: Callable[..., Any] = at_once,
) -> Any:  # fmt: skip
    """The value of a term, or whether a condition holds, where the names have these values.

    Torch can differentiate it by the tensors, which are read at the nearest end where an index lies outside:
    a pair that is not attended may ask for any. A tensor with one axis more than it is looked up with has
    the batch first. `do` takes each step on what is under it: at once, unless it notes them.
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
                sizes = zip(places, table.shape, strict=True)
                return do(_looked_up, table, *[do(nearest, place, size) for place, size in sizes])
            case Arith():
                join = partial(do, _JOIN[node.op]) if len(parts) > 1 else None
                return do(_ALONE[node.op], parts[0]) if join is None else reduce(join, parts)
            case Compare():
                return do(COMPARE[node.op], *parts)
            case And():
                return reduce(partial(do, _both), parts)
            case Or():
                return reduce(partial(do, _either), parts)
            case Not():
                return not parts[0] if isinstance(parts[0], bool) else do(invert, parts[0])

    return expr.fold(node, step)


def _both(a: Any, b: Any) -> Any:
    return a & b


def _either(a: Any, b: Any) -> Any:
    return a | b


def _looked_up(table: Tensor, *places: Any) -> Tensor:
    return table[places]


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
