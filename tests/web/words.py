"""Words of the page, in which there may be formulas, as one text."""

from __future__ import annotations

from typing import Any


def text_of(words: Any) -> str:
    """A text, or its runs of words and formulas."""
    return words if isinstance(words, str) else "".join(run["text"] for run in words)
