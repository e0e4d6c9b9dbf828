"""lattend same: whether two rules attend to the same pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lattend.cli.arguments import at_option, complete_rule, read_numbers, read_rule, rule_argument
from lattend.cli.command import Answer, Command, argument, flag
from lattend.cli.failures import NO, YES, in_options
from lattend.cli.output import say, say_json, width
from lattend.errors import NamingError, NoClosedForm, NotAffineError
from lattend.report.table import GAP, fitted
from lattend.wording import listed

if TYPE_CHECKING:
    from lattend.rules import Rule

PARTS = ("both", "only the first", "only the second")


@dataclass(frozen=True)
class SameCommand(Command):
    """Whether two rules attend to the same pairs.

    Decided for all sizes and parameters that --at gives no number; where they differ, the smallest pair that
    only one has.
    The exit code is 0 when they are the same and 1 when they differ.

        lattend same "k <= q" "not k > q"
        lattend same "strided(3)" "windowed(4)"
        lattend same strided windowed --at t=3,w=4
        lattend same causal "strided(3)" --count
    """

    rule: str = rule_argument()
    other: str = argument("OTHER", "The rule to compare it with.", complete=complete_rule)
    at: list[str] | None = at_option()
    count: bool = flag("Count the pairs of both, and those that only one has.")

    def answer(self) -> Answer:
        numbers = read_numbers(self.at)
        first, second = _at([read_rule(self.rule), read_rule(self.other)], numbers)
        witness = first.difference(second)
        if self.json:
            data = witness and {
                "at": witness.values,
                "pair": list(witness.pair),
                "attended_by": witness.attended_by,
            }
            counts = {"counts": _counts_data(first, second)} if self.count else {}
            say_json({"rules": [str(first), str(second)], "same": witness is None, "witness": data, **counts})
        else:
            say(
                f"the same pairs{_where(first, second, numbers)}"
                if witness is None
                else f"different: {witness}"
            )
            if self.count:
                say("\n".join(_count_lines(first, second)))
        return YES if witness is None else NO


def _where(first: Rule, second: Rule, numbers: dict[str, int]) -> str:
    """The numbers at which the rules were compared, in words."""
    if not numbers:
        return ", always"
    numbers_text = ", ".join(f"{name} = {value}" for name, value in numbers.items())
    free = listed([*dict.fromkeys([*first.free, *second.free])])
    return f" at {numbers_text}" + (f", for every {free}" if free else "")


def _parts(first: Rule, second: Rule) -> dict[str, Rule]:
    """The pairs that both rules attend, and those that one of them does."""
    first, second = first.baked(), second.baked()
    return dict(zip(PARTS, (first & second, first - second, second - first), strict=True))


def _count_lines(first: Rule, second: Rule) -> list[str]:
    lines: list[str] = []
    for name, part in _parts(first, second).items():
        try:
            pieces = str(part.count()).splitlines()
        except (NoClosedForm, NotAffineError) as reason:
            pieces = [f"no formula: {in_options(reason.reason)}"]
        if len(pieces) == 1:
            lines += fitted(f"{name}: {pieces[0]}", width())
        else:
            lines += [f"{name}:", *(line for piece in pieces for line in fitted(f"{GAP}{piece}", width()))]
    return lines


def _counts_data(first: Rule, second: Rule) -> dict[str, Any]:
    """The number of each part, or the pieces of its formula; None where there is none."""
    data: dict[str, Any] = {}
    for name, part in _parts(first, second).items():
        try:
            count = part.count()
            data[name] = count if isinstance(count, int) else count.json()["pieces"]
        except (NoClosedForm, NotAffineError):
            data[name] = None
    return data


def _at(rules: list[Rule], numbers: dict[str, int]) -> list[Rule]:
    """Both rules at the numbers of their letters."""
    known = [name for rule in rules for name in rule.free]
    unknown = next((name for name in numbers if name not in known), None)
    if unknown is not None:
        raise NamingError(f"--at: neither rule has {unknown}; they have {', '.join(dict.fromkeys(known))}")
    return [rule.at(**{name: numbers[name] for name in rule.free if name in numbers}) for rule in rules]
