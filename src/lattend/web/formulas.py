"""Formulas as the page shows them: LaTeX for each piece, and the places where it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

from lattend.recent import Recent

if TYPE_CHECKING:
    from lattend.counts import Count


class Piece(BaseModel):
    """A formula and the places where it holds, "" for everywhere else."""

    latex: str
    when: str


class Formula(BaseModel):
    """One or more pieces, and all of it as text and as LaTeX.

    `head` says what the pieces are where they are those of one axis of an image, `where` what their short
    names stand for, and `more` how many pieces are not there.
    """

    head: str = ""
    pieces: list[Piece]
    where: str
    more: str = ""
    text: str
    latex: str


KNOWN: Recent[object, tuple[object, Formula]] = Recent(512)  # by what is counted, which is kept alive


def formula(count: Count | int) -> Formula:
    """The closed form of a count; a number is its own."""
    if isinstance(count, int):
        return Formula(
            pieces=[Piece(latex=f"{count:,}".replace(",", "{,}"), when="")],
            where="",
            text=f"{count:,}",
            latex=str(count),
        )
    names = (*count.rule.sizes, *count.rule.parameters)
    key = (id(count.closed), names, count.fixed, tuple(count.values.items()))
    return KNOWN.find(key, lambda: (count.closed, _typeset(count)))[1]


def _typeset(count: Count) -> Formula:
    found = count.typeset()
    return Formula(
        head=found.head,
        pieces=[Piece(latex=line.formula, when=line.when) for line in found.lines],
        where=found.where,
        more=found.more,
        text=found.text,
        latex=found.latex,
    )
