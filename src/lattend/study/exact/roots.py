"""Real roots of polynomials and solutions of polynomial equations, as exact numbers in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, pairwise
from math import floor, prod
from typing import Any

import sympy
from sympy.polys.matrices import DomainMatrix

from lattend.errors import NoClosedForm
from lattend.study.exact.numbers import NumberField
from lattend.study.exact.sign import sign_of

Poly = Any  # sympy.Poly, whose own types cannot be checked
DIGITS = 40
PRECISIONS = (40, 80, 160, 320, 640)  # digits; asked for in turn until numbers come apart
HIGHEST = 12  # degree of a polynomial whose roots are isolated; 18 has taken minutes


def positive_roots(polynomials: Iterable[Poly]) -> list[Any]:
    """The real roots above 0 of any of these polynomials in one name, each once, in order.

    >>> x = sympy.Symbol("x")
    >>> positive_roots([sympy.Poly(x**2 - 3, x), sympy.Poly(x**3 - x, x)])
    [1, sqrt(3)]
    """
    factors = {factor for one in polynomials if not one.is_ground for factor, _ in one.factor_list()[1]}
    roots = [root for factor in factors if factor.count_roots(0, None) for root in real_roots(factor)]
    return _in_order([root for root in roots if sign_of(root) > 0])


def real_roots(irreducible: Poly) -> list[Any]:
    """The real roots of an irreducible polynomial; by square roots where its even powers allow it."""
    if irreducible.degree() > HIGHEST:
        raise NoClosedForm(
            f"the roots of a polynomial of degree {irreducible.degree()}; {HIGHEST} is the limit"
        )
    coefficients = irreducible.all_coeffs()
    if irreducible.degree() == 4 and not any(coefficients[1::2]):
        squares: Any = sympy.Poly(coefficients[::2], irreducible.gen).real_roots()
        above = [sympy.sqrtdenest(sympy.sqrt(square)) for square in squares if sign_of(square) > 0]
        return sorted([-root for root in above] + above, key=near)
    return irreducible.real_roots()


def near(number: Any, digits: int = DIGITS) -> Any:
    """The number to so many digits."""
    return number.evalf(digits, maxn=4 * digits)


def at_most(a: Any, b: Any) -> bool:
    """Whether a <= b, exactly, however close they are; either may be infinite.

    >>> at_most(sympy.sqrt(2), sympy.Rational(3, 2)), at_most(sympy.oo, sympy.Integer(7))
    (True, False)
    """
    return a == b or (b == sympy.oo if sympy.oo in (a, b) else sign_of(b - a) >= 0)


def horner(coefficients: Sequence[Any], at: Any, zero: Any) -> Any:
    """A polynomial, its highest coefficient first, at a number.

    >>> horner([1, 0, -3], 2, 0)
    1
    """
    total = zero
    for c in coefficients:
        total = total * at + c
    return total


def between(low: Any, high: Any) -> Any:
    """The simplest fraction strictly between two numbers; high may be infinite.

    >>> between(sympy.Rational(1, 3), sympy.sqrt(2))
    1
    """
    if high == sympy.oo:
        return sympy.floor(low) + 1
    for digits in PRECISIONS:
        above, below = _fraction(low, digits, 1), _fraction(high, digits, -1)
        if above < below:
            fraction = _simplest(above, below)
            return sympy.Rational(fraction.numerator, fraction.denominator)
    raise NoClosedForm(f"a fraction between numbers that agree to {PRECISIONS[-1]} digits")


def _in_order(numbers: Sequence[Any]) -> list[Any]:
    """Different numbers above 0, the least first."""
    for digits in PRECISIONS:
        ordered = sorted(((near(number, digits), number) for number in numbers), key=lambda pair: pair[0])
        if all(b - a > b * sympy.Float(10) ** (10 - digits) for (a, _), (b, _) in pairwise(ordered)):
            return [number for _, number in ordered]
    raise NoClosedForm(f"the order of numbers that agree to {PRECISIONS[-1]} digits")


def _fraction(number: Any, digits: int, side: int) -> Fraction:
    """The number if it is a fraction; else one near it, above (side 1) or below it (side -1)."""
    exactly: Any = sympy.Rational(number if number.is_Rational else near(number, digits))
    exact_fraction = Fraction(int(exactly.p), int(exactly.q))
    return (
        exact_fraction
        if number.is_Rational
        else exact_fraction + side * abs(exact_fraction) / 10 ** (digits - 10)
    )


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the least denominator in the open interval."""
    floor_low = floor(low)
    if floor_low + 1 < high:
        return Fraction(floor_low + 1)
    if low == floor_low:  # below a whole number plus 1/n, however small
        return floor_low + Fraction(1, floor(1 / (high - floor_low)) + 1)
    upper = 1 / (low - floor_low)
    lower = 1 / (high - floor_low) if high > floor_low else Fraction(0)
    return floor_low + 1 / _simplest(lower, upper)


U = sympy.Symbol("_u")
MOST_UNKNOWNS, MOST_SOLUTIONS = 4, 16  # beyond these a Gröbner basis can take minutes


@dataclass(frozen=True)
class RealSolution:
    """A real solution: as formulas, and as numbers of a field."""

    formulas: tuple[Any, ...]
    field: NumberField
    numbers: tuple[Any, ...]


