"""How many roots of a polynomial lie inside, on and outside the unit circle: counted exactly."""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from lattend.study.exact.roots import Poly, horner
from lattend.study.exact.sign import changes, inertia, sign

Z, W = sympy.symbols("z w")


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
        changes([sign(horner(part, domain.convert(at), domain.zero), domain) for part in chain])
        for at in (-2, 2)
    )
    return low - high
