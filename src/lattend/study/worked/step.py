"""Step: one step of the work: what is worked out, by which formula, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.report.shown import Shown
from lattend.study.worked.entry import LONGEST, LONGEST_FRACTION, MatrixEntry

Rows = tuple[tuple[MatrixEntry, ...], ...]


@dataclass(frozen=True, eq=False)
class Step(Shown):
    """A step: one table of numbers, or one a head.

    `exact`, `decimals` and `values` are rows of numbers; where `per_head` is true, a list of them.
    """

    name: str
    title: str
    formula: str
    tables: tuple[Rows, ...]
    per_head: bool = False
    down: str = "query"  # what a row is
    across: str = ""  # what a column is

    @property
    def exact(self) -> Any:
        """The numbers themselves, as sympy holds them: e/(e^2 + 2e + 1), 1/4; -inf where the rule masks."""
        return self._nested(lambda entry: entry.exact)

    def decimals(self, places: int = 4) -> Any:
        """The numbers rounded, as texts."""
        return self._nested(lambda entry: entry.decimal(places))

    @property
    def values(self) -> NDArray[np.float64]:
        """The numbers as floats: [rows, columns], or [heads, rows, columns]."""
        return np.array(self._nested(lambda entry: float(entry.value)))

    @cached_property
    def readable(self) -> bool:
        """Whether every exact form is short enough to be read."""
        return all(entry.text is not None for rows in self.tables for row in rows for entry in row)

    def _nested(self, read: Callable[[MatrixEntry], Any]) -> Any:
        nested = [[[read(entry) for entry in row] for row in rows] for rows in self.tables]
        return nested if self.per_head else nested[0]

    def json(self, places: int = 4) -> dict[str, Any]:
        """The step as plain data; exact forms are texts, null where they are too long to be read."""
        return {
            "name": self.name,
            "title": self.title,
            "formula": self.formula,
            "exact": self._nested(lambda entry: entry.text),
            "decimals": self.decimals(places),
        }

    def __str__(self) -> str:
        from lattend.study.worked.terminal import step_text

        return step_text(self)

    def __repr__(self) -> str:
        rows = self.tables[0]
        heads = f"{len(self.tables)} × " if self.per_head else ""
        return f"<Step {self.name}: {heads}{len(rows)} × {len(rows[0])}>"


def plain(rows: Rows) -> bool:
    """Whether all numbers are whole, so that they need no decimals beside them."""
    return all(entry.text == entry.decimal(0) for row in rows for entry in row)


def too_long(steps: Sequence[Step], show: str = "both") -> list[str]:
    """Why steps show decimals alone, in one sentence; none where exact forms are short or not asked for."""
    names = [step.name for step in steps if not step.readable]
    if show == "decimal" or not names:
        return []
    where = "here" if len(steps) == 1 else f"in {', '.join(names)}"
    return [
        f"decimals alone {where}: exact forms have more than {LONGEST} characters, or fractions of more than "
        f"{LONGEST_FRACTION}; .exact has them"
    ]
