"""Orders: whether a count is O, Θ, Ω, o or ω of a formula, decided on exponents.

Where all names are large enough, O(f) says that count/f is bounded, Ω(f) that f/count is, and Θ(f) both; o(f)
and ω(f) say that one of them falls to 0 as all names grow. A term bounds another if it does so along every
way in which the names can grow, x = s**a. A way along which it does not refutes the claim, once numbers along
it say the same. Terms of the larger side that are subtracted must not cancel those that bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, pairwise
from typing import Literal

from lattend.counts.count import Count
from lattend.counts.formula import BigO, Formula
from lattend.counts.growth import (
    Exponents,
    by_sign,
    cone_of,
    divided,
    exponents,
    growth,
    present,
    product_text,
    sign_of,
    unbounded,
    unwrapped,
)
from lattend.counts.symbolic import Case, cases
from lattend.counts.verdict import OrderVerdict
from lattend.rules.language.linear import Atom, Linear, Monomial, monomial
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound, Cone
from lattend.sets.region import Piece, uncovered

HELD = (1, 2, 3)  # what names stay at, that do not grow
HELD_LARGE = (10, 100)  # where a claim is about large names only
Claimed = Literal["grows faster", "grows slower", "does not grow slower", "does not grow faster"]


@dataclass(frozen=True)
class Doubt:
    """Why one side is not known to bound the other: refuted along a path, or only not proved."""

    status: Literal["fails", "undecided"]
    reason: str


def judge_order(count: Count, order: BigO, text: str) -> OrderVerdict:
    """Whether the count is of this order as all its names grow."""
    bound, strictly = order.body, order.sign in ("o", "omega")
    above = _bounded(count, bound, strictly) if order.sign in ("O", "Theta", "o") else ()
    below = _bounding(count, bound, strictly) if order.sign in ("Omega", "Theta", "omega") else ()
    doubt = _first(chain(above, below))
    if doubt is not None and doubt.status == "undecided":
        return OrderVerdict(text, "undecided", remaining=doubt.reason)
    if doubt is not None:
        reason = doubt.reason if order.sign == "O" else f"{doubt.reason}; {_order_text(count)}"
        return OrderVerdict(text, "fails", because=reason)
    verdict = OrderVerdict(text, "holds", _as_names_grow(count))
    if strictly or order.sign == "Theta":
        return replace(verdict, tight=None if strictly else True)
    other = _first((_bounding if order.sign == "O" else _bounded)(count, bound, False))
    if other is None or other.status == "undecided":
        return replace(verdict, tight=True if other is None else None)
    own, claimed = _order_text(count), _order_text(_with_formula(count, bound))
    return replace(verdict, tight=False, because=other.reason if own == claimed else own)


def _as_names_grow(count: Count) -> str:
    """`as n and t grow, for t <= n`: the names that can grow, and what is assumed."""
    names = unbounded(count, count.names)
    listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
    grows = f"as {listed} grow{'s' if len(names) == 1 else ''}" if names else ""
    return ", for ".join(part for part in (grows, " and ".join(count.assumptions)) if part)


def _order_text(count: Count | None) -> str:
    return "" if count is None else f"the order is {growth(count, ())}"


def _with_formula(count: Count, formula: Formula) -> Count | None:
    parts = cases(formula, count.closed.domain)
    if any(not case.below.is_constant for case in parts):
        return None
    pieces = [Piece(case.region, case.above) for case in parts]
    return replace(count, closed=replace(count.closed, pieces=pieces, line=None))


@dataclass(frozen=True, eq=False)
class _Place:
    """A piece of the count on which no name changes its sign, and the claimed formula there."""

    count: Count
    piece: Piece
    signs: dict[str, int]
    case: Case

    @property
    def cone(self) -> Cone:
        return cone_of(self.piece, self.signs, self.count, self.count.names)

    @property
    def formula(self) -> Polynomial:
        return unwrapped(self.piece)

    def growths(self, cone: Cone) -> list[tuple[Monomial, Exponents]]:
        """The terms of the count, and how they grow."""
        names = list(cone.names)
        return [(m, growth) for m in self.formula.terms for growth in exponents(m, names)]

    def claimed(self, cone: Cone) -> list[tuple[Monomial, Exponents]]:
        """The terms of the claimed formula, and how they grow."""
        names = list(cone.names)
        (below,) = (exponents(m, names)[0] for m in self.case.below.terms)
        return [(m, divided(growth, below)) for m in self.case.above.terms for growth in exponents(m, names)]

    def vanishing(self, term: Monomial) -> set[Atom]:
        """The atoms of a term that may be 0 however large the names are: n // w and n % w."""
        return {atom for atom, _ in term if not isinstance(atom, str) and self._may_be_zero(atom)}

    def _may_be_zero(self, atom: Atom) -> bool:
        region = self.piece.region
        if atom not in region.space.atoms.values():
            return True
        return not region.is_subset(region.where(Bound(Linear(((atom, 1),), -1), False)))


