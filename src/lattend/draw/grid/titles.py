"""Titles: the titles, captions and shares written on pictures."""

from __future__ import annotations

from collections.abc import Sequence

from lattend.report.numbers import percent
from lattend.rules.rule import Rule

LONGEST = 240  # characters of a rule's text that a title shows


def amount(count: int, total: int, what: str = "pairs") -> str:
    """`21 of 64 pairs, 32.8%`."""
    return f"{count:,} of {total:,} {what}, {percent(count, total)}"


def name(rule: Rule) -> str:
    """What the catalogue calls the rule, else its text."""
    return rule.about.name if rule.about else clipped(rule.text)


def clipped(text: str) -> str:
    """The text on one line, cut where it is too long for a title."""
    printable = (c if c.isprintable() or c.isspace() else "?" for c in text[: 2 * LONGEST])
    text = " ".join("".join(printable).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def values(rule: Rule, names: Sequence[str]) -> str:
    """`n = 12, t = 3`, of those names that the rule has."""
    return ", ".join(f"{key} = {rule.values[key]:,}" for key in names if key in rule.values)


def heading(rules: Sequence[Rule], title: str | None) -> tuple[str, tuple[str, ...]]:
    """The title and the lines under it: what is drawn, and at which numbers."""
    if len(rules) == 1:
        (rule,) = rules
        at = values(rule, [*rule.sizes, *rule.parameters])
        own = _with(name(rule), at) if rule.about else name(rule)
        lines = [clipped(rule.text) if rule.about else at]
    else:
        sizes = values(rules[0], rules[0].sizes)
        both_named = all(rule.about for rule in rules)
        own = _with(" and ".join(map(name, rules)) if both_named else "A and B", sizes) + ", compared"
        lines = [
            f"{letter}: {_with(name(rule), values(rule, rule.parameters))}"
            + (f": {clipped(rule.text)}" if rule.about else "")
            for letter, rule in zip("AB", rules, strict=True)
        ]
    if title is None:
        return own, tuple(lines)
    return clipped(title), (own, *lines)


def _with(text: str, at: str) -> str:
    return f"{text} ({at})" if at else text


def several(numbers: Sequence[int]) -> str:
    """`15,625 by 1`: sizes put side by side."""
    return " by ".join(f"{number:,}" for number in numbers)


def first_to_last(many: int) -> str:
    """`0–8` for nine things counted from 0, `0` for one.

    >>> first_to_last(9)
    '0–8'
    """
    return f"0–{many - 1:,}" if many > 1 else "0"


def tile_note(sizes: tuple[int, int], what: str, rules: int) -> str:
    """`each tile is 16 by 16 pairs, shaded by how full it is`."""
    shown = "shaded by how full it is" if rules == 1 else f"coloured by the {what} in it"
    return f"each tile is {several(sizes)} {what}, {shown}"
