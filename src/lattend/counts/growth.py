"""Growth: how a count grows, decided on exponents.

Let every variable grow as a power of one number, x = s**a. A monomial then grows as s to a linear
form in the exponents, and a condition such as t <= n says a_t <= a_n. Which monomial leads, and
whether one formula bounds another, are questions about cones of exponents, which isl decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from lattend.counts.algebra import rank
from lattend.counts.formula_parser import parse_formula
from lattend.counts.latex import formula_latex
from lattend.counts.notation import Notation, condition_text
from lattend.counts.prove import solved
from lattend.errors import NamingError
from lattend.report.latex import cases
from lattend.report.shown import Shown
from lattend.rules.language.linear import Atom, Linear, Monomial, Quotient, Remainder
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound, Cone
from lattend.sets.region import Piece

if TYPE_CHECKING:
    from lattend.counts.count import Count

Exponents = dict[str, int]


@dataclass(frozen=True)
class Growth(Shown):
    """The big-O of a count, by region if it differs."""

    pieces: list[tuple[str, str]]  # (growth, when)
    latex_pieces: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def __str__(self) -> str:
        if len({growth for growth, _ in self.pieces}) == 1:
            return f"O({self.pieces[0][0]})"
        return "; ".join(f"O({growth}) when {when}" for growth, when in self.pieces) or "O(0)"

    __repr__ = __str__

    @property
    def latex_orders(self) -> list[tuple[str, str]]:
        """Returns each order as LaTeX with its condition; a single order has none."""
        alone = len({order for order, _ in self.latex_pieces}) == 1
        shown = [(order, "") for order, _ in self.latex_pieces[:1]] if alone else self.latex_pieces
        return [(rf"O\left({order}\right)", when) for order, when in shown]

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {cases(self.latex_orders or [('O(0)', '')])}$"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def growth(count: Count, variables: Iterable[str]) -> Growth:
    """Returns the leading growth of each piece that is reached as `variables` grow."""
    growing = list(variables) or count.names
    unknown = [name for name in growing if name not in count.names]
    if unknown:
        raise NamingError(f"this count has no {unknown[0]}; it has {', '.join(count.names)}")
    growing = unbounded(count, growing)
    orders: dict[tuple[str, str], tuple[str, str]] = {}  # as text, and as LaTeX
    for piece in count.closed.pieces:
        clauses = piece.region.within(count.closed.domain).clauses
        when, when_latex = (
            condition_text(
                clauses, Notation(count.names, latex=latex, short=False, signed=count.closed.signed)
            )
            for latex in (False, True)
        )
        for part, signs in by_sign(piece, count):
            cone = cone_of(part, signs, count, growing)
            if not cone.grows(growing):
                continue
            formula = unwrapped(part).at(count.values)
            reached = [m for m in formula.terms if present(cone, m).grows(growing)]
            moving = [name for name in cone.names if cone.grows([name])]
            leading = _leading(reached, cone, moving)
            text = " + ".join(product_text(m) for m in leading) or "1"
            orders.setdefault(
                (text, when or "always"), (formula_latex(parse_formula(text, count.names)), when_latex)
            )
    return Growth([*orders], [*orders.values()])


def unbounded(count: Count, growing: list[str]) -> list[str]:
    """Returns the variables that can grow in some piece; one bounded by 8 pixels cannot."""
    parts = [part for piece in count.closed.pieces for part in by_sign(piece, count)]
    cones = [cone_of(part, signs, count, growing) for part, signs in parts]
    return [name for name in growing if any(cone.grows([name]) for cone in cones)]


def sign_of(monomial: Iterable[tuple[Atom, int]], coefficient: Fraction, signs: dict[str, int]) -> int:
    """The sign of a term where the names have these signs."""
    sign = 1 if coefficient > 0 else -1
    for atom, exponent in monomial:
        if isinstance(atom, str) and exponent % 2:
            sign *= signs.get(atom, 1)
    return sign


def by_sign(piece: Piece, count: Count) -> list[tuple[Piece, dict[str, int]]]:
    """The piece cut where parameters change sign, with the sign of every name on each part."""
    parts: list[tuple[Piece, dict[str, int]]] = [(piece, {})]
    for name in count.names:
        cut: list[tuple[Piece, dict[str, int]]] = []
        for part, signs in parts:
            region = part.region
            if name in region.space.split:  # sizes and what is compared with them; their blocks grow upward
                cut.append((part, signs | {name: 1}))
                continue
            negative = region.where(Bound(Linear(((name, -1),), -1), False))
            for half, sign in ((region - negative, 1), (negative, -1)):
                if not half.is_empty():
                    cut.append((Piece(half, part.formula), signs | {name: sign}))
        parts = cut
    return parts


def unwrapped(piece: Piece) -> Polynomial:
    """The formula with `n % w` written as n where the region says that n < w, and n // 7 as (n - n % 7)/7.

    Terms of n and of n // 7 can cancel; what is left of n % 7 is bounded.
    """
    known = solved(piece.region.equalities())
    put: dict[Atom, Polynomial] = {}
    for atom in piece.formula.atoms:
        if isinstance(atom, Quotient) and isinstance(atom.by, int):
            rest = Polynomial.atom(Remainder(atom.of, atom.by))
            put[atom] = (Polynomial.linear(atom.of) - rest).times(Fraction(1, atom.by))
            continue
        if not isinstance(atom, str) and known.get(Quotient(atom.of, atom.by)) == Polynomial({}):
            put[atom] = Polynomial({}) if isinstance(atom, Quotient) else Polynomial.linear(atom.of)
    return piece.formula.substituted(put)


def cone_of(piece: Piece, signs: dict[str, int], count: Count, growing: list[str]) -> Cone:
    """The exponents with which names, and remainders, can grow inside the region of the piece."""
    region = piece.region
    rests = {
        atom
        for atoms in (piece.formula.atoms, *([a for a, _ in b.form.terms] for c in region.clauses for b in c))
        for atom in atoms
        if isinstance(atom, Remainder) and isinstance(atom.by, str)
    }
    cone = Cone.of([*count.names, *sorted(map(str, rests))])
    for name in count.names:
        if name not in growing:
            cone = cone.below({name: 1}, [])
    for rest in rests:  # n % w is at most n, and less than w
        cone = cone.below({str(rest): 1}, [{str(rest.by): 1}]).below({str(rest): 1}, _form_growths(rest.of))
    if len(region.clauses) == 1:
        for bound in region.clauses[0]:
            cone = _with(cone, bound, signs)
    return cone


def _with(cone: Cone, bound: Bound, signs: dict[str, int]) -> Cone:
    """Returns the cone within a condition: t <= n and n // w >= 1 mean that t and w grow no faster than n."""
    if len(bound.form.terms) == 1 and bound.form.constant < 0:
        atom, coefficient = bound.form.terms[0]
        if coefficient > 0 and isinstance(atom, Quotient) and isinstance(atom.by, str):
            return cone.below({atom.by: 1}, _form_growths(atom.of))
    terms = [(a, c * (signs.get(a, 1) if isinstance(a, str) else 1)) for a, c in bound.form.terms]
    for sign in (1, -1) if bound.equal else (1,):
        above = [growth for atom, c in terms if c * sign > 0 for growth in _growths(atom)]
        for atom, coefficient in terms:
            if coefficient * sign < 0:
                for growth in _growths(atom):
                    cone = cone.below(growth, above)
    return cone


