"""Titles: the titles, captions and shares written on pictures."""

from __future__ import annotations

from collections.abc import Sequence

from lattend.report.numbers import percent
from lattend.rules.rule import Rule
from lattend.wording import listed

LONGEST = 240  # characters of a rule's text that a title shows
LONGEST_NAME = 30  # and that stand over one grid of several


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


def beside(rules: Sequence[Rule], title: str | None) -> tuple[str, tuple[str, ...], list[str]]:
    """The title of rules side by side, the lines under it, and the name of each.

    Sizes that all of them share stand in the title. A rule whose text is too long to be a name is a letter.
    """
    sizes = {values(rule, rule.sizes) for rule in rules}
    own = ["" if len(sizes) == 1 else f"{values(rule, rule.sizes)}, " for rule in rules]
    names: list[str] = []
    lines: list[str] = []
    for letter, rule, size in zip(letters(len(rules)), rules, own, strict=True):
        full = _with(name(rule), (size + values(rule, rule.parameters)).removesuffix(", "))
        names.append(full if len(full) <= LONGEST_NAME else letter)
        lines += [f"{names[-1]}: {clipped(rule.text) if full == names[-1] else full}"] * (full != rule.text)
    kinds = dict.fromkeys(rule.about.name if rule.about else "" for rule in rules)
    heading = listed(list(kinds)) if all(kinds) else f"{len(rules)} rules"
    heading = _with(heading, sizes.pop() if len(sizes) == 1 else "")
    return (heading, tuple(lines), names) if title is None else (clipped(title), (heading, *lines), names)


def letters(many: int) -> list[str]:
    """A, B, C, and A1, B1 after Z."""
    return [f"{chr(ord('A') + at % 26)}{at // 26 or ''}" for at in range(many)]


def empty(rule: Rule) -> str:
    """Why a grid has no cells."""
    zero = ", ".join(f"{size} = 0" for size in rule.sizes if rule.values[size] == 0)
    return f"the grid is empty: {zero}"


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
