"""Profile: what a module costs, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lattend.cost.measure.tally import NOTHING, Tally
from lattend.cost.result import Counted, Result, not_counted
from lattend.errors import NamingError
from lattend.report.report import Report
from lattend.report.table import WIDTH

WAYS = FORWARD, BACKWARD = "forward", "backward"


@dataclass(frozen=True)
class ModuleCost:
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
    def multiply_adds(self) -> Counted:
        """Both ways together."""
        return (self.forward + self.backward).multiply_adds

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
                name: {
                    "forward": forward.multiply_adds._asdict(),
                    "backward": backward.multiply_adds._asdict(),
                }
                for name, (forward, backward) in self.operations.items()
            },
        }


@dataclass(frozen=True, repr=False)
class Profile(Result):
    """What a module costs on given inputs: its rows, their totals, and what could not be counted.

    `unknown` are the operators whose arithmetic is not known, with how often they ran: they are in no number.
    `notes` say where a column is not exact. `tiles` says what executes attended pairs: `64 × 64 tiles`,
    or `by native`, a kernel with tiles of its own.
    """

    title: str
    rows: tuple[ModuleCost, ...]
    unknown: Mapping[str, int]
    notes: tuple[str, ...]
    tiles: str = ""

    @property
    def missing(self) -> str:
        """The unknown operators in words."""
        return not_counted(self.unknown) if self.unknown else ""

    @property
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
    def multiply_adds(self) -> Counted:
        """Both ways together; what `unknown` lists is in no number."""
        return self.total.multiply_adds

    @property
    def heading(self) -> str:
        """The module's class."""
        return self.title

    def row(self, name: str) -> ModuleCost:
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
            "multiply_adds": self.multiply_adds._asdict(),
            "forward": self.forward.json(),
            "backward": self.backward.json(),
            "rows": [row.json() for row in self.rows],
            "unknown": dict(self.unknown),
            "notes": list(self.notes),
            "tiles": self.tiles,
        }

    def report(self, depth: int | None = None) -> Report:
        """What it prints: totals, then modules within modules down to `depth`, equal layers folded."""
        from lattend.cost.measure.tree import report_of

        return report_of(self, depth)

    def text(self, width: int | None = WIDTH, depth: int | None = None) -> str:
        """The report in lines of at most `width` characters, down to `depth` modules within modules."""
        return self.report(depth).text(width)
