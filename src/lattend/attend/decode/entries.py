"""Arrays that grow while decoding: their entries come with the tokens, and stay with their keys.

A rule such as `k <= q and q <= last[k]` looks an array up at the query or at the key itself. So an entry
belongs to a token, and lies in the slot of its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lattend.attend.decode.step import MAX_POSITION, moved
from lattend.errors import DomainError, LattendError, NamingError, TensorError
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition, Lookup, Name, Node
from lattend.rules.rule import Rule

POSITIONS = ("q", "k")


def entry_at(array: str, position: str) -> str:
    """The name of the entry of an array at q or k: `last_at_k`."""
    return f"{array}_at_{position}"


def entries_of(growing: Sequence[str]) -> tuple[str, ...]:
    """The names of the entries of arrays that grow, both at q and at k."""
    return tuple(entry_at(name, position) for name in growing for position in POSITIONS)


def with_entries(rule: Rule, condition: Condition, growing: Sequence[str]) -> Condition:
    """The condition with names for entries of arrays that grow; raises where one is looked up elsewhere.

    >>> from lattend.rules.language.parser import parse
    >>> from lattend.rules.reader import rule
    >>> tree = rule("k <= q and q <= last[k]", data={"last": None})
    >>> expr.text(with_entries(tree, tree.condition, ("last",)))
    'k <= q and q <= last_at_k'
    """

    def step(node: Node, parts: Sequence[Node]) -> Node:
        built = expr.rebuilt(node, parts)
        if not isinstance(built, Lookup) or built.array not in growing:
            return built
        place = built.indices[0] if len(built.indices) == 1 else None
        if isinstance(place, Name) and place.name in POSITIONS:
            return Name(entry_at(built.array, place.name))
        raise LattendError(
            f'rule "{rule.text}" looks up {expr.term_text(built)}. An array that grows while decoding is '
            f"looked up at q or k alone; give all of {built.array} with the cache: "
            f"KVCache(rule, …, n=…, {built.array}=array)"
        )

    return expr.fold(condition, step)  # pyright: ignore[reportReturnType]  (a condition stays one)


def entries_given(
    growing: Sequence[str], given: Mapping[str, Any], shape: tuple[int, ...], device: torch.device
) -> dict[str, Tensor]:
    """The entries of each new token, [batch, s] in int64, where the keys are; raises unless all are there."""
    for name in given:
        if name not in growing:
            some = f"only {', '.join(growing)} grows" if growing else "no array of its rule grows"
            raise NamingError(f"the cache takes no {name} with a call: {some}")
    missing = [name for name in growing if name not in given]
    if missing:
        raise NamingError(f"give {missing[0]}=…, one entry for each new token: its array grows with the text")
    return {name: _entries(name, given[name], shape, device) for name in growing}


def _entries(name: str, given: Any, shape: tuple[int, ...], device: torch.device) -> Tensor:
    if isinstance(given, int):
        _check_size(name, abs(given))
        return torch.full(shape, given, device=device)
    if not isinstance(given, Tensor):
        whole = np.asarray(given)
        if whole.dtype.kind not in "biu" and whole.size:
            raise TensorError(f"{name} must hold whole numbers, got {whole.dtype}")
        _check_size(name, int(np.abs(whole).max(initial=0)))
        given = moved(whole.astype(np.int64), device)
    if given.is_floating_point() or given.is_complex():
        raise TensorError(f"{name} must hold whole numbers, got {given.dtype}")
    if given.dim() > 0 and given.shape not in ((shape[1],), shape):
        raise TensorError(
            f"{name} has shape {tuple(given.shape)}: give a number, ({shape[1]}) for the new tokens, "
            f"or {shape} with the batch"
        )
    return given.to(device, torch.int64).expand(shape)


def _check_size(name: str, most: int) -> None:
    if most > MAX_POSITION:
        raise DomainError(f"{name} has an entry of size {most}, and 2**40 is the largest")
