"""Formulas as the page shows them: LaTeX for each piece, and the places where it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    from lattend.counts import Count


class Piece(BaseModel):
    """A formula and the places where it holds, "" for everywhere else."""

    latex: str
    when: str


class Formula(BaseModel):
    """One or more pieces, the short names they use, and all of it as text and as LaTeX."""

    pieces: list[Piece]
    where: str
    text: str
    latex: str


def formula(count: Count | int) -> Formula:
    """The closed form of a count; a number is its own."""
    if isinstance(count, int):
        return Formula(
            pieces=[Piece(latex=f"{count:,}".replace(",", "{,}"), when="")],
            where="",
            text=f"{count:,}",
            latex=str(count),
        )
    lines, where = count.format_pieces(latex=True)
    pieces = [Piece(latex=line.formula, when=line.when) for line in lines]
    return Formula(pieces=pieces, where=where, text=str(count), latex=count.latex())