@dataclass(frozen=True)
class Solutions:
    """Real solutions, all of them if `complete`.

    curve   equations, each = 0, of solutions that fill a line, a curve or more; empty if all stand alone
    note    why the system was not solved, or empty
    """

    points: tuple[RealSolution, ...]
    complete: bool
    curve: tuple[Any, ...] = ()
    note: str = ""


def solve(equations: Sequence[Any], unknowns: Sequence[Any]) -> Solutions:
    """The real solutions of polynomial equations with rational coefficients, each = 0.

    >>> x, y = sympy.symbols("x y")
    >>> [one.formulas for one in solve([x**2 - 2, y - x**3], [x, y]).points]
    [(-sqrt(2), -2*sqrt(2)), (sqrt(2), 2*sqrt(2))]
    """
    system = [sympy.Poly(one, *unknowns, domain="QQ") for one in equations]
    system = [one for one in system if not one.is_zero]
    if all(one.total_degree() <= 1 for one in system):
        return _linear(system, unknowns)
    many = prod(max(1, one.total_degree()) for one in system)
    if len(unknowns) > MOST_UNKNOWNS or many > MOST_SOLUTIONS:
        return Solutions(
            (), False, (),
            f"up to {many:,} solutions in {len(unknowns)} unknowns are too many to solve exactly: "
            f"{MOST_SOLUTIONS} in {MOST_UNKNOWNS} is the limit",
        )  # fmt: skip
    basis = sympy.groebner(system, *unknowns, order="grevlex")
    if basis.exprs == [1]:
        return Solutions((), True)
    if not basis.is_zero_dimensional:
        return Solutions((), False, tuple(sympy.factor(one) for one in basis.exprs))
    return Solutions(tuple(_isolated(list(basis.exprs), list(unknowns))), True)


def _linear(equations: Sequence[Poly], unknowns: Sequence[Any]) -> Solutions:
    size = len(unknowns)
    unit = [tuple(int(i == j) for j in range(size)) for i in range(size)]
    rows = [[*(one.coeff_monomial(m) for m in unit), -one.coeff_monomial((0,) * size)] for one in equations]
    reduced, pivots = sympy.Matrix(rows).rref()
    if size in pivots:
        return Solutions((), True)
    point = [sympy.Integer(0)] * size
    for row, column in enumerate(pivots):
        point[column] = reduced[row, size]
    field = NumberField(sympy.QQ)
    solution = RealSolution(tuple(point), field, tuple(field.of(x) for x in point))
    left = [
        sum(reduced[row, k] * unknowns[k] for k in range(size)) - reduced[row, size]
        for row in range(len(pivots))
    ]
    return Solutions((solution,), True, () if len(pivots) == size else tuple(left))


def _isolated(basis: list[Any], unknowns: list[Any]) -> list[RealSolution]:
    """Solutions as polynomials in one number u that tells them apart, the root of one polynomial."""
    for name in unknowns:  # one square-free polynomial in each unknown makes every solution simple
        others = [one for one in unknowns if one != name]
        last = sympy.groebner(basis, *others, name, order="lex").exprs[-1]
        basis = [*basis, sympy.Poly(last, name).sqf_part().as_expr()]
    shape: list[Any] = []
    for base in count():  # only finitely many fail to tell two solutions apart
        separating = sum(base**k * name for k, name in enumerate(reversed(unknowns)))
        shape = sympy.groebner([*basis, U - separating], *unknowns, U, order="lex").exprs
        if len(shape) == len(unknowns) + 1 and all(
            sympy.degree(one, name) == 1 for one, name in zip(shape, unknowns, strict=False)
        ):
            break
    values = [
        sympy.Poly(sympy.solve(one, name)[0], U, domain="QQ")
        for one, name in zip(shape, unknowns, strict=False)
    ]
    solutions = [
        _solution(root, values)
        for factor, _ in sympy.Poly(shape[-1], U, domain="QQ").factor_list()[1]
        for root in real_roots(factor)
    ]
    return sorted(solutions, key=lambda one: [near(x) for x in one.formulas])


def _solution(root: Any, values: Sequence[Poly]) -> RealSolution:
    domain = sympy.QQ if root.is_Rational else sympy.QQ.algebraic_field(root)
    field, at = NumberField(domain), domain.from_sympy(root)
    numbers = tuple(
        horner([domain.convert_from(c, sympy.QQ) for c in one.rep.to_list()], at, domain.zero)
        for one in values
    )
    formulas = tuple(simplest(number, domain) for number in numbers)
    return RealSolution(formulas, field, tuple(field.of(x) for x in formulas) if field.rational else numbers)


def simplest(number: Any, domain: Any) -> Any:
    """A number of a field as the root of its own polynomial, in square roots where that has some."""
    if domain.is_QQ:
        return domain.to_sympy(number)
    size = domain.mod.degree()
    generator = domain.from_sympy(domain.ext.as_expr())
    columns: list[list[Any]] = []
    power = domain.one
    for _ in range(size):
        listed = (number * power).to_list()[::-1]
        columns.append([*listed, *[sympy.QQ(0)] * (size - len(listed))])
        power = power * generator
    coefficients = DomainMatrix(columns, (size, size), sympy.QQ).charpoly()
    polynomial = sympy.Poly.from_list(coefficients, U, domain="QQ")
    near_by = near(domain.to_sympy(number))
    roots = [root for factor, _ in polynomial.factor_list()[1] for root in real_roots(factor)]
    return min(roots, key=lambda root: abs(near(root) - near_by))
