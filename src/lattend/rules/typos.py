"""Typos: parameters that may be mistyped names, and corrections of texts that are not rules."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from lattend.errors import LattendError, TextError
from lattend.rules.axes import RESERVED
from lattend.rules.language.python_text import is_python
from lattend.rules.reader import read_rule
from lattend.rules.rule import Rule

MIN_WORD = 4  # letters of a name that may be a misspelt word
SIMILAR = 0.8
MAX_CORRECTIONS = 6  # mistakes corrected one after another
LONG = 400  # characters; a longer text is corrected only once


@dataclass(frozen=True)
class Typo:
    """A parameter, the name that was probably meant, and the rule's text with that name."""

    name: str
    meant: str
    text: str


def typos(rule: Rule) -> list[Typo]:
    """Returns parameters that look like a position, a size or another parameter: qq, K, windw beside window.

    >>> from lattend.rules.reader import rule
    >>> typos(rule("k <= qq"))
    [Typo(name='qq', meant='q', text='k <= q')]
    """
    if rule.source is None or rule.about is not None or is_python(rule.source):
        return []
    suspects: list[Typo] = []
    for name in rule.parameters:
        others = [*rule.positions, *rule.sizes, *(other for other in rule.parameters if other != name)]
        meant = _meant(name, others)
        if meant and (meant not in rule.parameters or _uses(rule, name) < _uses(rule, meant)):
            suspects.append(Typo(name, meant, re.sub(rf"\b{name}\b", meant, rule.source)))
    return suspects


def _meant(name: str, known: list[str]) -> str:
    """Returns the known name that equals this one without doubled or capital letters, or the closest one."""
    plain = re.sub(r"(.)\1+", r"\1", name.lower())
    if plain in known and plain != name:
        return plain
    words = [other for other in known if len(other) >= MIN_WORD and other not in RESERVED]
    return next(iter(difflib.get_close_matches(name, words, 1, SIMILAR)), "") if len(name) >= MIN_WORD else ""


def _uses(rule: Rule, name: str) -> int:
    return len(re.findall(rf"\b{name}\b", rule.source or ""))


def corrected(error: TextError) -> list[str]:
    """Returns the rules that need the fewest suggested corrections, the likeliest first.

    A long text is corrected once, even if the result is not a rule.

    >>> from lattend.rules.reader import rule
    >>> try:
    ...     rule("j =< i && i - j < 8")
    ... except TextError as mistake:
    ...     corrected(mistake)
    ['k <= q and q - k < 8']
    """
    applied = (suggestion.applied(error.text) for suggestion in error.suggestions)
    texts = [text for text in dict.fromkeys(applied) if text != error.text]
    is_long = len(error.text) > LONG
    corrections = [_corrected(text, 0 if is_long else MAX_CORRECTIONS - 1) for text in texts]
    fewest = min((correction[0] for correction in corrections if correction), default=0)
    rules = [correction[1] for correction in corrections if correction and correction[0] == fewest]
    return [*dict.fromkeys(rules or (texts if is_long else []))]


def _corrected(text: str, most: int) -> tuple[int, str] | None:
    """Returns how many more corrections make the text a rule, and that rule; None if `most` do not."""
    for count in range(most + 1):
        try:
            read_rule(text)
        except TextError as mistake:
            if not mistake.suggestions:
                return None
            text = mistake.suggestions[0].applied(text)
        except LattendError:
            return None
        else:
            return count, text
    return None
