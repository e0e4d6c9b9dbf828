"""Powers of a matrix of polynomials in h: for which h > 0 they vanish, stay bounded or grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from math import gcd
from typing import Any

import sympy
from sympy.polys.matrices import DomainMatrix

from lattend.report.shown import Shown
from lattend.study.exact.numbers import RATIONALS, NumberField, number_field
from lattend.study.exact.roots import Poly, at_most, between, horner, positive_roots
from lattend.study.exact.sign import changes, inertia, sign
from lattend.study.exact.writing import format_exact

Z, W = sympy.symbols("z w")


@dataclass(frozen=True)
class Disc:
    """Roots inside, on and outside |z| = 1, with their multiplicities."""

    inside: int
    on: int
    outside: int


def disc(polynomial: Poly) -> Disc:
    """Counts the roots of a polynomial in z inside, on and outside the unit circle, exactly.

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


H = sympy.Symbol("h", positive=True)


@dataclass(frozen=True)
class Behaviour:
    """The behaviour of powers of a matrix, and where its eigenvalues lie.

    converges  to 0, all eigenvalues inside the unit circle
    settles    to a limit: 1 is the only eigenvalue on the circle
    cycles     stays bounded, without a limit
    grows      like t^order: an eigenvalue on the circle has too few eigenvectors
    diverges   exponentially, an eigenvalue lies outside
    """

    kind: str
    roots: Disc
    order: int = 0


@dataclass(frozen=True)
class Range:
    """The h from low to high, an end belonging to it or not, and what happens there; None if not decided."""

    low: Any
    high: Any
    low_in: bool
    high_in: bool
    behaviour: Behaviour | None

    def __contains__(self, h: Any) -> bool:
        above = self.low_in if h == self.low else not at_most(h, self.low)
        return above and (self.high_in if h == self.high else not at_most(self.high, h))


class MatrixOfH(Shown):
    """A square matrix of polynomials in h, their coefficients in a number field."""

    def __init__(self, rows: Sequence[Sequence[Any]], field: NumberField = RATIONALS) -> None:
        self.size = len(rows)
        self.field = field
        ring = field.domain[H]
        entries = [[ring.from_sympy(sympy.expand(entry)) for entry in row] for row in rows]
        self.matrix = DomainMatrix(entries, (self.size, self.size), ring)

    @property
    def texts(self) -> list[list[str]]:
        """The entries as people type them."""
        domain = self.matrix.domain
        return [[format_exact(domain.to_sympy(entry)) for entry in row] for row in self.matrix.to_list()]

    def __str__(self) -> str:
        return f"[{'; '.join(', '.join(row) for row in self.texts)}]"

    def __repr__(self) -> str:
        return f"<MatrixOfH {self}>"

    @cached_property
    def characteristic(self) -> Poly:
        """det(zI - M), in z and h."""
        terms = [self.matrix.domain.to_sympy(c) for c in self.matrix.charpoly()]
        polynomial = sum(c * Z ** (self.size - k) for k, c in enumerate(terms))
        return sympy.Poly(polynomial, Z, H, domain=self.field.domain)

    @cached_property
    def factors(self) -> list[tuple[Poly, int]]:
        """The irreducible factors of the characteristic polynomial, 1 as the coefficient of the highest z.

        With surds in the matrix these are factors without double roots, which may still split.
        """
        polynomial = self.characteristic
        powers = (polynomial.factor_list() if self.field.rational else polynomial.sqf_list())[1]
        return [(_monic_in_z(factor), power) for factor, power in powers]

    def rows_at(self, h: Any) -> tuple[DomainMatrix, Poly] | None:
        """The matrix and its characteristic polynomial at one exact h; None beyond number fields."""
        field = number_field([h] if self.field.rational else [h, self.field.domain.ext.as_expr()])
        if field is None:
            return None
        domain = field.domain
        at = domain.from_sympy(sympy.sympify(h))
        rows = [[self._value(entry, at, domain) for entry in row] for row in self.matrix.to_list()]
        matrix = DomainMatrix(rows, (self.size, self.size), domain)
        coefficients = [self._value(c, at, domain) for c in self.matrix.charpoly()]
        return matrix, sympy.Poly.from_list(coefficients, Z, domain=domain)

    def at(self, h: Any) -> Behaviour | None:
        """The behaviour at one exact h; None where that is in no small number field."""
        rows = self.rows_at(h)
        return None if rows is None else behaviour(*rows)

    def period(self, h: Any) -> int | None:
        """The least m with M^m = 1 at one exact h; None if there is none."""
        rows = self.rows_at(h)
        return None if rows is None else cyclotomic_period(*rows)

    @cached_property
    def ranges(self) -> tuple[Range, ...]:
        """All h > 0 in ranges with one behaviour each, neighbours with the same one not yet `merged`.

        An eigenvalue can only reach or leave the unit circle where a factor of the characteristic polynomial
        has a root in common with its mirror, or, if it is its own mirror, a double root. Between those h
        one exact count holds for all.
        """
        ends = [sympy.Integer(0), *positive_roots(self.critical), sympy.oo]
        joined_ranges: list[Range] = []
        for low, high in pairwise(ends):
            joined_ranges.append(Range(low, high, False, False, self.at(between(low, high))))
            if high != sympy.oo:
                joined_ranges.append(Range(high, high, True, True, self.at(high)))
        return tuple(joined_ranges)

    @cached_property
    def critical(self) -> list[Poly]:
        """Polynomials in h; between their roots the behaviour stays as it is."""
        polynomials: list[Poly] = []
        alone: list[Poly] = []
        for factor, power in self.factors:
            pairs = factor.gcd(_mirror(factor))  # all of an irreducible factor, or nothing
            rest = factor.quo(pairs)
            if rest.degree(Z) > 0:
                polynomials.append(rest.resultant(_mirror(rest)))
            if pairs.degree(Z) > 0:
                alone.append(pairs)
                polynomials.append(pairs.discriminant())
                if power > 1:
                    polynomials.append(self._defect(factor, power))
        polynomials += [a.resultant(b) for a, b in combinations(alone, 2)]
        return [_over_rationals(one) for one in polynomials if not one.is_zero]

    def _defect(self, factor: Poly, power: int) -> Poly:
        """0 where a repeated factor gets all its eigenvectors, though it lacks some elsewhere."""
        rest = self.characteristic.quo(factor**power)
        ring = self.matrix.domain
        coefficients = [ring.from_sympy(c) for c in sympy.Poly((rest * factor).as_expr(), Z).all_coeffs()]
        entries = polynomial_of(self.matrix, coefficients).to_list_flat()
        common: Poly = sympy.Poly(0, H, domain=self.field.domain)
        for entry in entries:
            common = common.gcd(sympy.Poly(ring.to_sympy(entry), H, domain=self.field.domain))
        return common

    def _value(self, entry: Any, at: Any, domain: Any) -> Any:
        """A polynomial in h at a number of a field that holds its coefficients."""
        own = self.field.domain
        coefficients = [domain.from_sympy(own.to_sympy(c)) for c in entry.to_dense()]
        return horner(coefficients, at, domain.zero)


