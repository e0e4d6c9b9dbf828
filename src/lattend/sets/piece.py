"""Piece: a formula and the region where it holds. Counts, reaches and step numbers are lists of pieces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lattend.rules.language.polynomial import Polynomial
from lattend.sets.region import Region


@dataclass(frozen=True, eq=False)
class Piece:
    """A formula and the region where it is the count; `factors` if it is a product."""

    region: Region
    formula: Polynomial
    factors: tuple[Polynomial, ...] = ()


def uncovered(pieces: Iterable[Piece], domain: Region) -> Region:
    """The part of `domain` where no piece holds, so that the count is 0."""
    for piece in pieces:
        domain = domain - piece.region
    return domain
