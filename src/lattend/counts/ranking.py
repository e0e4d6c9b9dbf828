"""Ranking: in which order atoms and terms are written, and which sign a factor takes."""

from __future__ import annotations

from fractions import Fraction

from lattend.rules.axes import RESERVED, SIZES
from lattend.rules.language.linear import Atom, Monomial, Quotient, Remainder, atom_names
from lattend.rules.language.polynomial import Polynomial


def typical_value(polynomial: Polynomial) -> Fraction:
    """Its value where sizes are large, by which signs are chosen and terms ordered."""
    moduli = _moduli(polynomial)
    return sum((c * _weight(m, moduli) for m, c in polynomial.terms.items()), Fraction(0))


def _typical(atom: Atom, moduli: set[str]) -> int:
    """Returns a typical number for an atom: large for sizes, medium for moduli, small for others."""
    if isinstance(atom, str):
        if atom in SIZES:
            return 1_000_003 + SIZES.index(atom)
        return 1_009 if atom in moduli else 3 + len(atom) % 3
    by = _typical(atom.by, moduli) if isinstance(atom.by, str) else atom.by
    return _typical("n", moduli) // by if isinstance(atom, Quotient) else max(1, by // 3)


def _moduli(polynomial: Polynomial) -> set[str]:
    """The names its atoms divide by."""
    return {atom.by for atom in polynomial.atoms if not isinstance(atom, str) and isinstance(atom.by, str)}


def _weight(powers: Monomial, moduli: set[str]) -> int:
    """The typical size of a monomial, by which terms are ordered and signs are chosen."""
    weight = 1
    for atom, exponent in powers:
        weight *= _typical(atom, moduli) ** exponent
    return weight


def is_size(atom: Atom) -> bool:
    """Whether an atom is made of a size or a position."""
    return bool(atom_names(atom) & RESERVED)


def rank(atom: Atom) -> tuple[int, int, str]:
    """Numbers first, then sizes, parameters, quotients and remainders."""
    if isinstance(atom, str):
        return (0, SIZES.index(atom) if atom in SIZES else len(SIZES), atom)
    return (1, isinstance(atom, Remainder), str(atom))


def by_weight(polynomial: Polynomial) -> list[tuple[Monomial, Fraction]]:
    """Returns the terms, the most important first, led by a positive one if there is one."""
    moduli = _moduli(polynomial)
    ranked = sorted(
        polynomial.terms.items(),
        key=lambda item: (-abs(item[1]) * _weight(item[0], moduli), sorted(rank(a) for a, _ in item[0])),
    )
    lead = next((i for i, (_, c) in enumerate(ranked) if c > 0), 0)
    return [*ranked[lead : lead + 1], *ranked[:lead], *ranked[lead + 1 :]]
