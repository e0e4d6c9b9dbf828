"""Matrices in h: ranges, Jordan blocks, periods, eigenvalues and radii, against worked cases."""

from __future__ import annotations

import sympy

from lattend.study.exact.eigenvalues import (
    common_roots,
    eigenvalues,
    quadratic_invariants,
    square_part,
)
from lattend.study.exact.matrix import H, MatrixOfH, Range, merged
from lattend.study.exact.radius import radius, squared_moduli

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
