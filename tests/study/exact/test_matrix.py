"""Powers of matrices in h, and roots inside, on and outside the unit circle."""

from __future__ import annotations

import numpy as np
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.study.exact.eigenvalues import (
    common_roots,
    eigenvalues,
    quadratic_invariants,
    square_part,
)
from lattend.study.exact.matrix import Disc, H, MatrixOfH, Range, Z, disc, merged
from lattend.study.exact.radius import radius, squared_moduli
from lattend.study.exact.sign import sign

h = H


def kinds(matrix: MatrixOfH) -> list[tuple[object, object, str, int]]:
    return [
        (one.low, one.high, one.behaviour.kind, one.behaviour.order)
        for one in merged(matrix.ranges)
        if one.behaviour
    ]


def test_jordan_blocks_grow() -> None:
    shear = MatrixOfH([[1, h], [0, 1]])
    assert kinds(shear) == [(0, sympy.oo, "grows", 1)]
    three = MatrixOfH([[1, 1, 0], [0, 1, 1], [0, 0, 1]])
    assert kinds(three) == [(0, sympy.oo, "grows", 2)]


def test_a_defect_that_heals_at_one_step() -> None:
    """At h = 1 the off-diagonal entry is 0, and only there are all eigenvectors present."""
    assert kinds(MatrixOfH([[1, h - 1], [0, 1]])) == [
        (0, 1, "grows", 1),
        (1, 1, "settles", 0),
        (1, sympy.oo, "grows", 1),
    ]
    assert kinds(MatrixOfH([[1, 0], [0, 1 - h]]))[0] == (0, 2, "settles", 0)


def test_equal_blocks_do_not_grow() -> None:
    """Twice z² - (2 - h²)z + 1: a double factor with all its eigenvectors."""
    block = [[1 - h**2, -h], [h, 1]]
    rows = [[*block[0], 0, 0], [*block[1], 0, 0], [0, 0, *block[0]], [0, 0, *block[1]]]
    assert kinds(MatrixOfH(rows)) == [
        (0, 2, "cycles", 0),
        (2, 2, "grows", 1),
        (2, sympy.oo, "diverges", 0),
    ]


def test_steps_at_which_two_circles_meet() -> None:
    """Rotations by h and by 1 share their eigenvalues at one step; a coupling makes that a Jordan block."""
    turn, still = [[1 - h**2, -h], [h, 1]], [[0, -1], [1, 1]]  # the second is the first at h = 1
    rows = [[*turn[0], 1, 0], [*turn[1], 0, 1], [0, 0, *still[0]], [0, 0, *still[1]]]
    assert kinds(MatrixOfH(rows))[:3] == [(0, 1, "cycles", 0), (1, 1, "grows", 1), (1, 2, "cycles", 0)]


def test_periods() -> None:
    turn = MatrixOfH([[1 - h**2, -h], [h, 1]])
    assert [turn.period(step) for step in (1, sympy.sqrt(2), sympy.sqrt(3))] == [6, 4, 3]
    assert turn.period(sympy.Rational(1, 2)) is None
    assert common_roots(turn, 12) == [
        sympy.sqrt(6) / 2 - sympy.sqrt(2) / 2,
        sympy.sqrt(2) / 2 + sympy.sqrt(6) / 2,
    ]
    assert quadratic_invariants(MatrixOfH([[2, 0], [0, 2]]), sympy.symbols("x y")) == []
    assert quadratic_invariants(MatrixOfH([[1, 0], [0, 1]]), sympy.symbols("x y")) == []  # keeps them all


def test_steps_in_a_range() -> None:
    one = Range(sympy.Integer(0), sympy.sqrt(2), False, True, None)
    assert sympy.sqrt(2) in one and 1 in one and 0 not in one and 2 not in one


def test_eigenvalues_and_moduli() -> None:
    matrix = MatrixOfH([[1, -h], [h, 1]])
    ((factor, _),) = matrix.factors
    assert eigenvalues(factor) == [(1, sympy.I * h)]
    r = sympy.Symbol("r", positive=True)
    assert r - h**2 - 1 in [one.as_expr() for one in squared_moduli(factor)]
    pieces = radius([factor])
    assert pieces is not None and pieces[0].formula == sympy.sqrt(1 + h**2)
    assert square_part(sympy.expand(12 * h**2 * (1 - h))) == (2 * h, 3 - 3 * h)


# Factors and where their roots lie, by hand
KNOWN = [
    (Z - 1, Disc(0, 1, 0)),
    (Z + 1, Disc(0, 1, 0)),
    (Z, Disc(1, 0, 0)),
    (2 * Z - 1, Disc(1, 0, 0)),
    (Z - 2, Disc(0, 0, 1)),  # with the one above a pair z, 1/z
    (Z**2 - Z + 1, Disc(0, 2, 0)),
    (5 * Z**2 - 6 * Z + 5, Disc(0, 2, 0)),  # (3 ± 4i)/5, no root of 1
    (3 * Z**2 + 2 * Z + 1, Disc(2, 0, 0)),
    (Z**2 - 2 * Z + 5, Disc(0, 0, 2)),
    (Z**2 - 3 * Z + 1, Disc(1, 0, 1)),
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(KNOWN), min_size=1, max_size=5))
def test_products_of_known_factors(parts: list[tuple[sympy.Expr, Disc]]) -> None:
    result = disc(sympy.Poly(sympy.prod([factor for factor, _ in parts]), Z))
    assert result.inside == sum(one.inside for _, one in parts)
    assert result.on == sum(one.on for _, one in parts)
    assert result.outside == sum(one.outside for _, one in parts)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=7).filter(lambda c: c[0] != 0))
def test_against_roots_in_floats(coefficients: list[int]) -> None:
    sizes = np.abs(np.roots(coefficients))
    if np.abs(sizes - 1).min(initial=1) < 1e-4:
        return  # floats cannot tell
    result = disc(sympy.Poly(coefficients, Z))
    assert (result.inside, result.on, result.outside) == ((sizes < 1).sum(), 0, (sizes > 1).sum())


def test_surds_as_coefficients() -> None:
    field = sympy.QQ.algebraic_field(sympy.sqrt(2))
    whole = sympy.Poly((Z**2 - sympy.sqrt(2) * Z + 1) ** 2 * (Z - sympy.sqrt(2)), Z, domain=field)
    assert disc(whole) == Disc(0, 4, 1)
    assert sign(field.from_sympy(sympy.sqrt(2) - sympy.Rational(1414213562, 10**9)), field) == 1
    assert sign(field.from_sympy(sympy.Integer(0)), field) == 0