def present(cone: Cone, monomial: Iterable[tuple[Atom, int]]) -> Cone:
    """Returns the cone where every `n // w` of the monomial is positive: n grows at least as fast as w."""
    for atom, _ in monomial:
        if isinstance(atom, Quotient) and isinstance(atom.by, str):
            cone = cone.below({atom.by: 1}, _form_growths(atom.of))
    return cone


def _form_growths(form: Linear) -> list[Exponents]:
    """Returns the growths of a linear form's atoms; it grows as the fastest of them."""
    return [growth for atom, _ in form.terms for growth in _growths(atom)] or [{}]


def _growths(atom: Atom) -> list[Exponents]:
    """Returns the growths of an atom: n // w grows as n/w; n % w has its own."""
    if isinstance(atom, str):
        return [{atom: 1}]
    if isinstance(atom, Remainder):
        return [{str(atom): 1}] if isinstance(atom.by, str) else [{}]
    below = {atom.by: 1} if isinstance(atom.by, str) else {}
    return [divided(growth, below) for growth in _form_growths(atom.of)]


def exponents(monomial: Monomial, growing: list[str]) -> list[Exponents]:
    """The growths of a monomial in the names that grow."""
    products: list[Exponents] = [{}]
    for atom, exponent in monomial:
        powers = [{n: p * exponent for n, p in growth.items() if n in growing} for growth in _growths(atom)]
        products = [divided(a, {n: -p for n, p in b.items()}) for a in products for b in powers]
    return [dict(pair) for pair in dict.fromkeys(tuple(sorted(m.items())) for m in products)]


def divided(above: Exponents, below: Exponents) -> Exponents:
    """The growth of a quotient."""
    powers = {name: above.get(name, 0) - below.get(name, 0) for name in {**above, **below}}
    return {name: power for name, power in powers.items() if power}


def _leading(monomials: list[Monomial], cone: Cone, growing: list[str]) -> list[Exponents]:
    """Returns the growths that no other growth bounds."""
    leading: list[tuple[Exponents, Cone]] = []
    for monomial in monomials:
        for growth in exponents(monomial, growing):
            if growth not in [known for known, _ in leading]:
                leading.append((growth, present(cone, monomial)))
    kept = [growth for growth, _ in leading]

    def bounded(growth: Exponents, leading_cone: Cone) -> bool:
        return any(leading_cone.beyond(growth, [m]) is None for m in kept if m != growth)

    for growth, leading_cone in leading:
        if bounded(growth, leading_cone):
            kept.remove(growth)
    # What bounded a growth may itself have gone, for reasons that hold in fewer places
    kept += [
        growth for growth, leading_cone in leading if growth not in kept and not bounded(growth, leading_cone)
    ]
    return kept


def product_text(exponents: Exponents) -> str:
    """`n^2*t/w` for its exponents."""
    ordered = sorted(exponents.items(), key=lambda item: rank(item[0]))
    shown = [(name if name.isidentifier() else f"({name})", power) for name, power in ordered]
    above = [name if p == 1 else f"{name}^{p}" for name, p in shown if p > 0]
    below = [name if p == -1 else f"{name}^{-p}" for name, p in shown if p < 0]
    text = "*".join(above) or "1"
    return f"{text}/{'/'.join(below)}" if below else text
