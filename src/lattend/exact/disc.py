"""How many roots of a polynomial lie inside, on and outside the unit circle: counted exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import sympy
from sympy.polys.domains.domain import Domain
from sympy.polys.matrices import DomainMatrix

Poly = Any  # sympy.Poly, whose own types cannot be checked
Z, W = sympy.symbols("z w")
DIGITS = 40


@dataclass(frozen=True)
class Disc:
    """Roots inside, on and outside |z| = 1, with their multiplicities."""

    inside: int
    on: int
    outside: int


def disc(polynomial: Poly) -> Disc:
    """Where the roots of a polynomial in z lie; its coefficients are in QQ or in a real number field.

    Roots that come as pairs z and 1/z are those common to it and its mirror z^n·f(1/z). Without them the
    signs of the Schur–Cohn matrix count the rest; the pairs on the circle are real z + 1/z in [-2, 2].

    >>> disc(sympy.Poly((2 * Z - 1) * (Z - 3) * (Z**2 + 1), Z))
    Disc(inside=1, on=2, outside=1)
    """
    polynomial = polynomial.to_field()
    pairs = polynomial.gcd(mirrored(polynomial))
    inside, outside = _schur_cohn(polynomial.quo(pairs))
    on = sum(power * _on_circle(part) for part, power in pairs.sqf_list()[1])
    off = (pairs.degree() - on) // 2
    return Disc(inside + off, on, outside + off)


def mirrored(polynomial: Poly) -> Poly:
    """z^n·f(1/z): the coefficients backwards.

    >>> mirrored(sympy.Poly(Z**2 - 3 * Z + 2, Z)).as_expr()
    2*z**2 - 3*z + 1
    """
    coefficients = polynomial.rep.to_list()[::-1]
    return sympy.Poly.from_list(coefficients, polynomial.gen, domain=polynomial.domain)


def inertia(rows: Sequence[Sequence[Any]], domain: Domain) -> tuple[int, int, int]:
    """How many eigenvalues of a symmetric matrix are above, below and at 0.

    All are real, so Descartes' rule is exact: as many are above 0 as the characteristic polynomial's
    coefficients change sign.

    >>> inertia([[sympy.QQ(0), sympy.QQ(1)], [sympy.QQ(1), sympy.QQ(0)]], sympy.QQ)
    (1, 1, 0)
    """
    size = len(rows)
    if size == 0:
        return 0, 0, 0
    coefficients = DomainMatrix([list(row) for row in rows], (size, size), domain).charpoly()
    signs = [sign(c, domain) for c in coefficients]
    zero = next(at for at, s in enumerate(reversed(signs)) if s)
    above = _changes(signs)
    return above, size - above - zero, zero


def sign(value: Any, domain: Domain) -> int:
    """The sign of a number of QQ or of a real number field; 0 is decided exactly."""
    if value == domain.zero:
        return 0
    if domain.is_QQ:
        return 1 if value > 0 else -1
    expression = domain.to_sympy(value)
    digits = DIGITS
    while True:  # a number that is not 0 shows its sign once there are enough digits
        near = expression.evalf(digits, maxn=100 * digits)
        if abs(near) > sympy.Float(10) ** (-digits // 2):
            return 1 if near > 0 else -1
        digits *= 2


def _schur_cohn(polynomial: Poly) -> tuple[int, int]:
    """Roots inside and outside of a polynomial without pairs z and 1/z."""
    domain, lead = polynomial.domain, polynomial.rep.to_list()
    size = len(lead) - 1
    back = lead[::-1]
    # Σ_k a_(i-k) a_(j-k) - c_(i-k) c_(j-k), with c the coefficients backwards
    rows = [
        [
            sum(
                (lead[i - k] * lead[j - k] - back[i - k] * back[j - k] for k in range(min(i, j) + 1)),
                domain.zero,
            )
            for j in range(size)
        ]
        for i in range(size)
    ]
    inside, outside, _ = inertia(rows, domain)
    return inside, outside


def _on_circle(polynomial: Poly) -> int:
    """Roots on the circle of a square-free polynomial that is its own mirror."""
    on = 0
    for point in (1, -1):
        if polynomial.eval(point) == 0:
            on += 1
            polynomial = polynomial.quo(sympy.Poly(Z - point, Z, domain=polynomial.domain))
    if polynomial.degree() <= 0:
        return on
    return on + 2 * _real_roots_between(_in_sums(polynomial))


def _in_sums(polynomial: Poly) -> Poly:
    """The polynomial in w = z + 1/z, divided by z^(n/2)."""
    domain, coefficients = polynomial.domain, polynomial.rep.to_list()
    half = len(coefficients) // 2
    w = sympy.Poly(W, W, domain=domain)
    powers = [w.one * 2, w]  # z^k + z^-k
    while len(powers) <= half:
        powers.append(w * powers[-1] - powers[-2])
    total = w.one.mul_ground(coefficients[half])
    for k in range(1, half + 1):
        total += powers[k].mul_ground(coefficients[half - k])
    return total


def _real_roots_between(polynomial: Poly) -> int:
    """Real roots in (-2, 2) of a square-free polynomial that is not 0 at the ends, by Sturm."""
    if polynomial.degree() <= 0:
        return 0
    chain = [part.rep.to_list() for part in polynomial.sturm()]
    domain = polynomial.domain
    low, high = (
        _changes([sign(_value(part, domain.convert(at), domain), domain) for part in chain]) for at in (-2, 2)
    )
    return low - high


def _value(coefficients: Sequence[Any], at: Any, domain: Domain) -> Any:
    total = domain.zero
    for c in coefficients:
        total = total * at + c
    return total


def _changes(signs: Sequence[int]) -> int:
    kept = [s for s in signs if s]
    return sum(a != b for a, b in pairwise(kept))
