"""Fewer and wider pieces: the same count, said in as few formulas as possible."""

from __future__ import annotations

from lattend.counts.prove import solved, vanishes
from lattend.errors import NoClosedForm
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Region
from lattend.sets.region import Piece, uncovered


def simplified(pieces: list[Piece], domain: Region) -> list[Piece]:
    """Returns the same count on `domain` with fewer pieces and conditions.

    Each convex piece, the widest first, grows over its neighbours as far as its formula stays right:
    `n(n + 1)/2` for n >= 1 also serves n = 0, and `t < n` becomes `t <= n` when both formulas give
    the same number at t = n. What earlier pieces cover is then left out of later ones.
    """
    parts = [Piece(part, p.formula) for p in pieces for part in p.region.parts()]
    parts.sort(key=lambda p: (-p.region.dimension(), -len(p.formula.terms)))
    exact = _Exact(parts, domain)
    kept: list[Piece] = []
    left = domain - exact.zero
    for part in parts:
        if (part.region & left).is_empty():
            continue
        region = _grown(part, exact, left)
        left = left - region
        kept.append(Piece(region, part.formula))
    return [Piece(p.region, _on_its_region(p)) for p in _apart(kept, domain)]


def agree(formula: Polynomial, other: Polynomial, region: Region) -> bool:
    """Whether two formulas give the same number everywhere on `region`."""
    if formula == other:
        return True
    sample = region.sample()
    if sample is None:
        return True
    if formula.value(sample) != other.value(sample):
        return False
    try:
        return vanishes(formula - other, region)
    except NoClosedForm:  # too many cases to decide: the pieces stay apart
        return False


class _Exact:
    """The count itself, with which a formula must agree on a larger region."""

    def __init__(self, parts: list[Piece], domain: Region) -> None:
        self.parts, self.domain = parts, domain
        self.zero = uncovered(parts, domain)

    def is_given_by(self, formula: Polynomial, region: Region) -> bool:
        overlaps = [(part.formula, region & part.region) for part in self.parts]
        overlaps.append((Polynomial({}), region & self.zero))
        return all(agree(formula, other, overlap) for other, overlap in overlaps)


def _grown(piece: Piece, exact: _Exact, left: Region) -> Region:
    """Returns the piece's convex region with conditions dropped or moved by one while it stays right.

    A condition moves only for points that no earlier piece covers, those of `left`.
    """

    def right(region: Region, wider: Region, moved: bool) -> bool:
        extra = (wider & exact.domain) - region
        return not (moved and (extra & left).is_empty()) and exact.is_given_by(piece.formula, extra)

    region, wider = piece.region, piece.region
    while wider is not None:
        region = wider.within(exact.domain)
        wider = next((wide for wide, moved in region.relaxed() if right(region, wide, moved)), None)
    return region & exact.domain


def _apart(pieces: list[Piece], domain: Region) -> list[Piece]:
    """Returns disjoint pieces; an overlap stays with the earlier one unless the later one gets longer."""
    disjoint: list[Piece] = []
    for piece in pieces:
        region = piece.region
        for earlier in disjoint:
            rest = region - earlier.region
            if rest.within(domain).text_length() <= region.within(domain).text_length():
                region = rest
        disjoint.append(Piece(region, piece.formula))
    return disjoint


def _on_its_region(piece: Piece) -> Polynomial:
    """Returns the formula with atoms substituted that are constant on the region."""
    return piece.formula.substituted(solved(piece.region.equalities()))
