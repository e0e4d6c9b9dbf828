"""How an analysis is said: ranges of steps, eigenvalues, factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lattend.report.numbers import significant
from lattend.study.exact.forms import LONGEST, number_text, short_decimal
from lattend.study.exact.powers.matrix import Behaviour, Range
from lattend.study.exact.powers.radius import Piece
from lattend.study.exact.roots import at_most
from lattend.study.exact.writing import text as written


def steps_text(low: Any, high: Any, low_in: bool, high_in: bool) -> str:
    """`0 < h <= 1/2`, `h = 2`, `h > 2`."""
    if low == high:
        return f"h = {number_text(low)}"
    if high.is_infinite:
        return "every h" if low == 0 else f"h {'>=' if low_in else '>'} {number_text(low)}"
    return f"{number_text(low)} {'<=' if low_in else '<'} h {'<=' if high_in else '<'} {number_text(high)}"


def behaviour_text(behaviour: Behaviour | None) -> str:
    """`grows like t`."""
    if behaviour is None:
        return "undecided"
    if behaviour.kind == "grows":
        return "grows like t" if behaviour.order == 1 else f"grows like t^{behaviour.order}"
    return {"settles": "settles on an equilibrium"}.get(behaviour.kind, behaviour.kind)


def eigenvalue_text(pair: tuple[Any, Any]) -> str:
    """`1 - h^2 ± i*h`."""
    middle, spread = pair
    if spread == 0:
        return written(middle)
    said = written(spread)
    loose = spread.is_Add
    return f"{written(middle)} ± {f'({said})' if loose else said.removeprefix('-')}"


def factor_text(number: Any) -> str:
    """`sqrt(2)/2 = 0.7071`, or the decimal alone where it is a float."""
    if isinstance(number, float):
        return significant(number, 6)
    if number.is_Integer or (number.is_Rational and number.q <= 12):
        return written(number)
    said = number_text(number)
    return said if said[0].isdigit() and "." in said else f"{said} = {short_decimal(number)}"


def range_rows(ranges: Sequence[Range], pieces: Sequence[Piece] | None) -> list[tuple[str, str, str]]:
    """A row for each range of steps, cut where the factor's formula changes."""
    rows: list[tuple[str, str, str]] = []
    for one in ranges:
        said = behaviour_text(one.behaviour)
        if one.low == one.high:
            known = one.behaviour is not None and one.behaviour.kind in ("cycles", "grows", "undecided")
            rows.append((steps_text(one.low, one.high, True, True), said, "1" if known else ""))
            continue
        cut = [
            piece
            for piece in pieces or ()
            if not at_most(one.high, piece.low) and not at_most(piece.high, one.low)
        ]
        if not cut:
            rows.append((steps_text(one.low, one.high, one.low_in, one.high_in), said, ""))
        for piece in cut:
            from_start, to_end = at_most(piece.low, one.low), at_most(one.high, piece.high)
            rows.append(
                (
                    steps_text(
                        one.low if from_start else piece.low,
                        one.high if to_end else piece.high,
                        one.low_in if from_start else True,
                        one.high_in if to_end else True,
                    ),
                    said,
                    _formula(piece),
                )
            )
    return rows


def _formula(piece: Piece) -> str:
    if piece.formula is None or len(said := written(piece.formula)) > LONGEST:
        return "no short formula"
    return said
