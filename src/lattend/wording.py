"""Wording: small pieces of sentences that all folders write alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from unicodedata import category

UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, marks of direction, halves of characters, line ends

LONGEST_NAME = 60  # characters of a name that may be misspelled


def many(count: int, noun: str) -> str:
    """The count and its noun, in the plural where there is not one.

    >>> many(1, "row"), many(1797, "digit")
    ('1 row', '1,797 digits')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Names as one says them.

    >>> listed(["causal", "strided", "windowed"])
    'causal, strided and windowed'
    """
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)


def visible(text: str) -> str:
    r"""The text with control characters spelt out, so that none acts on a terminal; line ends stay.

    >>> visible("k <= q\x1b[2J")
    'k <= q\\x1b[2J'
    """
    return "".join(
        letter.encode("unicode_escape").decode() if category(letter) in UNSEEN and letter != "\n" else letter
        for letter in text
    )


def close_names(text: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """The known name that is spelled almost like the text, if there is one; quick for a text of any length.

    >>> close_names("multiplys", ["adds", "multiplies"]), close_names("x" * 10**6, ["x"])
    (['multiplies'], [])
    """
    return get_close_matches(text, [*known], 1, cutoff) if len(text) <= LONGEST_NAME else []


def cut(text: str) -> str:
    """A name that a person wrote, or its beginning where it is too long to be one."""
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 3]}..."


def short(value: object) -> str:
    """A value as it is typed, cut after 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
