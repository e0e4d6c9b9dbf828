"""Sizes and pixels as people type them: 8, 8x12; 3,4."""

from __future__ import annotations

import re

from lattend.errors import TextError

_SIZE = re.compile(r"\s*(\d{1,9})\s*(?:[x×,]\s*(\d{1,9})\s*)?")
_PIXEL = re.compile(r"\s*(\d{1,9})\s*[,x×\s]\s*(\d{1,9})\s*")


def read_size(name: str, text: str) -> int | tuple[int, int]:
    """`8` as 8, and `8x12` as (8, 12): rows by columns."""
    text = text.strip()
    found = _SIZE.fullmatch(text)
    if found is None:
        raise TextError(f"{name} is a whole number, or rows by columns as in 8x12", text, 0, len(text))
    return int(found[1]) if found[2] is None else (int(found[1]), int(found[2]))


def read_pixel(name: str, text: str) -> tuple[int, int] | None:
    """`3,4` as row 3, column 4; None where nothing is typed."""
    if not text.strip():
        return None
    found = _PIXEL.fullmatch(text)
    if found is None:
        raise TextError(f"{name} is a row and a column, as in 3,4", text, 0, len(text))
    return int(found[1]), int(found[2])
