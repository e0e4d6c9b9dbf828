"""Eigenvalues as formulas in h, what steps keep, and the h at which a power of the matrix is 1."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import sympy
from sympy.polys.matrices import DomainMatrix

from lattend.study.exact.matrix import H, MatrixOfH, Z, in_h
from lattend.study.exact.roots import Poly, positive_roots

MOST_DEGREE = 6  # of a factor that is split with i


Pair = tuple[Any, Any]  # middle and spread, for middle ± spread; no spread means one root


def eigenvalues(factor: Poly) -> list[Pair] | None:
    """The roots z = middle ± spread of an irreducible factor, in h; None where square roots do not suffice.

    >>> eigenvalues(sympy.Poly(Z**2 - 2 * Z + 1 + H**2, Z, H))
    [(1, I*h)]
    """
    degree = factor.degree(Z)
    if degree <= 2:
        return [middle_and_spread(factor.as_expr(), Z)]
    if degree > MOST_DEGREE:
        return None
    parts = [part for part, _ in sympy.factor_list(factor.as_expr(), Z, H, gaussian=True)[1]]
    if any(sympy.degree(part, Z) > 2 for part in parts):
        return None
    return [middle_and_spread(part, Z) for part in parts]


def roots_by_squares(expression: Any, name: Any) -> list[Any]:
    """The roots of a polynomial of degree 1 or 2 in one name."""
    middle, spread = middle_and_spread(expression, name)
    return [middle + spread, middle - spread] if spread != 0 else [middle]


def middle_and_spread(expression: Any, name: Any) -> Pair:
    """The roots middle ± spread of a polynomial of degree 1 or 2, squares taken out of the root.

    >>> x = sympy.Symbol("x")
    >>> middle_and_spread(x**2 - 2 * x - 7, x)
    (1, 2*sqrt(2))
    """
    coefficients = sympy.Poly(expression, name).all_coeffs()
    lead = coefficients[0]
    if len(coefficients) == 2:
        return sympy.expand(-coefficients[1] / lead), sympy.Integer(0)
    half = sympy.expand(-coefficients[1] / (2 * lead))
    outside, inside = square_part(sympy.expand(half**2 - coefficients[2] / lead))
    return half, sympy.expand(outside * sympy.sqrt(inside))


def square_part(expression: Any) -> tuple[Any, Any]:
    """A and b with expression = a^2·b, b without square factors or a negative constant in front.

    >>> square_part(sympy.expand(-8 * H**2 * (1 - H)))
    (2*h, 2*h - 2)
    """
    if expression.is_number:
        return sympy.Integer(1), expression
    split: Any = sympy.factor_list(expression)
    number, factors = split
    outside, inside = sympy.Integer(1), sympy.Integer(1)
    for factor, power in factors:
        outside *= factor ** (power // 2)
        inside *= factor ** (power % 2)
    taken = sympy.sqrt(abs(number)) if number.is_Rational else sympy.Integer(1)
    rational = taken if taken.is_Rational else taken.as_coeff_Mul()[0]  # 2 of 2·sqrt(3)
    return sympy.expand(outside * rational), sympy.expand(number / rational**2 * inside)


MOST_NAMES = 4  # of a quadratic form; 10 coefficients then
MOST_POWER = 60  # of a matrix whose entries grow with every factor
SINE = sympy.Symbol("s", positive=True)
TURNS, PERIOD = sympy.symbols("j m", positive=True, integer=True)


def quadratic_invariants(matrix: MatrixOfH, names: Sequence[Any]) -> list[Any]:
    """Quadratic forms x'Px that stay equal, M'PM = P, for every h: a basis, as formulas in the names.

    The entries of P solve linear equations over the fractions of polynomials in h. M = 1 keeps every form:
    none is named.
    """
    size = matrix.size
    if size > MOST_NAMES or matrix.matrix == DomainMatrix.eye(size, matrix.matrix.domain).to_dense():
        return []
    places = [(i, j) for i in range(size) for j in range(i, size)]
    M = matrix.matrix
    columns: list[list[Any]] = []
    for i, j in places:
        P = DomainMatrix.zeros((size, size), M.domain).to_dense()
        P[i, j] = P[j, i] = M.domain.one
        columns.append((M.transpose() * P * M - P).to_list_flat())
    system = DomainMatrix(columns, (len(places), size * size), M.domain).transpose().to_field()
    field = system.domain
    forms: list[Any] = []
    for solution in system.nullspace().to_list():
        form = sum(
            field.to_sympy(c) * names[i] * names[j] * (1 if i == j else 2)
            for c, (i, j) in zip(solution, places, strict=True)
        )
        forms.append(_whole(form, names))
    return forms


def form_change(matrix: MatrixOfH, form: Sequence[Sequence[Any]], names: Sequence[Any]) -> tuple[Any, bool]:
    """How M changes a quadratic form P, x'(M'PM - P)x, factored, and whether that is 0 on whole lines."""
    M = matrix.matrix
    size = len(names)
    P = DomainMatrix([[M.domain.from_sympy(x) for x in row] for row in form], (size, size), M.domain)
    change = (M.transpose() * P * M - P).to_Matrix()
    vector = sympy.Matrix(names)
    change_of_form = sympy.factor((vector.T * change * vector)[0, 0])
    factors = [one for one, _ in sympy.factor_list(change_of_form)[1] if one.has(*names)]
    if all(sympy.Poly(one, *names).total_degree() == 1 for one in factors):
        return change_of_form, True
    return change_of_form, size == 2 and _always_above(in_h(-change.det()))


def _always_above(polynomial: Poly) -> bool:
    """Whether a polynomial in h is above 0 for every h > 0."""
    return not positive_roots([polynomial]) and polynomial.eval(1) > 0


def periodic(matrix: MatrixOfH) -> Any | None:
    """The h as a formula in j and m at which a power m is 1 for the first time; None if it has none.

    For a factor z^2 - w(h)z + 1 the eigenvalues are m-th roots of 1 where w = 2cos(2 pi j/m), j and m without
    a common factor. With s = sin(j pi/m) that is w(h) = 2 - 4s^2, which is solved for h.
    """
    if len(matrix.factors) != 1:
        return None
    (factor, power) = matrix.factors[0]
    coefficients = sympy.Poly(factor.as_expr(), Z).all_coeffs()
    if power != 1 or len(coefficients) != 3 or coefficients[2] != 1:
        return None
    equation = sympy.expand(-coefficients[1] - 2 + 4 * SINE**2)
    if sympy.Poly(equation, H).degree() > 2:
        return None
    steps = [sympy.simplify(root) for root in roots_by_squares(equation, H)]
    above = [root for root in steps if root.subs(SINE, sympy.Rational(1, 3)).evalf() > 0]
    return above[0].subs(SINE, sympy.sin(TURNS * sympy.pi / PERIOD)) if len(above) == 1 else None


def all_of_period(matrix: MatrixOfH, m: int) -> list[Any]:
    """All h > 0 at which M^m = 1 and no lower power is.

    By the formula in j and m where there is one, else as the common roots of the entries of M^m - 1.
    """
    formula = periodic(matrix)
    if formula is not None:
        turns = [j for j in range(1, (m + 1) // 2) if gcd(j, m) == 1]
        return [formula.subs({TURNS: j, PERIOD: m}) for j in turns]
    return common_roots(matrix, m)


def common_roots(matrix: MatrixOfH, m: int) -> list[Any]:
    """The h > 0 at which M^m = 1 and no lower power is, as exact roots of polynomials in h."""
    lower = [divisor for divisor in sympy.divisors(m) if divisor < m]
    seen = {root for divisor in lower for root in positive_roots([_distance(matrix, divisor)])}
    return [root for root in positive_roots([_distance(matrix, m)]) if root not in seen]


def _distance(matrix: MatrixOfH, m: int) -> Poly:
    """A polynomial that is 0 where M^m = 1: the common divisor of the entries of M^m - 1."""
    M = matrix.matrix
    one = DomainMatrix.eye(matrix.size, M.domain).to_dense()
    common: Poly = in_h(0)
    for entry in (M**m - one).to_list_flat():
        common = sympy.gcd(common, in_h(M.domain.to_sympy(entry)))
    return common


def _whole(form: Any, names: Sequence[Any]) -> Any:
    """The form without denominators or a common factor; its first square has a coefficient above 0."""
    above = sympy.fraction(sympy.together(form))[0]
    polynomial = sympy.Poly(above, *names, domain=sympy.QQ[H])
    content, primitive = sympy.Poly(above, *names, H, domain="QQ").primitive()
    common = sympy.Integer(0)
    for c in polynomial.coeffs():
        common = sympy.gcd(common, c)
    reduced = sympy.expand(sympy.cancel(primitive.as_expr() * content / common))
    first = sympy.Poly(reduced, *names).coeffs()[0]
    return -reduced if first.could_extract_minus_sign() else reduced
