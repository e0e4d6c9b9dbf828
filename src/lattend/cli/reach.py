"""lattend reach: the attention span of a rule."""

from __future__ import annotations

from lattend.cli.arguments import At, Json, RuleText, read_numbers, read_rule
from lattend.cli.output import say, say_json, width

EXAMPLES = (
    "lattend reach strided",
    "lattend reach sparse_strided --at l=64",
)


def reach(rule: RuleText, at: At = None, json: Json = False) -> None:
    """The attention span: how far back and ahead of a query its keys can be.

    As formulas, along each axis. The greatest q - k decides the size of a cache.
    """
    chosen, values = read_rule(rule), read_numbers(at)
    found = chosen.at(**values).reach()
    if not json:
        say(found.text(width()))
        return
    axes = {
        query: {"back": axis.back.json()["pieces"], "ahead": axis.ahead.json()["pieces"]}
        for query, axis in found.axes.items()
    }
    say_json({"rule": chosen.text, "at": {**chosen.values, **values}, "axes": axes})
