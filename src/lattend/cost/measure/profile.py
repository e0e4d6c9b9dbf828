"""Profile: the cost of a module as a tree, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from lattend.cost.layer import COLUMNS
from lattend.cost.measure.tally import NOTHING, Tally
from lattend.cost.result import Counted, MultiplyAdds, Result, not_counted, totals
from lattend.errors import NamingError
from lattend.report.numbers import with_unit
from lattend.report.report import Report
from lattend.report.table import WIDTH, Table

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
    """The cost of a module on its inputs: rows, totals, and what could not be counted.

    `unknown` are the operators whose arithmetic is not known, with how often they ran: they are in no number.
    `notes` say where a column is not exact. `tiles` says what executes attended pairs: `64 × 64 tiles`,
    or `by native`, a kernel with tiles of its own.
    """

    JSON = "title parameters multiply_adds forward backward rows unknown notes tiles"

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

    def report(self, depth: int | None = None) -> Report:
        """The printed report: totals, then modules down to `depth`, equal layers folded."""
        return report_of(self, depth)

    def text(self, width: int | None = WIDTH, depth: int | None = None) -> str:
        """The report in lines of at most `width` characters, down to `depth` modules within modules."""
        return self.report(depth).text(width)


@dataclass
class Branch:
    """A module and what is within it; an operator of its own is a branch without a row."""

    name: str  # within its parent
    kind: str
    calls: int = 1
    parameters: int = 0
    forward: Tally = NOTHING
    backward: Tally = NOTHING
    within: list[Branch] = field(default_factory=list["Branch"])

    @property
    def whole(self) -> tuple[int, Tally, Tally]:
        """Parameters, forward and backward, all that is within it included."""
        inner = [branch.whole for branch in self.within if not branch.is_operator]
        return (
            self.parameters + sum(totals[0] for totals in inner),
            sum((totals[1] for totals in inner), self.forward),
            sum((totals[2] for totals in inner), self.backward),
        )

    @property
    def is_operator(self) -> bool:
        return not self.kind

    @property
    def shape(self) -> tuple[object, ...]:
        """The properties that equal layers share: all but the name."""
        return (self.kind, self.calls, self.whole, tuple((b.name, b.shape) for b in self.within))

    @property
    def is_shown(self) -> bool:
        parameters, forward, backward = self.whole
        return bool(parameters or forward.dense or backward.dense)


def report_of(profile: Profile, depth: int | None = None) -> Report:
    """Totals in full, the tree of modules in short numbers, then what is not exact or not counted."""
    both = bool(profile.backward)
    root = tree(profile)
    head = ("module", "parameters", *COLUMNS, *(["backward"] if both else []))
    body = [_cells(root, profile.title, both), *_lines(root, "", both, depth)]
    notes = list(profile.notes)
    if any("×)" in row[0] for row in body):
        notes.insert(0, "A line of several equal layers gives the numbers of one of them.")
    return Report(profile.heading, [*_totals(profile), Table(head, body), *([""] if notes else []), *notes])


def _totals(profile: Profile) -> list[Table | str]:
    """Both ways, and what is done beside the products; said to be incomplete where something is unknown."""
    but = ", incomplete" if profile.unknown else ""
    ways = {"multiply-adds": profile.forward}
    if profile.backward:
        ways = {"multiply-adds forward": profile.forward, "multiply-adds backward": profile.backward}
    rows = {f"{name}{but}": way.multiply_adds for name, way in ways.items()}
    others = profile.total.others.items()
    rows |= {f"other {name}{but}": MultiplyAdds(count, count, count) for name, count in others}
    return [totals(profile.parameters, rows, profile.tiles), *([profile.missing] if profile.unknown else [])]


def tree(profile: Profile) -> Branch:
    """The rows as a tree, by their names."""
    root = Branch("", profile.title)
    known = {"": root}
    for row in profile.rows:
        if row.name not in known:
            parent, _, name = row.name.rpartition(".")
            found = Branch(name, row.kind)
            known.get(parent, root).within.append(found)
            known[row.name] = found
        _fill(known[row.name], row)
    return root


def _fill(branch: Branch, row: ModuleCost) -> None:
    branch.kind, branch.calls, branch.parameters = row.kind or branch.kind, row.calls, row.parameters
    branch.forward, branch.backward = row.forward, row.backward
    branch.within += [
        Branch(name, "", forward=forward, backward=backward)
        for name, (forward, backward) in row.operations.items()
    ]


def _lines(branch: Branch, indent: str, both: bool, depth: int | None) -> list[tuple[str, ...]]:
    if depth == 0:
        return []
    inner = [found for found in branch.within if found.is_shown]
    modules = [found for found in inner if not found.is_operator]
    operators = [found for found in inner if found.is_operator] if modules else []
    groups = [list(found) for _, found in groupby(modules, lambda b: (b.name.isdigit() or id(b), b.shape))]
    lines: list[tuple[str, ...]] = []
    for number, group in enumerate([*([one] for one in operators), *groups], 1):
        last = number == len(operators) + len(groups)
        first = group[0]
        name = first.name
        if len(group) > 1:
            name = f"{first.name} … {group[-1].name} ({len(group)}×)"
        name = f"{indent}{'└ ' if last else '├ '}{name}"
        lines.append(_cells(first, name, both))
        lines += _lines(first, indent + ("  " if last else "│ "), both, None if depth is None else depth - 1)
    return lines


def _cells(branch: Branch, name: str, both: bool) -> tuple[str, ...]:
    parameters, forward, backward = branch.whole
    name += f" {branch.kind}" if branch.name and branch.kind else ""
    name += f", {branch.calls} calls" if branch.calls > 1 else ""
    numbers = [forward.needed, forward.executed, forward.dense] + ([backward.needed] if both else [])
    return (name, with_unit(parameters) if parameters else "", *map(with_unit, numbers))
