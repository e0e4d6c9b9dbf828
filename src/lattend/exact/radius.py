"""The spectral radius as a function of the step h, in exact pieces; and the step that makes it least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product, starmap
from typing import Any

import sympy

from lattend.exact.disc import Poly, Z
from lattend.exact.eigenvalues import solved, square_part
from lattend.exact.roots import between, near, positive_roots, real_roots
from lattend.exact.stepmatrix import H, in_h

R = sympy.Symbol("r", positive=True)
MOST_DEGREE = 4  # of a factor in z: the products of pairs of its roots are 6 then, and 15 would take minutes
MOST_MODULI = 12  # polynomials whose common roots are asked for, two by two
HIGHEST = 60  # degree in h of the polynomial for those common roots
DIGITS = 30


@dataclass(frozen=True)
class Piece:
    """Steps from low to high where the squared radius r is the largest real root of one polynomial in r, h.

    `formula` is the radius itself, in h; None where the polynomial has no simple solution.
    """

    low: Any
    high: Any
    polynomial: Poly
    formula: Any | None


@dataclass(frozen=True)
class Best:
    """The step with the least radius, and that radius."""

    step: Any
    factor: Any


def squared_moduli(factor: Poly) -> list[Poly]:
    """Irreducible polynomials in r and h; among their roots r are |z|^2 of all roots z of the factor.

    z z' = |z|^2 for a root and its conjugate, so the products of two roots hold all of them. They come
    from sums of powers: Σ (z_i z_j)^k = (s_k^2 - s_2k)/2 over pairs, Σ z_i^2k = s_2k.

    >>> [one.as_expr() for one in squared_moduli(sympy.Poly(Z**2 - 2 * Z + 1 + H**2, Z, H))][0]
    -h**2 + r - 1
    """
    degree = factor.degree(Z)
    coefficients = sympy.Poly(factor.as_expr(), Z).all_coeffs()
    pairs = degree * (degree - 1) // 2
    sums = _power_sums(coefficients, 2 * max(pairs, degree))
    products = _from_power_sums([(sums[k] ** 2 - sums[2 * k]) / 2 for k in range(1, pairs + 1)])
    squares = _from_power_sums([sums[2 * k] for k in range(1, degree + 1)])
    found = [one for whole in (products, squares) for one, _ in whole.factor_list()[1]]
    return list(dict.fromkeys(_monic(one) for one in found if one.has(R)))


def radius(factors: Sequence[Poly]) -> tuple[Piece, ...] | None:
    """The largest |z| over all factors, piece by piece over h > 0; None where that is too much work."""
    if not factors or any(factor.degree(Z) > MOST_DEGREE for factor in factors):
        return None
    moduli = list(dict.fromkeys(one for factor in factors for one in squared_moduli(factor)))
    if len(moduli) > MOST_MODULI or any(starmap(_too_high, product(moduli, moduli))):
        return None
    ends = [
        sympy.Integer(0),
        *positive_roots(
            [in_h(sympy.discriminant(one, R)) for one in moduli if one.degree(R) > 1]
            + [in_h(sympy.resultant(a, b, R)) for a, b in combinations(moduli, 2)]
        ),
        sympy.oo,
    ]
    real = [root for factor in factors if factor.degree(Z) <= 2 for root in solved(factor.as_expr(), Z)]
    pieces = [_piece(low, high, moduli, real) for low, high in pairwise(ends)]
    found = pieces[:1]
    for piece in pieces[1:]:
        last = found[-1]
        if piece.polynomial == last.polynomial and piece.formula == last.formula:
            found[-1] = replace(last, high=piece.high)
        else:
            found.append(piece)
    return tuple(found)


def best_step(pieces: Sequence[Piece], low: Any, high: Any) -> Best | None:
    """The step between low and high with the least radius; None where no step reaches the least.

    Inside a piece the radius is least where its polynomial's derivative by h is 0 too; else at an end.
    """
    found: list[tuple[Any, Any, Piece]] = []
    for piece in pieces:
        inner = in_h(sympy.resultant(piece.polynomial, piece.polynomial.diff(H), R))
        turns = [] if inner.is_zero else positive_roots([inner])
        for step in (*turns, piece.low, piece.high):
            if piece.low <= step <= piece.high and low < step < high:
                inwards = -1 if step == piece.high else 1
                found.append((_largest(piece.polynomial, step, inwards), step, piece))
    if not found:
        return None
    _, step, piece = min(found, key=lambda one: (one[0], near(one[1])))
    return Best(step, _exact_radius(piece, step))


def radius_at(pieces: Sequence[Piece], step: Any) -> Any:
    """The radius at one step, exact."""
    return _exact_radius(next(piece for piece in pieces if piece.low <= step <= piece.high), step)


def _piece(low: Any, high: Any, moduli: Sequence[Poly], real: Sequence[Any]) -> Piece:
    at = between(low, high)
    sizes = [(_largest(one, at), -place) for place, one in enumerate(moduli)]
    value, place = max(size for size in sizes if size[0] is not None)
    polynomial = moduli[-place]
    return Piece(low, high, polynomial, _solved(polynomial, at, value, real))


def _largest(polynomial: Poly, step: Any, inwards: int = 1) -> Any:
    """The largest real root r at one step, to many digits; None if there is none.

    An irrational step is taken a little further inwards: a double root at a piece's end is not lost there.
    """
    if not step.is_Rational:
        unit = sympy.Rational(1, 10**DIGITS)
        step = sympy.floor(near(step) / unit) * unit + (unit if inwards > 0 else 0)
    one = sympy.Poly(polynomial.as_expr().subs(H, step), R, domain="QQ")
    intervals: Any = one.intervals(eps=sympy.Rational(1, 10**DIGITS))
    return max((near((low + high) / 2) for (low, high), _ in intervals), default=None)


def _solved(polynomial: Poly, at: Any, square: Any, real: Sequence[Any]) -> Any | None:
    """The radius as a formula: a real eigenvalue, or the root of an r of degree 1 or 2."""
    for value in real:
        here = near(value.subs(H, at))
        if here.is_real and _equal(here**2, square):
            return (
                value * sympy.sign(here) if value.is_number or not value.is_polynomial() else sympy.Abs(value)
            )
    if polynomial.degree(R) > 2:
        return None
    for value in solved(polynomial.as_expr(), R):
        if _equal(near(value.subs(H, at)), square):
            outside, inside = square_part(value) if value.is_polynomial() else (sympy.Integer(1), value)
            return sympy.Abs(outside) * sympy.sqrt(inside)
    return None


def _equal(a: Any, b: Any) -> bool:
    return bool(abs(a - b) < sympy.Float(10) ** -20)


def _exact_radius(piece: Piece, step: Any) -> Any:
    """The radius at one step: a formula if there is one, else the root of a polynomial."""
    if piece.formula is not None and not step.has(sympy.CRootOf):
        return sympy.sqrtdenest(sympy.radsimp(sympy.simplify(piece.formula.subs(H, step))))
    value = sympy.sqrt(_largest(piece.polynomial, step, -1 if step == piece.high else 1))
    return _algebraic(piece.polynomial, step, value)


def _algebraic(polynomial: Poly, step: Any, value: Any) -> Any:
    """The radius near `value` as an exact root of the polynomial that eliminating h leaves."""
    minimal = sympy.minimal_polynomial(step, H)
    squared = polynomial.as_expr().subs(R, R**2)
    whole = sympy.Poly(sympy.resultant(squared, minimal, H), R, domain="QQ")
    roots = [root for factor, _ in whole.factor_list()[1] for root in real_roots(factor)]
    return min(roots, key=lambda root: abs(near(root) - value))


def _power_sums(coefficients: Sequence[Any], many: int) -> list[Any]:
    """Σ z_i^k for k = 0 … many, by Newton's identities; the coefficients begin with 1."""
    degree = len(coefficients) - 1
    sums: list[Any] = [sympy.Integer(degree)]
    for k in range(1, many + 1):
        total = -k * coefficients[k] if k <= degree else sympy.Integer(0)
        total -= sum(coefficients[i] * sums[k - i] for i in range(1, min(k - 1, degree) + 1))
        sums.append(sympy.expand(total))
    return sums


def _from_power_sums(sums: Sequence[Any]) -> Poly:
    """The polynomial in r whose roots have these sums of powers."""
    coefficients: list[Any] = [sympy.Integer(1)]
    for k in range(1, len(sums) + 1):
        total = sum(coefficients[k - i] * sums[i - 1] for i in range(1, k + 1))
        coefficients.append(sympy.expand(-total / k))
    degree = len(sums)
    return sympy.Poly(sum(c * R ** (degree - k) for k, c in enumerate(coefficients)), R, H, domain="QQ")


def _monic(polynomial: Poly) -> Poly:
    return polynomial.mul_ground(1 / sympy.LC(polynomial.as_expr(), R))


def _too_high(a: Poly, b: Poly) -> bool:
    return a.degree(R) * b.degree(H) + a.degree(H) * b.degree(R) > HIGHEST
