"""Maths: a text that is a formula, with the same in LaTeX; and sentences in which there are some."""

from __future__ import annotations


class Maths(str):
    r"""A formula as people type it; `latex` is the same for who typesets it.

    >>> Maths("n^2/2", r"\frac{n^{2}}{2}")
    'n^2/2'
    """

    latex: str

    def __new__(cls, text: str, latex: str) -> Maths:
        found = super().__new__(cls, text)
        found.latex = latex
        return found


class Sentence(str):
    """Words and formulas one after another.

    >>> Sentence("costs more from ", Maths("n = 3", "n = 3"), " on")
    'costs more from n = 3 on'
    """

    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Sentence:
        found = super().__new__(cls, "".join(parts))
        found.parts = tuple(inner for part in parts for inner in parts_of(part) if inner)
        return found


def parts_of(text: str) -> tuple[str, ...]:
    """The words and formulas of a text; a plain one is all words."""
    return text.parts if isinstance(text, Sentence) else (text,)
