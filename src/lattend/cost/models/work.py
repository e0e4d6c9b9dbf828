"""Work: multiply-adds in three columns, part by part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lattend.cost.models.parts import GROUPS
from lattend.cost.statement import COLUMNS
from lattend.errors import NamingError


@dataclass(frozen=True)
class Row:
    """The multiply-adds of one kind of part."""

    name: str
    needed: int = 0
    executed: int = 0
    dense: int = 0


@dataclass(frozen=True)
class Work:
    """Multiply-adds of one run over `batch` sequences; `work["attention"].needed` is one of its numbers."""

    title: str
    length: int
    batch: int
    tile: int
    rows: tuple[Row, ...]

    @property
    def tokens(self) -> int:
        return self.length * self.batch

    @property
    def needed(self) -> int:
        """Multiply-adds on marked squares, and those of all matrices."""
        return sum(row.needed for row in self.rows)

    @property
    def executed(self) -> int:
        """The same with whole tiles, and with what is computed again."""
        return sum(row.executed for row in self.rows)

    @property
    def dense(self) -> int:
        """What a counter reports that ignores the rule."""
        return sum(row.dense for row in self.rows)

    def __getitem__(self, name: str) -> Row:
        for row in self.rows:
            if row.name == name:
                return row
        raise NamingError(f"there is no row {name!r}; there are {', '.join(row.name for row in self.rows)}")

    def __str__(self) -> str:
        total = Row("total", self.needed, self.executed, self.dense)
        lines = [("multiply-adds", *COLUMNS)]
        lines += [(row.name, *(f"{getattr(row, c):,}" for c in COLUMNS)) for row in (*self.rows, total)]
        widths = [max(len(line[place]) for line in lines) for place in range(4)]
        body = [
            "  ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        size = f"length {self.length:,}" + (f", batch {self.batch:,}" if self.batch > 1 else "")
        return "\n".join([f"{self.title}, {size}", *(line.rstrip() for line in body)])

    def json(self) -> dict[str, Any]:
        """All of it in plain numbers and texts, as JSON holds them."""
        return {
            "title": self.title,
            "length": self.length,
            "batch": self.batch,
            "tile": self.tile,
            "total": {column: getattr(self, column) for column in COLUMNS},
            "parts": {row.name: {column: getattr(row, column) for column in COLUMNS} for row in self.rows},
        }


def gathered(found: Iterable[Row], times: int = 1) -> tuple[Row, ...]:
    """One row a kind of part, in the order of GROUPS; every number `times` over."""
    sums = {name: [0, 0, 0] for name in GROUPS}
    for row in found:
        for place, column in enumerate(COLUMNS):
            sums[row.name][place] += getattr(row, column) * times
    return tuple(Row(name, *numbers) for name, numbers in sums.items())
