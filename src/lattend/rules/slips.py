"""Slips: letters of a rule that are read as new parameters, and may be others mistyped."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from lattend.rules.axes import RESERVED
from lattend.rules.language.python_text import is_python
from lattend.rules.rule import Rule

WORD = 4  # letters of a name that may be a word misspelt
NEAR = 0.8


@dataclass(frozen=True)
class Slip:
    """A parameter, the name that may be meant by it, and the rule's text with that."""

    name: str
    meant: str
    text: str


def slips(rule: Rule) -> list[Slip]:
    """Parameters that look like a position, a size or another parameter: qq, K, windw beside window.

    >>> from lattend.rules.reader import rule
    >>> slips(rule("k <= qq"))
    [Slip(name='qq', meant='q', text='k <= q')]
    """
    if rule.source is None or rule.about is not None or is_python(rule.source):
        return []
    found: list[Slip] = []
    for name in rule.parameters:
        others = [*rule.positions, *rule.sizes, *(other for other in rule.parameters if other != name)]
        meant = _meant(name, others)
        if meant and (meant not in rule.parameters or _uses(rule, name) < _uses(rule, meant)):
            found.append(Slip(name, meant, re.sub(rf"\b{name}\b", meant, rule.source)))
    return found


def _meant(name: str, known: list[str]) -> str:
    """The known name that this one is when letters are not doubled or capital, or that it nearly is."""
    plain = re.sub(r"(.)\1+", r"\1", name.lower())
    if plain in known and plain != name:
        return plain
    words = [other for other in known if len(other) >= WORD and other not in RESERVED]
    return next(iter(difflib.get_close_matches(name, words, 1, NEAR)), "") if len(name) >= WORD else ""


def _uses(rule: Rule, name: str) -> int:
    return len(re.findall(rf"\b{name}\b", rule.source or ""))
