"""A profile as text: a tree of modules, each with what it costs, those within it included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from textwrap import wrap

from lattend.cost.measure.profile import Profile, Row
from lattend.cost.measure.tally import NOTHING, Tally
from lattend.cost.statement import COLUMNS

UNITS = ("", "k", "M", "G", "T", "P", "E", "Z")
GAP = "  "


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
    def shown(self) -> bool:
        parameters, forward, backward = self.whole
        return bool(parameters or forward.dense or backward.dense)


def table(profile: Profile, width: int = 100, depth: int | None = None) -> str:
    """The tree in lines of at most `width` columns, then the totals in full."""
    both = bool(profile.backward)
    head = ["module", "parameters", *COLUMNS, *(["backward"] if both else [])]
    root = tree(profile)
    body = [_cells(root, profile.title, both), *_lines(root, "", both, depth)]
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
    room = width - sum(widths[1:]) - len(GAP) * (len(head) - 1)
    widths[0] = min(widths[0], max(12, room))
    lines = [_row(line, widths) for line in [head, *body]]
    lines.insert(1, "─" * len(lines[0]))
    return "\n".join([*lines, "", *_totals(profile, width, any("×)" in line[0] for line in body))])


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


def _fill(branch: Branch, row: Row) -> None:
    branch.kind, branch.calls, branch.parameters = row.kind or branch.kind, row.calls, row.parameters
    branch.forward, branch.backward = row.forward, row.backward
    branch.within += [
        Branch(name, "", forward=forward, backward=backward)
        for name, (forward, backward) in row.operations.items()
    ]


def _lines(branch: Branch, indent: str, both: bool, depth: int | None) -> list[list[str]]:
    if depth == 0:
        return []
    inner = [found for found in branch.within if found.shown]
    modules = [found for found in inner if not found.is_operator]
    operators = [found for found in inner if found.is_operator] if modules else []
    groups = [list(found) for _, found in groupby(modules, lambda b: (b.name.isdigit() or id(b), b.shape))]
    lines: list[list[str]] = []
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


def _cells(branch: Branch, name: str, both: bool) -> list[str]:
    parameters, forward, backward = branch.whole
    name += f" {branch.kind}" if branch.name and branch.kind else ""
    name += f", {branch.calls} calls" if branch.calls > 1 else ""
    numbers = [forward.needed, forward.executed, forward.dense] + ([backward.needed] if both else [])
    return [name, short(parameters) if parameters else "", *map(short, numbers)]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    name = cells[0] if len(cells[0]) <= widths[0] else f"{cells[0][: widths[0] - 1]}…"
    others = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return GAP.join([name.ljust(widths[0]), *others]).rstrip()


def short(number: int) -> str:
    """A number in at most eight characters: 640, 11,272, 4.089 G.

    >>> short(1_814_073_344), short(11_689_512), short(99_999)
    ('1.814 G', '11.69 M', '99,999')
    """
    if abs(number) < 100_000:
        return f"{number:,}"
    scaled, unit = float(number), 0
    while abs(scaled) >= 999.95 and unit < len(UNITS) - 1:
        scaled, unit = scaled / 1000, unit + 1
    digits = 3 - len(str(int(abs(scaled)))) + 1
    return f"{scaled:.{max(0, digits)}f} {UNITS[unit]}"


def _totals(profile: Profile, width: int, folded: bool) -> list[str]:
    lines = [f"Parameters: {profile.parameters:,}"]
    ways = [("Multiply-adds", profile.forward)]
    if profile.backward:
        ways = [("Multiply-adds forward", profile.forward), ("backward", profile.backward)]
    for title, tally in ways:
        numbers = ", ".join(f"{name} {number:,}" for name, number in tally.multiply_adds.items())
        lines += wrap(f"{title}: {numbers}", width, subsequent_indent="  ")
    if profile.total.others:
        others = ", ".join(f"{name} {number:,}" for name, number in profile.total.others.items())
        lines += wrap(f"Beside the products: {others}", width, subsequent_indent="  ")
    if folded:
        lines.append("A line of several equal layers gives the numbers of one of them.")
    for note in profile.notes:
        lines += wrap(note, width, subsequent_indent="  ")
    if profile.unknown:
        told = (f"{name} ({calls} call{'s' * (calls > 1)})" for name, calls in profile.unknown.items())
        names = ", ".join(told)
        lines += wrap(f"Not known, and in no column: {names}", width, subsequent_indent="  ")
    return lines
