"""Regions as text: `0 <= t <= n`, `w divides n`, `n >= 2w`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lattend.counts.notation import Notation
from lattend.counts.ranking import is_size
from lattend.rules.language.linear import Linear, Quotient, Remainder
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound

Relation = tuple[str, str, str]  # subject, sign, other side
MIRRORED = {">": "<", ">=": "<="}


def condition_text(clauses: list[list[Bound]], notation: Notation) -> str:
    """Returns a region as text; an empty text if it is everything."""
    texts = [_clause(clause, notation) for clause in clauses]
    if not texts or "" in texts:
        return ""
    joined = texts[0] if len(texts) == 1 else " or ".join(f"({t})" if " and " in t else t for t in texts)
    return _in_latex(joined) if notation.latex else joined


def _clause(clause: list[Bound], notation: Notation) -> str:
    """Returns conditions joined by `and`, with two bounds of the same term chained."""
    lows: dict[str, tuple[str, str]] = {}
    highs: dict[str, tuple[str, str]] = {}
    rest: list[str] = []
    for bound in sorted(_both_sides(_needed(clause), notation.signed), key=lambda b: str(b.form)):
        subject, sign, other = _relation(bound, notation)
        side = lows if sign in MIRRORED else highs if sign in MIRRORED.values() else None
        if side is None or subject in side:
            rest.append(f"{subject} {sign} {other}")
        else:
            side[subject] = (sign, other)
    for subject, (sign, other) in lows.items():
        if subject in highs:
            rest.append(f"{other} {MIRRORED[sign]} {subject} {' '.join(highs.pop(subject))}")
        else:
            rest.append(f"{subject} {sign} {other}")
    return " and ".join(rest + [f"{subject} {sign} {other}" for subject, (sign, other) in highs.items()])


def _both_sides(clause: Iterable[Bound], signed: frozenset[str]) -> Iterator[Bound]:
    """Yields the bounds, with `t // w == 0` as two bounds if t may be negative."""
    for bound in clause:
        match bound:
            case Bound(Linear(((Quotient(of, str()), _),), 0) as form, True) if str(of) in signed:
                yield from (Bound(form, False), Bound(form.times(-1), False))
            case _:
                yield bound


def _needed(clause: list[Bound]) -> list[Bound]:
    """Returns the bounds without redundant remainders: if t is 1, it divides every size."""
    ones = {
        str(bound.form.terms[0][0])
        for bound in clause
        if bound.equal and len(bound.form.terms) == 1 and bound.form.terms[0][1] == -bound.form.constant
    }
    return [bound for bound in clause if not _is_remainder_by(bound, ones)]


def _is_remainder_by(bound: Bound, moduli: set[str]) -> bool:
    """Returns whether a bound is about a remainder by one of these moduli only."""
    if len(bound.form.terms) != 1:
        return False
    ((atom, _),) = bound.form.terms
    return isinstance(atom, Remainder) and str(atom.by) in moduli


def _relation(bound: Bound, notation: Notation) -> Relation:
    """Returns the bound solved for the atom that is least like a size: ("t", "<=", "n")."""
    special = _of_blocks(bound, notation)
    if special is not None:
        return special
    form = bound.form
    atom, coefficient = min(
        form.terms, key=lambda item: (abs(item[1]) != 1, is_size(item[0]), -len(str(item[0])))
    )
    sign = 1 if coefficient > 0 else -1
    others = [(a, -c * sign) for a, c in form.terms if a != atom]
    constant = -form.constant * sign

    def side(number: int) -> str:
        return notation.sum(Polynomial.linear(Linear.of(others, number)))

    left = notation.sum(Polynomial.linear(Linear(((atom, abs(coefficient)),))))
    if bound.equal:
        return left, "==", side(constant)
    if others and constant == sign:  # x >= n + 1 and x <= n - 1 read better with a strict sign
        return left, ">" if sign > 0 else "<", side(0)
    return left, ">=" if sign > 0 else "<=", side(constant)


def _of_blocks(bound: Bound, notation: Notation) -> tuple[str, str, str] | None:
    """Returns a bound on one quotient or remainder as one on the size: `n >= 2w`, `w divides n`."""
    form = bound.form
    remainder = _remainder(bound)
    if remainder is not None:
        rest, number = remainder
        name = notation.sum(Polynomial.linear(rest.of))
        return (str(rest.by), "divides", name) if number == 0 else (notation.plain(rest), "==", str(number))
    if len(form.terms) != 1:
        return None
    atom, coefficient = form.terms[0]
    if isinstance(atom, str) or abs(coefficient) != 1:
        return None
    name, by = notation.sum(Polynomial.linear(atom.of)), str(atom.by)
    number = -form.constant * coefficient
    if isinstance(atom, Remainder):
        if bound.equal and number == 0:
            return by, "divides", name
        if not bound.equal and coefficient > 0 and number == 1:
            return by, "does not divide", name
        return None
    if not isinstance(atom.by, str):
        return None

    def multiple(j: int) -> str:
        return "0" if j == 0 else by if j == 1 else f"{j}{by}" if len(by) == 1 else f"{j}*{by}"

    if bound.equal:
        return (name, "<", multiple(1)) if number == 0 else None
    return (name, ">=", multiple(number)) if coefficient > 0 else (name, "<", multiple(number + 1))


def _remainder(bound: Bound) -> tuple[Remainder, int] | None:
    """`n - 2*(n // 2) == 1` as (n % 2, 1)."""
    quotients = [(a, c) for a, c in bound.form.terms if isinstance(a, Quotient) and isinstance(a.by, int)]
    if not bound.equal or len(quotients) != 1:
        return None
    atom, coefficient = quotients[0]
    sign = -1 if coefficient > 0 else 1
    rest = bound.form.plus(Linear(((atom, coefficient),)), -1).times(sign)
    number = atom.of.constant - rest.constant
    if coefficient * sign != -int(atom.by) or rest.terms != atom.of.terms or not 0 <= number < int(atom.by):
        return None
    return Remainder(atom.of, atom.by), number


def _in_latex(text: str) -> str:
    for plain, shown in (("<=", r"\le"), (">=", r"\ge"), ("!=", r"\ne"), ("==", "=")):
        text = text.replace(plain, shown)
    text = text.replace(" and ", r" \text{ and } ").replace(" or ", r" \text{ or } ")
    return text.replace("divides", r"\mid").replace("does not divide", r"\nmid")
