"""The order in which terms are written, and their factors, with sympy, which only this file uses."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

from lattend.rules.axes import RESERVED, SIZES
from lattend.rules.language.linear import Atom, Linear, Monomial, Quotient, Remainder, atom_names, monomial
from lattend.rules.language.polynomial import Polynomial
from lattend.sets import Bound

if TYPE_CHECKING:
    from lattend.counts.count import Count


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


MAX_ATOMS, MAX_TERMS = 5, 30  # beyond these, factoring can take minutes


def _sympy(part: str = "") -> Any:
    """Returns sympy, loaded on first use because that takes longer than most counts."""
    return import_module(f"sympy{part}")


def load() -> None:
    """Load sympy before it is needed."""
    _sympy(".polys.rings")


@lru_cache(maxsize=4096)
def factored(polynomial: Polynomial) -> tuple[Fraction, tuple[tuple[Polynomial, int], ...]]:
    """The polynomial as a number times powers of irreducible polynomials with whole coefficients.

    A long polynomial stays one factor. Each factor has the sign that makes it positive where sizes are large.
    """
    atoms = polynomial.atoms
    if not atoms:
        return polynomial.terms.get((), Fraction(0)), ()
    if len(atoms) > MAX_ATOMS or len(polynomial.terms) > MAX_TERMS:
        integral, scale = _primitive(polynomial)
        return scale, ((integral, 1),)
    rationals = _sympy().QQ
    ring = _sympy(".polys.rings").PolyRing([f"x{i}" for i in range(len(atoms))], rationals)
    index = {atom: i for i, atom in enumerate(atoms)}
    terms: dict[tuple[int, ...], Any] = {}
    for powers, coefficient in polynomial.terms.items():
        exponents = [0] * len(atoms)
        for atom, exponent in powers:
            exponents[index[atom]] = exponent
        terms[tuple(exponents)] = rationals(coefficient.numerator, coefficient.denominator)
    content, raw_factors = ring.from_dict(terms).factor_list()
    number = Fraction(int(content.numerator), int(content.denominator))
    factors: list[tuple[Polynomial, int]] = []
    for factor, power in raw_factors:
        integral, scale = _primitive(_polynomial_of(factor, atoms))
        number *= scale ** int(power)
        factors.append((integral, int(power)))
    return number, tuple(factors)


def _polynomial_of(factor: Any, atoms: list[Atom]) -> Polynomial:
    terms: list[tuple[Fraction, Monomial]] = []
    for exponents, c in factor.terms():
        powers = monomial((atoms[i], int(e)) for i, e in enumerate(exponents))
        terms.append((Fraction(int(c.numerator), int(c.denominator)), powers))
    return Polynomial.of(terms)


def _primitive(polynomial: Polynomial) -> tuple[Polynomial, Fraction]:
    """The polynomial with whole coefficients without a common factor, and the number taken out."""
    below = lcm(*(c.denominator for c in polynomial.terms.values()))
    above = gcd(*(int(c * below) for c in polynomial.terms.values()))
    scale = Fraction(above, below) * (1 if typical_value(polynomial) > 0 else -1)
    return polynomial.times(1 / scale), scale


def as_sympy(count: Count) -> Any:
    """The count as one expression: a polynomial, or a Piecewise that is 0 where no piece holds."""
    pieces = [
        (_expression(piece.formula).subs(count.values).factor(), _condition(piece.region.clauses, count))
        for piece in count.closed.pieces
    ]
    if len(pieces) == 1 and count.covers():
        return pieces[0][0]
    return _sympy().Piecewise(*pieces, (0, True))


def _condition(clauses: list[list[Bound]], count: Count) -> Any:
    parts = [_sympy().And(*(_bound(bound) for bound in clause)) for clause in clauses]
    return _sympy().Or(*parts).subs(count.values)


def _bound(bound: Bound) -> Any:
    form = _linear(bound.form)
    return _sympy().Eq(form, 0) if bound.equal else _sympy().Ge(form, 0)


def _expression(polynomial: Polynomial) -> Any:
    terms: list[Any] = []
    for powers, coefficient in polynomial.terms.items():
        factors = [_atom(atom) ** exponent for atom, exponent in powers]
        terms.append(
            _sympy().Mul(_sympy().Rational(coefficient.numerator, coefficient.denominator), *factors)
        )
    return _sympy().Add(*terms)


def _linear(form: Linear) -> Any:
    return _sympy().Add(*(c * _atom(atom) for atom, c in form.terms), form.constant)


def _atom(atom: Atom) -> Any:
    if isinstance(atom, str):
        return _sympy().Symbol(atom, integer=True)
    of, by = _linear(atom.of), _atom(atom.by) if isinstance(atom.by, str) else _sympy().Integer(atom.by)
    return _sympy().floor(of / by) if isinstance(atom, Quotient) else _sympy().Mod(of, by)
