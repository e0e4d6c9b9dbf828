"""Piece: a formula and where it holds. Several of them are what every count, reach and number of steps is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lattend.rules.language.polynomial import Polynomial
from lattend.sets.region import Region


@dataclass(frozen=True, eq=False)
class Piece:
    """A formula and the region where it is the count; `factors` when it came as a product."""

    region: Region
    formula: Polynomial
    factors: tuple[Polynomial, ...] = ()


def uncovered(pieces: Iterable[Piece], domain: Region) -> Region:
    """The part of `domain` where no piece holds, so that the count is 0."""
    for piece in pieces:
        domain = domain - piece.region
    return domain