def _places(count: Count, bound: Formula, pieces: list[Piece]) -> Iterator[_Place | Doubt]:
    for piece in pieces:
        for part, signs in by_sign(piece, count):
            parts = cases(bound, part.region)
            if not uncovered([Piece(case.region, part.formula) for case in parts], part.region).is_empty():
                yield Doubt("undecided", "where the bound is not defined")
            for case in parts:
                if len(case.below.terms) != 1:
                    yield Doubt("undecided", "a bound that divides by a sum")
                else:
                    yield _Place(count, Piece(case.region, part.formula), signs, case)


def _bounded(count: Count, bound: Formula, strictly: bool) -> Iterator[Doubt]:
    """Why the count is not O(bound), or o(bound), in whichever direction its names grow."""
    growing = unbounded(count, count.names)
    for place in _places(count, bound, count.closed.pieces):
        if isinstance(place, Doubt):
            yield place
            continue
        cone = place.cone.growing(growing) if strictly else place.cone
        theirs = [growth for _, growth in place.claimed(cone)]
        for term, ours in place.growths(cone):
            path = present(cone, term).beyond(ours, theirs, by=0 if strictly else 1)
            if path is not None:
                yield _refuted(place, path, "does not grow slower" if strictly else "grows faster", ours)
        if _may_cancel(place.case.above, place, cone):
            yield Doubt("undecided", "whether the terms of the bound cancel")


def _bounding(count: Count, bound: Formula, strictly: bool) -> Iterator[Doubt]:
    """Why the count is not Ω(bound), or ω(bound), as its names grow upward."""
    growing = unbounded(count, count.names)
    zero = uncovered(count.pieces, count.closed.domain)
    nothing = [Piece(part, Polynomial({})) for part in zero.parts()]
    for place in _places(count, bound, [*count.closed.pieces, *nothing]):
        if isinstance(place, Doubt):
            yield place
            continue
        if min(place.signs.values(), default=1) < 0 or not place.cone.grows(growing):
            continue  # there some name stays small
        cone = place.cone.growing(growing) if strictly else place.cone
        ours = [(m, growth) for m, growth in place.growths(cone) if place.formula.terms[m] > 0]
        for term, theirs in place.claimed(cone):
            larger = [growth for m, growth in ours if place.vanishing(m) <= place.vanishing(term)]
            present_cone = present(cone, term) if larger else present(cone, term).growing(growing)
            path = present_cone.beyond(theirs, larger, by=0 if strictly else 1)
            if path is not None:
                yield _refuted(place, path, "does not grow faster" if strictly else "grows slower", theirs)
        if _may_cancel(place.formula, place, cone):
            yield Doubt("undecided", "whether the terms of the count cancel")


def _first(doubts: Iterable[Doubt]) -> Doubt | None:
    """The first doubt that refutes the claim, or the first of all."""
    first: Doubt | None = None
    for doubt in doubts:
        if doubt.status == "fails":
            return doubt
        first = first or doubt
    return first


