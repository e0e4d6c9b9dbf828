"""Texts of the page: links, which carry its state, and words with formulas in them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode


def link_to(page: str, /, **state: Any) -> str:
    """The page at this state, as the page itself writes it: texts as they are, all else as JSON."""
    fields = {name: held if isinstance(held, str) else json.dumps(held) for name, held in state.items()}
    return f"#{page}?{urlencode(fields, quote_via=quote)}"


def text_of(words: Any) -> str:
    """A text, or its runs of words and formulas."""
    return words if isinstance(words, str) else "".join(run["text"] for run in words)
