"""FlexAttention: a rule as its mask_mod and as its BlockMask, without an n x n step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor

from lattend.errors import NamingError
from lattend.rules.axes import HEAD
from lattend.rules.flat import flat_condition
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition, Lookup, Name, Node
from lattend.rules.language.python_code import python_code
from lattend.rules.rule import Rule

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

MAX_KNOWN = 256
_ARGUMENTS = {"q": Name("q_idx"), "k": Name("kv_idx"), HEAD: Name("h")}
_TAKEN = {"b", "h", "q_idx", "kv_idx", "torch", "make", "mask_mod", "abs", "min", "max"}


def mask_mod(rule: Rule, /, *, device: Any = None, **values: int) -> MaskMod:
    """The rule as a function (b, h, q_idx, kv_idx) for FlexAttention; its arrays become tensors on `device`.

    An image is read row by row: position qy*cols + qx.

    >>> from lattend.rules.reader import rule
    >>> band = mask_mod(rule("k <= q and q - k <= t"), t=2)
    >>> rule(band)
    <Rule k <= q and q - k <= 2>
    """
    bound = rule.at(**values).given()
    inner = [axis.queries for axis in bound.axes[1:]]
    used = {*expr.names(bound.condition), *inner}
    if missing := [name for name in bound.free if name in used]:
        raise NamingError(
            f'a mask_mod of "{rule.text}" needs a value for {" and ".join(missing)}: '
            f"give {', '.join(f'{name}=…' for name in missing)}"
        )
    condition = flat_condition(bound)
    arrays = {name: _name_in_python(name) for name in expr.arrays(condition)}
    written = expr.substituted(_renamed(condition, arrays), _ARGUMENTS)
    code = python_code(written, ("q_idx", "kv_idx", "h"), "torch")
    tensors = [torch.as_tensor(bound.data[name].copy(), device=device) for name in arrays]
    return _maker(code, tuple(arrays.values()))(*tensors)


@lru_cache(MAX_KNOWN)
def _maker(code: str, arrays: tuple[str, ...]) -> Callable[..., MaskMod]:
    """The function that gives a mask_mod of this code its tensors; equal rules share what torch compiles."""
    lines = (
        f"def make({', '.join(arrays)}):",
        "    def mask_mod(b, h, q_idx, kv_idx):",
        f"        return {code}",
        "    return mask_mod",
    )
    names: dict[str, Any] = {"torch": torch, "__name__": __name__}
    exec(compile("\n".join(lines), f"<mask_mod {code}>", "exec"), names)
    return names["make"]


def _name_in_python(name: str) -> str:
    return f"{name}_" if name in _TAKEN else name


def _renamed(condition: Condition, arrays: dict[str, str]) -> Condition:
    """The condition with its arrays called so."""

    def step(node: Node, parts: Sequence[Node]) -> Node:
        built = expr.rebuilt(node, parts)
        return Lookup(arrays[built.array], built.indices) if isinstance(built, Lookup) else built

    return cast(Condition, expr.fold(condition, step))