def behaviour(matrix: DomainMatrix, characteristic: Poly) -> Behaviour:
    """The behaviour of powers of a matrix over a number field."""
    roots = disc(characteristic)
    if roots.outside:
        return Behaviour("diverges", roots)
    if not roots.on:
        return Behaviour("converges", roots)
    pairs = characteristic.gcd(mirrored(characteristic))  # the roots on the circle, all of them
    rest, simple = characteristic.quo(pairs), pairs.quo(pairs.gcd(pairs.diff()))
    order, product = 0, rest * simple
    while not polynomial_of(matrix, product.rep.to_list()).is_zero_matrix:
        order, product = order + 1, product * simple
    if order:
        return Behaviour("grows", roots, order)
    only_one = simple.degree() == 1 and simple.eval(1) == 0
    return Behaviour("settles" if only_one else "cycles", roots)


def cyclotomic_period(matrix: DomainMatrix, characteristic: Poly) -> int | None:
    """The least m with M^m = 1, from the roots of unity that the eigenvalues are; None if there is none."""
    norm = characteristic if characteristic.domain.is_QQ else characteristic.norm()
    orders: list[int] = []
    for factor, _ in norm.factor_list()[1]:
        integral = factor.clear_denoms(convert=True)[1]
        if not integral.is_cyclotomic:
            return None
        orders.append(_order(integral))
    period = 1
    for order in orders:
        period = period * order // gcd(period, order)
    one = DomainMatrix.eye(matrix.shape[0], matrix.domain).to_dense()
    return next((m for m in sympy.divisors(period) if matrix**m == one), None)


def polynomial_of(matrix: DomainMatrix, coefficients: Sequence[Any]) -> DomainMatrix:
    """A polynomial, its highest coefficient first, of a matrix."""
    one = DomainMatrix.eye(matrix.shape[0], matrix.domain).to_dense()
    total = one * matrix.domain.zero
    for c in coefficients:
        total = total * matrix + one * c
    return total


def _monic_in_z(factor: Poly) -> Poly:
    return factor.mul_ground(1 / factor.LC())


def in_h(expression: Any) -> Poly:
    """The expression as a polynomial in h alone."""
    return sympy.Poly(getattr(expression, "as_expr", lambda: expression)(), H, domain="QQ")


def _mirror(factor: Poly) -> Poly:
    degree = factor.degree(Z)
    terms = {(degree - z, h): c for (z, h), c in factor.terms()}
    return sympy.Poly.from_dict(terms, Z, H, domain=factor.domain)


def _order(cyclotomic: Poly) -> int:
    """The m whose primitive roots of 1 are this polynomial's roots."""
    degree = cyclotomic.degree()
    m = 1
    while sympy.totient(m) != degree or sympy.cyclotomic_poly(m, Z, polys=True) != cyclotomic:
        m += 1
    return m


def _over_rationals(polynomial: Poly) -> Poly:
    """A polynomial in h over the rationals with the same roots and perhaps more: times its conjugates."""
    return polynomial if polynomial.domain.is_QQ else polynomial.norm()


def merged(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Neighbours with the same behaviour put together."""
    joined_ranges: list[Range] = []
    for one in ranges:
        last = joined_ranges[-1] if joined_ranges else None
        if last and _same(last.behaviour, one.behaviour):
            joined_ranges[-1] = replace(last, high=one.high, high_in=one.high_in)
        else:
            joined_ranges.append(one)
    return tuple(joined_ranges)


def _same(a: Behaviour | None, b: Behaviour | None) -> bool:
    return a is not None and b is not None and (a.kind, a.order) == (b.kind, b.order)
