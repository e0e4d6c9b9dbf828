"""Profile: what a module costs, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lattend.cost.measure.tally import NOTHING, Tally
from lattend.errors import NamingError


@dataclass(frozen=True)
class Row:
    """One module: its own parameters, each counted once, and the operations that are in no module within it.

    `operations` are its products and attentions by the operator's name, forward and backward.
    """

    name: str
    kind: str
    parameters: int
    forward: Tally
    backward: Tally
    calls: int
    operations: Mapping[str, tuple[Tally, Tally]]

    @property
    def needed(self) -> int:
        """Multiply-adds of marked squares only, without those by padding, both ways together."""
        return self.forward.needed + self.backward.needed

    @property
    def executed(self) -> int:
        """Multiply-adds of the whole tiles that are touched, both ways together."""
        return self.forward.executed + self.backward.executed

    @property
    def dense(self) -> int:
        """Multiply-adds that a tool reports which ignores the rule, both ways together."""
        return self.forward.dense + self.backward.dense

    def json(self) -> dict[str, Any]:
        """All of it as JSON holds it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "parameters": self.parameters,
            "calls": self.calls,
            "forward": self.forward.json(),
            "backward": self.backward.json(),
            "operations": {
                name: {"forward": forward.multiply_adds, "backward": backward.multiply_adds}
                for name, (forward, backward) in self.operations.items()
            },
        }


@dataclass(frozen=True)
class Profile:
    """What a module costs on given inputs: its rows, their totals, and what could not be counted.

    `unknown` are the operators whose arithmetic is not known, with the number of their calls: they are in no
    column. `notes` say where a column is not exact.
    """

    title: str
    rows: tuple[Row, ...]
    unknown: Mapping[str, int]
    notes: tuple[str, ...]

    @cached_property
    def parameters(self) -> int:
        """The numbers that are learned; a parameter that is shared counts once."""
        return sum(row.parameters for row in self.rows)

    @cached_property
    def forward(self) -> Tally:
        """All operations of the forward pass."""
        return sum((row.forward for row in self.rows), NOTHING)

    @cached_property
    def backward(self) -> Tally:
        """All operations of the backward pass; nothing where it was not asked for."""
        return sum((row.backward for row in self.rows), NOTHING)

    @property
    def total(self) -> Tally:
        """All operations, both ways together."""
        return self.forward + self.backward

    @property
    def needed(self) -> int:
        """Multiply-adds of marked squares only, without those by padding, both ways together."""
        return self.total.needed

    @property
    def executed(self) -> int:
        """Multiply-adds of the whole tiles that are touched, both ways together."""
        return self.total.executed

    @property
    def dense(self) -> int:
        """Multiply-adds that a tool reports which ignores the rule, both ways together."""
        return self.total.dense

    def row(self, name: str) -> Row:
        """The row of the module with this name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise NamingError(f"there is no module {name!r} in this profile")

    def json(self) -> dict[str, Any]:
        """All of it in plain numbers, texts, lists and dictionaries, as JSON holds them."""
        return {
            "title": self.title,
            "parameters": self.parameters,
            "multiply_adds": self.total.multiply_adds,
            "forward": self.forward.json(),
            "backward": self.backward.json(),
            "rows": [row.json() for row in self.rows],
            "unknown": dict(self.unknown),
            "notes": list(self.notes),
        }

    def text(self, width: int = 100, depth: int | None = None) -> str:
        """A table of at most `width` columns, down to `depth` modules within modules; equal layers folded."""
        from lattend.cost.measure.table import table

        return table(self, width, depth)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        columns = ", ".join(f"{name} {number:,}" for name, number in self.total.multiply_adds.items())
        return f"<Profile of {self.title}: {self.parameters:,} parameters, multiply-adds {columns}>"
