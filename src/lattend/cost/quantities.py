"""Quantities: what can be asked of a cost, what each is called in a table, and how it may be typed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, overload

from lattend.cost.layer import MULTIPLY_ADDS, OPERATIONS
from lattend.errors import NamingError
from lattend.wording import close_names, cut

if TYPE_CHECKING:
    from lattend.cost.cost import Cost
    from lattend.counts.count import Count

MEMORY = ("bytes_read", "bytes_written", "saved_activations", "cache")
SUMS = {"operations": ("multiplies", "adds"), "bytes": ("bytes_read", "bytes_written")}
AT_NUMBERS = ("peak_activations", "scalar_depth")  # no formulas: known when every size has a number
QUANTITIES = ("parameters", MULTIPLY_ADDS, *OPERATIONS, *SUMS, *MEMORY, "depth", "path", *AT_NUMBERS)
WORK = (MULTIPLY_ADDS, "multiplies", "adds", "operations", "exponentials", "divisions", "functions")

# What a quantity is called where people read it, if not by its name
LABELS = {
    "multiply_adds": "multiply-adds",
    "operations": "operations, × and +",
    "bytes": "bytes read and written",
    "bytes_read": "bytes read",
    "bytes_written": "bytes written",
    "saved_activations": "saved activations, numbers",
    "peak_activations": "peak activations, numbers",
    "cache": "KV cache, numbers",
    "depth": "sequential depth",
    "scalar_depth": "scalar depth, sums as trees",
    "path": "maximum path length",
}
STATE = "recurrent state, numbers"  # the cache of a recurrent net
# What else people type, and what they may mean by a word that says less
_SAME = {
    "recurrent_state": "cache",
    "training_memory": "saved_activations",
    "peak_memory": "peak_activations",
}
_MEANT = {
    **dict.fromkeys(("flops", "time"), "operations"),
    **dict.fromkeys(("memory", "space"), "saved_activations"),
    **{"macs": MULTIPLY_ADDS, "weights": "parameters", "steps": "depth"},
}


class Quantity:
    """A quantity of a cost, by the name it has there: a number, or a formula while a size is open."""

    def __init__(self, about: str) -> None:
        self.__doc__ = about

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, cost: None, owner: type) -> Quantity: ...
    @overload
    def __get__(self, cost: Cost, owner: type) -> Count | int: ...
    def __get__(self, cost: Cost | None, owner: type) -> Quantity | Count | int:
        return self if cost is None else cost.value(self.name)


def label(quantity: str) -> str:
    """What a quantity is called where people read it."""
    return LABELS.get(quantity, quantity)


def label_and_name(quantity: str, called: str | None = None) -> str:
    """The same with the short name that may be typed for it: `sequential depth (depth)`."""
    name = label(quantity) if called is None else called
    return name if _typed(name) == quantity else f"{name} ({quantity})"


def quantity_named(text: str) -> str:
    """The quantity a person means: by its name, by its label, with or without the name behind it.

    >>> (
    ...     quantity_named("KV cache"),
    ...     quantity_named("sequential depth (depth)"),
    ...     quantity_named("Multiply-adds"),
    ... )
    ('cache', 'depth', 'multiply_adds')
    """
    typed = _typed(text)
    labels = {_typed(label(name)): name for name in QUANTITIES}
    known = {**labels, **_SAME, **{name: name for name in QUANTITIES}}
    if typed in known:
        return known[typed]
    near = close_names(typed, [*known, *_MEANT], 0.7)
    meant = [_MEANT.get(word) or known[word] for word in near]
    hint = f". Did you mean {meant[0]}?" if meant else ""
    raise NamingError(f"a cost has no {cut(text)}; it has {', '.join(QUANTITIES)}{hint}")


def _typed(text: str) -> str:
    """`KV cache, numbers (cache)` as kv_cache: without what stands behind a comma or in brackets."""
    bare = text.partition(",")[0]
    begin, end = bare.find("("), bare.rfind(")")
    bare = (bare[:begin] + bare[end + 1 :] if 0 <= begin < end else bare).strip()
    return re.sub(r"[\s_-]+", "_", bare).lower()
