"""lattend same: whether two rules attend to the same pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lattend.cli.arguments import (
    At,
    Json,
    RuleText,
    argument,
    complete_rule,
    read_numbers,
    read_rule,
)
from lattend.cli.failures import NO, YES, in_options
from lattend.cli.output import say, say_json, width
from lattend.errors import NamingError, NoClosedForm, NotAffineError
from lattend.report.table import GAP, fitted
from lattend.wording import listed

if TYPE_CHECKING:
    from lattend.rules import Rule

EXAMPLES = (
    'lattend same "k <= q" "not k > q"',
    'lattend same "strided(3)" "windowed(4)"',
    "lattend same strided windowed --at t=3,w=4",
    'lattend same causal "strided(3)" --count',
)
PARTS = ("both", "only the first", "only the second")


def same(
    rule: RuleText,
    other: Annotated[str, argument("OTHER", "The rule to compare it with.", autocompletion=complete_rule)],
    at: At = None,
    count: Annotated[
        bool, typer.Option("--count", help="Count the pairs of both, and those that only one has.")
    ] = False,
    json: Json = False,
) -> int:
    """Whether two rules attend to the same pairs.

    Decided for all sizes and parameters that --at gives no number; where they differ, the smallest pair that
    only one has.
    The exit code is 0 when they are the same and 1 when they differ.
    """
    numbers = read_numbers(at)
    first, second = _at([read_rule(rule), read_rule(other)], numbers)
    witness = first.difference(second)
    if json:
        found = witness and {
            "at": witness.values,
            "pair": list(witness.pair),
            "attended_by": witness.attended_by,
        }
        counts = {"counts": _counts_data(first, second)} if count else {}
        say_json({"rules": [str(first), str(second)], "same": witness is None, "witness": found, **counts})
    else:
        say(f"the same pairs{_where(first, second, numbers)}" if witness is None else f"different: {witness}")
        if count:
            say("\n".join(_count_lines(first, second)))
    return YES if witness is None else NO


def _where(first: Rule, second: Rule, numbers: dict[str, int]) -> str:
    """At which numbers the rules were compared."""
    if not numbers:
        return ", always"
    given = ", ".join(f"{name} = {value}" for name, value in numbers.items())
    free = listed([*dict.fromkeys([*first.free, *second.free])])
    return f" at {given}" + (f", for every {free}" if free else "")


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
    """Of each part a number, or the pieces of its formula; null where there is none."""
    data: dict[str, Any] = {}
    for name, part in _parts(first, second).items():
        try:
            found = part.count()
            data[name] = found if isinstance(found, int) else found.json()["pieces"]
        except (NoClosedForm, NotAffineError):
            data[name] = None
    return data


def _at(rules: list[Rule], numbers: dict[str, int]) -> list[Rule]:
    """Both rules at the numbers of those letters that they have."""
    known = [name for rule in rules for name in rule.free]
    unknown = next((name for name in numbers if name not in known), None)
    if unknown is not None:
        raise NamingError(f"--at: neither rule has {unknown}; they have {', '.join(dict.fromkeys(known))}")
    return [rule.at(**{name: numbers[name] for name in rule.free if name in numbers}) for rule in rules]
