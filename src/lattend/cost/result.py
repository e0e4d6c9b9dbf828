"""Result: what every cost answers to; and the quantities that can be asked of one, by name and label."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, overload

from lattend.cost.layer import COLUMNS, MULTIPLY_ADDS, OPERATIONS
from lattend.counts.count import Count
from lattend.errors import NamingError
from lattend.report.numbers import format_value
from lattend.report.report import Printed
from lattend.report.table import SAME, Table
from lattend.wording import close_names, cut, many

if TYPE_CHECKING:
    from lattend.cost.cost import Cost

N_co = TypeVar("N_co", covariant=True)
E_co = TypeVar("E_co", covariant=True)


class MultiplyAdds(NamedTuple, Generic[N_co, E_co]):
    """Multiply-adds of matrix products, convolutions and attention; formulas where sizes are open.

    `needed` are those of attended pairs, without multiplies by padding; `executed` those of the whole tiles
    that run, None while a size is open; `dense` what a tool reports that ignores the mask.
    """

    needed: N_co
    executed: E_co
    dense: N_co

    def __str__(self) -> str:
        return ", ".join(f"{name} {format_value(value)}" for name, value in self._asdict().items())


Counted = MultiplyAdds[int, int]  # every size has a number


class Result(Printed):
    """Parameters and multiply-adds under one name each, one short repr, one table, plain data."""

    @property
    @abstractmethod
    def heading(self) -> str:
        """A title: what was priced."""

    @property
    @abstractmethod
    def parameters(self) -> Count | int:
        """Numbers that are learned, each once."""

    @property
    @abstractmethod
    def multiply_adds(self) -> MultiplyAdds[Count | int, Count | int | None]:
        """Needed, executed and dense."""

    @property
    def missing(self) -> str:
        """Operators that were not counted: `not counted: aten._fft_r2c (1 call)`; empty if there are none."""
        return ""

    def __repr__(self) -> str:
        parameters, numbers = map(on_one_line, (format_value(self.parameters), str(self.multiply_adds)))
        rest = f"; {self.missing}" if self.missing else ""
        kind = type(self).__name__
        return f"<{kind} of {self.heading}: parameters {parameters}; multiply-adds {numbers}{rest}>"


def on_one_line(text: str) -> str:
    """The pieces of a formula behind each other: `4t when t <= 8, 800 when t >= 9`."""
    return ", ".join(" ".join(line.split()) for line in text.splitlines())


def not_counted(unknown: Mapping[str, int]) -> str:
    """`not counted: aten._fft_r2c (1 call)`."""
    calls_text = (f"{name} ({many(calls, 'call')})" for name, calls in unknown.items())
    return f"not counted: {', '.join(calls_text)}"


def totals(parameters: object, rows: Mapping[str, tuple[object, object, object]], tiles: str = "") -> Table:
    """The table that every result begins with; `=` says as needed, `tiles` in which pairs are executed."""
    lines: list[tuple[str, ...]] = [("parameters", format_value(parameters), SAME, SAME)]
    for name, columns in rows.items():
        needed, *others = map(format_value, columns)
        lines.append((name, needed, *(SAME if cell == needed else cell for cell in others)))
    head = (f"{name}, {tiles}" if name == "executed" and tiles else name for name in COLUMNS)
    return Table(("", *head), lines)


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
    """The label of a quantity, as people read it."""
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