def _may_cancel(polynomial: Polynomial, place: _Place, cone: Cone) -> bool:
    """Returns whether negative terms may cancel more than a part of the positive ones.

    A term is harmless if another one outgrows it as all names grow, or is at least as large because of a
    condition of the piece, t <= n, with a larger coefficient.
    """
    names = place.count.names
    left = {m: abs(c) for m, c in polynomial.terms.items() if sign_of(m, c, place.signs) > 0}
    for term, coefficient in polynomial.terms.items():
        if term in left:
            continue
        present_cone = present(cone, term).growing(names)
        larger = [m for m in left if place.vanishing(m) <= place.vanishing(term)]
        if any(
            all(present_cone.beyond(ours, theirs, by=0) is None for ours in exponents(term, list(cone.names)))
            for theirs in ([growth] for m in larger for growth in exponents(m, list(cone.names)))
        ):
            continue
        taken = next((m for m in larger if left[m] > abs(coefficient) and _at_least(m, term, place)), None)
        if taken is None:
            return True
        left[taken] -= abs(coefficient)
    return False


def _at_least(large: Monomial, small: Monomial, place: _Place) -> bool:
    """Returns whether `large` is `small` with one name replaced by another that is at least as large."""
    region = place.piece.region
    names = [name for name in place.count.names if name not in region.space.split]
    for more in names:
        for less in names:
            if monomial((*large, (less, 1))) == monomial((*small, (more, 1))) and more != less:
                bound = Bound(Linear.of([(more, 1), (less, -1)]), False)
                return region.is_subset(region.where(bound))
    return False


def _refuted(place: _Place, path: Exponents, how: Claimed, ours: Exponents) -> Doubt:
    """Returns the doubt that the count grows otherwise along a path, if numbers along it confirm that."""
    for held in HELD if how in ("grows faster", "does not grow slower") else HELD_LARGE:
        ratios = _ratios(place, path, held)
        if ratios is not None and _agrees(ratios, how):
            return Doubt("fails", f"along {_along(place, path, held)} the count {how}")
    return Doubt("undecided", f"whether {product_text(ours)} cancels")


def _agrees(ratios: list[Fraction], how: Claimed) -> bool:
    """Returns the ratios of the count and the bound at three distant points of a path."""
    near, _, far = ratios
    rising = all(a * 10 < b for a, b in pairwise(ratios))
    falling = all(a > b * 10 for a, b in pairwise(ratios))
    return {
        "grows faster": rising,
        "grows slower": falling or far == 0,
        "does not grow slower": far * 2 > near,
        "does not grow faster": far < near * 2,
    }[how]


def _ratios(place: _Place, path: Exponents, held: int) -> list[Fraction] | None:
    """The count over the bound along x = s**a, names that stay being `held`; None outside the piece."""
    ratios: list[Fraction] = []
    for step in (10**3, 10**6, 10**9):
        powers = {name: path.get(name, 0) for name in place.count.names}
        values = {name: place.signs[name] * (step**p if p else held) for name, p in powers.items()}
        values |= dict(place.count.values)
        above = Fraction(place.case.above.value(values)) if place.piece.region.holds(values) else 0
        if not above:
            return None
        ours = place.piece.formula.value(values) * Fraction(place.case.below.value(values))
        ratios.append(abs(ours / above))
    return ratios


def _along(place: _Place, path: Exponents, held: int) -> str:
    """Returns a path as text: `n = s, t = s^2`; fixed names appear if they are not 1."""
    steps = [(name, path[name]) for name in place.count.names if path[name]]
    grows = next(letter for letter in ("s", "x", "z", "u", "s_") if letter not in place.count.names)
    along = ", ".join(
        f"{name} = {'-' if place.signs[name] < 0 else ''}{product_text({grows: power})}"
        for name, power in steps
    )
    still = [name for name in place.count.names if not path[name]] if held > 1 else []
    return along + (f" with {' = '.join(still)} = {held}" if still else "")
