"""Repair: the texts that a person may have meant by one that is no rule."""

from __future__ import annotations

from lattend.errors import LattendError, TextError
from lattend.rules.reader import read_rule

STEPS = 6  # mistakes that are mended one after another
LONG = 400  # characters; of a longer text only one


def repaired(error: TextError) -> list[str]:
    """The texts that are rules after the fewest changes that errors suggest, the likeliest first.

    A long text is changed once, be it a rule then or not.

    >>> from lattend.rules.reader import rule
    >>> try:
    ...     rule("j =< i && i - j < 8")
    ... except TextError as mistake:
    ...     repaired(mistake)
    ['k <= q and q - k < 8']
    """
    once = [suggestion.applied(error.text) for suggestion in error.suggestions]
    long = len(error.text) > LONG
    steps = 1 if long else STEPS
    ends = [(_followed(text, steps - 1), text) for text in dict.fromkeys(once) if text != error.text]
    fewest = min((found[0] for found, _ in ends if found), default=0)
    whole = [found[1] for found, _ in ends if found and found[0] == fewest]
    mended = [text for _, text in ends] if long else []
    return [*dict.fromkeys(whole or mended)]


def _followed(text: str, steps: int) -> tuple[int, str] | None:
    """How many more changes make the text a rule, and which it then is."""
    for taken in range(steps + 1):
        try:
            read_rule(text)
        except TextError as mistake:
            if not mistake.suggestions:
                return None
            text = mistake.suggestions[0].applied(text)
        except LattendError:
            return None
        else:
            return taken, text
    return None
