"""The spectral radius as a function of h, in exact pieces; and the h that makes it least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product, starmap
from typing import Any

import sympy

from lattend.errors import NoClosedForm
from lattend.study.exact.eigenvalues import middle_and_spread, roots_by_squares, square_part
from lattend.study.exact.matrix import H, Z, in_h
from lattend.study.exact.roots import PRECISIONS, Poly, at_most, between, near, positive_roots, real_roots
from lattend.study.exact.sign import sign_of

R = sympy.Symbol("r", positive=True)
MOST_DEGREE = 4  # of a factor in z: the products of pairs of its roots are 6 then, and 15 would take minutes
MOST_MODULI = 12  # polynomials whose common roots are asked for, two by two
HIGHEST = 60  # degree in h of the polynomial for those common roots
DIGITS = 60  # of an irrational h that a root is found near; at a double root half of them hold
TEN = sympy.Integer(10)


@dataclass(frozen=True)
class RadiusPiece:
    """The h from low to high where the squared radius r is the largest real root of one polynomial in r, h.

    `formula` is the radius itself, in h; None where the polynomial has no simple solution.
    """

    low: Any
    high: Any
    polynomial: Poly
    formula: Any | None


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
    factors = [one for polynomial in (products, squares) for one, _ in polynomial.factor_list()[1]]
    return list(dict.fromkeys(_monic(one) for one in factors if one.has(R)))


def radius(factors: Sequence[Poly]) -> tuple[RadiusPiece, ...] | None:
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
    real = [z for factor in factors if factor.degree(Z) <= 2 for z in roots_by_squares(factor.as_expr(), Z)]
    pieces = [_piece(low, high, moduli, real) for low, high in pairwise(ends)]
    joined_pieces = pieces[:1]
    for piece in pieces[1:]:
        last = joined_pieces[-1]
        if piece.polynomial == last.polynomial and piece.formula == last.formula:
            joined_pieces[-1] = replace(last, high=piece.high)
        else:
            joined_pieces.append(piece)
    return tuple(joined_pieces)


def least_radius(pieces: Sequence[RadiusPiece], low: Any, high: Any) -> tuple[Any, Any] | None:
    """The h between low and high with the least radius, and that radius; None where no h reaches it.

    Inside a piece the radius is least where its polynomial's derivative by h is 0 too; else at an end.
    """
    minima: list[tuple[Any, RadiusPiece]] = []
    for piece in pieces:
        inner = in_h(sympy.resultant(piece.polynomial, piece.polynomial.diff(H), R))
        turns = [] if inner.is_zero else positive_roots([inner])
        for h in (*turns, piece.low, piece.high):
            inside = not at_most(h, low) and not at_most(high, h)
            if inside and at_most(piece.low, h) and at_most(h, piece.high):
                minima.append((h, piece))
    if not minima:
        return None
    h, piece = _lowest(minima)
    return h, _exact_radius(piece, h)


def radius_at(pieces: Sequence[RadiusPiece], h: Any) -> Any:
    """The radius at one h, exact."""
    return _exact_radius(next(piece for piece in pieces if at_most(h, piece.high)), h)


def _lowest(minima: Sequence[tuple[Any, RadiusPiece]]) -> tuple[Any, RadiusPiece]:
    """The h with the least radius; the first of those whose radii agree to hundreds of digits."""
    tied = list(minima)
    for digits in PRECISIONS:
        sizes = [_near_square(piece, h, digits) for h, piece in tied]
        close = min(sizes) * (1 + TEN ** (5 - digits // 2))
        tied = [one for one, size in zip(tied, sizes, strict=True) if size <= close]
        if len({h for h, _ in tied}) == 1:
            break
    return min(tied, key=lambda one: near(one[0]))


def _piece(low: Any, high: Any, moduli: Sequence[Poly], real: Sequence[Any]) -> RadiusPiece:
    """The piece between two ends: at a fraction there, no two polynomials have a root in common."""
    at = between(low, high)
    for digits in PRECISIONS:
        roots = [(interval, one) for one in moduli if (interval := _largest(one, at, digits))]
        (least, most), polynomial = max(roots, key=lambda pair: pair[0])
        if len([one for one in roots if one[0][1] >= least]) == 1:
            return RadiusPiece(low, high, polynomial, _formula(polynomial, at, (least, most), real))
    raise NoClosedForm(f"which of two radii is larger, that agree to {PRECISIONS[-1]} digits")


def _largest(polynomial: Poly, h: Any, digits: int) -> tuple[Any, Any] | None:
    """Two fractions, the largest real root r between them, at a rational h; None if there is none."""
    one = sympy.Poly(polynomial.as_expr().subs(H, h), R, domain="QQ")
    intervals: Any = one.intervals(eps=TEN**-digits)
    return max((interval for interval, _ in intervals), default=None)


def _near_square(piece: RadiusPiece, h: Any, digits: int) -> Any:
    """The squared radius at one h, to about so many digits.

    An irrational h is taken a little further into the piece: a double root at its end is not lost there.
    """
    if not h.is_Rational:
        inwards = -1 if h == piece.high else 1
        h = sympy.Rational(near(h, digits + 5)) * (1 + inwards * TEN**-digits)
    square = _largest(piece.polynomial, h, digits)
    assert square is not None
    return (square[0] + square[1]) / 2


def _formula(polynomial: Poly, at: Any, ends: tuple[Any, Any], real: Sequence[Any]) -> Any | None:
    """The radius as a formula: a real eigenvalue, or the root of an r of degree 1 or 2."""
    for value in real:
        value_at = value.subs(H, at)
        if value_at.is_real and _is_root(polynomial.as_expr().subs(H, at), sympy.expand(value_at**2), ends):
            is_power = value.is_polynomial() and not value.is_number
            return sympy.Abs(value) if is_power else value * sign_of(value_at)
    if polynomial.degree(R) > 2:
        return None
    middle, spread = middle_and_spread(polynomial.as_expr(), R)
    value = middle + spread * sign_of(spread.subs(H, at))
    outside, inside = square_part(value) if value.is_polynomial() else (sympy.Integer(1), value)
    return sympy.Abs(outside) * sympy.sqrt(inside)


def _is_root(polynomial: Any, number: Any, ends: tuple[Any, Any]) -> bool:
    """Whether an exact number is the only root between two ends."""
    inside = sign_of(number - ends[0]) >= 0 >= sign_of(number - ends[1])
    return inside and sympy.expand(polynomial.subs(R, number)) == 0


def _exact_radius(piece: RadiusPiece, h: Any) -> Any:
    """The radius at one h: a formula if there is one, else the root of a polynomial."""
    if piece.formula is not None and not h.has(sympy.CRootOf):
        return sympy.sqrtdenest(sympy.radsimp(sympy.simplify(piece.formula.subs(H, h))))
    return _algebraic(piece.polynomial, h, _near_square(piece, h, DIGITS))


def _algebraic(polynomial: Poly, h: Any, square: Any) -> Any:
    """The radius whose square is near this, as an exact root of the polynomial that eliminating h leaves."""
    minimal = sympy.minimal_polynomial(h, H)
    squared = polynomial.as_expr().subs(R, R**2)
    eliminated = sympy.Poly(sympy.resultant(squared, minimal, H), R, domain="QQ")
    roots = [
        root for factor, _ in eliminated.factor_list()[1] for root in real_roots(factor) if sign_of(root) >= 0
    ]
    doubt = max(square, 1) * TEN ** (5 - DIGITS // 2)
    close = [root for root in roots if abs(near(root) ** 2 - square) < doubt]
    if len(close) != 1:
        raise NoClosedForm("a radius that another root comes too close to")
    return close[0]


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
