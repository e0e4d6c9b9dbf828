"""lattend same: whether two rules attend to the same pairs."""

from __future__ import annotations

from typing import Annotated

from lattend.cli.arguments import Json, RuleText, argument, complete_rule, read_rule
from lattend.cli.failures import NO, YES
from lattend.cli.output import say, say_json

EXAMPLES = (
    'lattend same "k <= q" "not k > q"',
    'lattend same "strided(3)" "windowed(4)"',
)


def same(
    rule: RuleText,
    other: Annotated[str, argument("OTHER", "The rule to compare it with.", autocompletion=complete_rule)],
    json: Json = False,
) -> int:
    """Whether two rules attend to the same pairs.

    Decided for all sizes and parameters; where they differ, the smallest pair that only one has.
    The exit code is 0 when they are the same and 1 when they differ.
    """
    first, second = read_rule(rule), read_rule(other)
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
