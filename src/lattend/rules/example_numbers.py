"""Example numbers of letters that nobody gave any: small to draw a rule, real to price a layer."""

from __future__ import annotations

DRAWN = {"n": 12, "m": 12, "rows": 6, "cols": 6, "depth": 3, "heads": 2}
PRICED = {
    **{"n": 4096, "m": 4096, "rows": 64, "cols": 64, "depth": 16, "heads": 8, "d": 512, "D_i": 512},
    **{"layers": 12, "l": 12, "k": 3, "c": 3, "vocabulary": 50257},
}


def drawn_number(name: str) -> int:
    """The number at which a picture of few squares shows what a rule is.

    >>> drawn_number("n"), drawn_number("t")
    (12, 3)
    """
    return DRAWN.get(name, 3)


def priced_number(name: str) -> int:
    """The number that a layer of a model might have.

    >>> priced_number("n"), priced_number("D_hid")
    (4096, 64)
    """
    return PRICED.get(name, 64)
