"""Polynomial equations in several unknowns: all real solutions, each in a number field of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Any

import sympy
from sympy.polys.matrices import DomainMatrix

from lattend.study.exact.numbers import NumberField
from lattend.study.exact.roots import Poly, horner, near, real_roots

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
