"""Maths: a text that is a formula, with the same in LaTeX; and sentences in which there are some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Maths(str):
    r"""A formula as it is typed; `latex` is the same in LaTeX.

    >>> Maths("n^2/2", r"\frac{n^{2}}{2}")
    'n^2/2'
    """

    latex: str

    def __new__(cls, text: str, latex: str) -> Maths:
        self = super().__new__(cls, text)
        self.latex = latex
        return self

    def __getnewargs__(self) -> tuple[str, str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return str(self), self.latex


class Sentence(str):
    """Words and formulas one after another.

    >>> Sentence("costs more from ", Maths("n = 3", "n = 3"), " on")
    'costs more from n = 3 on'
    """

    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Sentence:
        self = super().__new__(cls, "".join(parts))
        self.parts = tuple(inner for part in parts for inner in parts_of(part) if inner)
        return self

    def __getnewargs__(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.parts


def marked(text: str, formulas: Iterable[str]) -> str:
    """Mark the formulas that occur in a text; plain texts among them stay words.

    >>> marked("from n = 3 on", [Maths("n = 3", "n = 3")]).parts
    ('from ', 'n = 3', ' on')
    """
    parts: tuple[str, ...] = (text,)
    for formula in sorted((one for one in formulas if isinstance(one, Maths) and one), key=len, reverse=True):
        parts = tuple(piece for part in parts for piece in _split(part, formula))
    return Sentence(*parts)


def _split(text: str, formula: Maths) -> Iterator[str]:
    """Split a text at a formula."""
    while not isinstance(text, Maths) and formula in text:
        before, _, text = text.partition(formula)
        yield from (before, formula)
    yield text


def parts_of(text: str) -> tuple[str, ...]:
    """The words and formulas of a text; a plain one is all words."""
    return text.parts if isinstance(text, Sentence) else (text,)
