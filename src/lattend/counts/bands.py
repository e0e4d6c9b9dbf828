"""Bands of a letter's width: after how many layers their receptive field grows no more."""

from __future__ import annotations

from functools import lru_cache

from lattend.counts.closed import Closed
from lattend.rules.language.linear import Linear, Quotient
from lattend.rules.language.parser import parse
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Space, region_of
from lattend.sets.piece import Piece
from lattend.sets.powers import Extent, Relation

BANDS: dict[str, Extent] = {
    "k <= q and q - k <= {}": "earlier",
    "abs(q - k) <= {}": "every",
    "q <= k and k - q <= {}": "one way",
}


def band_depth(relation: Relation, parameters: list[str]) -> tuple[Closed, Extent, str] | None:
    """⌈(n - 1)/t⌉ where the rule is a band of t positions, what a query sees then, and where: t >= 1."""
    if len(relation.axes) != 1 or len(parameters) != 1:
        return None
    (name,) = parameters
    for shape, extent in BANDS.items():
        if relation.attends_to(parse(shape.format(name))):
            closed, names = band_layers(), {"t": name}
            space = closed.space.renamed(names)
            pieces = [Piece(p.region.renamed(names, space), p.formula.at(names)) for p in closed.pieces]
            return Closed(space, closed.domain.renamed(names, space), pieces), extent, f"{name} >= 1"
    return None


@lru_cache(maxsize=1)
def band_layers() -> Closed:
    """⌈(n - 1)/t⌉ in N = n // t and r = n % t: N + 1 where r is 2 or more, else N, and n - 1 where t is 1."""
    space = Space(("n", "t"), (), {"n": "t"})
    whole = Polynomial.atom(Quotient(Linear((("n", 1),)), "t"))
    one = Polynomial.constant(1)
    cases = {
        "n % t >= 2": whole + one,
        "n % t <= 1 and t >= 2": whole,
        "t == 1": whole - one,
    }
    domain = region_of(parse("n >= 1 and t >= 1"), space).aligned(space)
    pieces = [Piece(region_of(parse(c), space).aligned(space) & domain, f) for c, f in cases.items()]
    return Closed(space, domain, pieces)
