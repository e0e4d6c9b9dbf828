"""Result: what every cost answers to, whether it came from formulas, a configuration or a module that ran."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from lattend.cost.layer import COLUMNS
from lattend.counts.count import Count
from lattend.report.numbers import format_value
from lattend.report.report import Printed
from lattend.report.table import SAME, Table
from lattend.wording import many

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
        """What it is the cost of."""

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
        """What is in no number: `not counted: aten._fft_r2c (1 call)`; nothing where all is known."""
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
