"""Matrices as the page has them: rows of texts, as they are typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

LONGEST = 200  # characters of a number
MOST = 24  # rows, and columns

Text = Annotated[str, Field(max_length=LONGEST)]
Row = Annotated[list[Text], Field(max_length=MOST)]
Rows = Annotated[list[Row], Field(max_length=MOST)]


def literals(rows: Sequence[Sequence[str]]) -> list[list[int | float | str]]:
    """The rows as one writes them in Python: 1 and 0.5 as numbers, 1/3 as a text.

    >>> literals([["1", "0.50", "1/3"]])
    [[1, 0.5, '1/3']]
    """
    return [[literal(text) for text in row] for row in rows]


def literal(text: str) -> int | float | str:
    """A number that Python writes as shortly and exactly, or the text itself."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if len(text) <= 15 and text.strip("+-").replace(".", "").isdecimal() and text.isascii():
            return number
    return text
