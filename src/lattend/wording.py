"""Wording: small pieces of sentences that all folders write alike."""

from __future__ import annotations


def many(count: int, noun: str) -> str:
    """The count and its noun, in the plural where there is not one.

    >>> many(1, "row"), many(1797, "digit")
    ('1 row', '1,797 digits')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def short(value: object) -> str:
    """A value as it is typed, cut after 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
