"""What a profile prints: a tree of modules, each with what it costs, those within it included."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from lattend.cost.measure.profile import ModuleCost, Profile
from lattend.cost.measure.tally import NOTHING, Tally
from lattend.cost.result import MultiplyAdds, totals
from lattend.cost.statement import COLUMNS
from lattend.report.numbers import with_unit
from lattend.report.report import Report
from lattend.report.table import Table


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
            self.parameters + sum(found[0] for found in inner),
            sum((found[1] for found in inner), self.forward),
            sum((found[2] for found in inner), self.backward),
        )

    @property
    def is_operator(self) -> bool:
        return not self.kind

    @property
    def shape(self) -> tuple[object, ...]:
        """What equal layers have in common: all but the name."""
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
