"""lattend same: whether two rules attend to the same pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from lattend.cli.arguments import (
    At,
    Json,
    RuleText,
    argument,
    complete_rule,
    read_numbers,
    read_rule,
)
from lattend.cli.failures import NO, YES
from lattend.cli.output import say, say_json
from lattend.errors import NamingError

if TYPE_CHECKING:
    from lattend.rules import Rule

EXAMPLES = (
    'lattend same "k <= q" "not k > q"',
    'lattend same "strided(3)" "windowed(4)"',
    "lattend same strided windowed --at t=3,w=4",
)


def same(
    rule: RuleText,
    other: Annotated[str, argument("OTHER", "The rule to compare it with.", autocompletion=complete_rule)],
    at: At = None,
    json: Json = False,
) -> int:
    """Whether two rules attend to the same pairs.

    Decided for all sizes and parameters that --at gives no number; where they differ, the smallest pair that
    only one has.
    The exit code is 0 when they are the same and 1 when they differ.
    """
    first, second = _at([read_rule(rule), read_rule(other)], read_numbers(at))
    witness = first.difference(second)
    if json:
        found = witness and {
            "at": witness.values,
            "pair": list(witness.pair),
            "attended_by": witness.attended_by,
        }
        say_json({"rules": [str(first), str(second)], "same": witness is None, "witness": found})
    else:
        say("the same pairs, always" if witness is None else f"different: {witness}")
    return YES if witness is None else NO


def _at(rules: list[Rule], numbers: dict[str, int]) -> list[Rule]:
    """Both rules at the numbers of those letters that they have."""
    known = [name for rule in rules for name in rule.free]
    unknown = next((name for name in numbers if name not in known), None)
    if unknown is not None:
        raise NamingError(f"--at: neither rule has {unknown}; they have {', '.join(dict.fromkeys(known))}")
    return [rule.at(**{name: numbers[name] for name in rule.free if name in numbers}) for rule in rules]
