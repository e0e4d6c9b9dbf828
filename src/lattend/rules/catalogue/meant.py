"""What a wrong name of a rule may have meant: by its letters, or by what the catalogue says of rules."""

from __future__ import annotations

import difflib
import re
from collections import Counter

from lattend.rules.about import About
from lattend.rules.catalogue import CATALOGUE, NAMES

RARE = 1 / 4  # a word that at most four rules are described with says something


def unknown_rule(name: str) -> str:
    """That no rule has this name, and which ones are near it.

    >>> unknown_rule("sliding")
    'no rule is named sliding; did you mean strided or sliding_window? Or write a condition, such as k <= q'
    """
    found = _near(name, 0.8) or _by_meaning(name) or _near(name, 0.6)
    hint = f"did you mean {' or '.join(found)}?" if found else f"there are {', '.join(CATALOGUE)}."
    return f"no rule is named {name}; {hint} Or write a condition, such as k <= q"


def _near(name: str, least: float) -> list[str]:
    return difflib.get_close_matches(name.lower(), NAMES, 1, least)


def _by_meaning(name: str) -> list[str]:
    """The rule whose names, then whose description, share the rarest words with this one, and its alias."""
    wanted = _words(name)
    said = {rule: _described(rule) for rule in CATALOGUE}
    common = Counter(word for words in said.values() for word in words)
    named = {rule: _words(" ".join((rule, *_about(rule).aliases))) for rule in CATALOGUE}
    scores = {
        rule: sum(1 / common[word] for word in wanted & words) + len(wanted & named[rule])
        for rule, words in said.items()
    }
    best = max(scores, key=lambda rule: scores[rule])
    if scores[best] < RARE:
        return []
    return [best, *(alias for alias in _about(best).alias_names if wanted & _words(alias))]


def _about(rule: str) -> About:
    about = CATALOGUE[rule]().about
    assert about is not None  # every rule of the catalogue says what it is
    return about


def _described(rule: str) -> set[str]:
    about = _about(rule)
    return _words(" ".join((about.name, about.meaning, *about.aliases, *about.elsewhere)))


def _words(text: str) -> set[str]:
    return {word for word in re.findall("[a-z]+", text.lower()) if len(word) > 2}
