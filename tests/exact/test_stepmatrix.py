"""Matrices in h: ranges, Jordan blocks, periods, and roots of systems, against worked cases."""

from __future__ import annotations

import sympy

from lattend.exact.eigenvalues import eigenvalues, square_part
from lattend.exact.invariants import common_roots, quadratic_invariants
from lattend.exact.radius import radius, squared_moduli
from lattend.exact.stepmatrix import H, Range, StepMatrix, period_at
from lattend.exact.systems import solve

h = H


def kinds(matrix: StepMatrix) -> list[tuple[object, object, str, int]]:
    return [
        (one.low, one.high, one.behaviour.kind, one.behaviour.order) for one in matrix.ranges if one.behaviour
    ]


def test_jordan_blocks_grow() -> None:
    shear = StepMatrix([[1, h], [0, 1]])
    assert kinds(shear) == [(0, sympy.oo, "grows", 1)]
    three = StepMatrix([[1, 1, 0], [0, 1, 1], [0, 0, 1]])
    assert kinds(three) == [(0, sympy.oo, "grows", 2)]


def test_a_defect_that_heals_at_one_step() -> None:
    """At h = 1 the off-diagonal entry is 0, and only there are all eigenvectors present."""
    assert kinds(StepMatrix([[1, h - 1], [0, 1]])) == [
        (0, 1, "grows", 1),
        (1, 1, "cycles", 0),
        (1, sympy.oo, "grows", 1),
    ]
    assert kinds(StepMatrix([[1, 0], [0, 1 - h]], still=1))[0] == (0, 2, "settles", 0)


def test_equal_blocks_do_not_grow() -> None:
    """Twice z² - (2 - h²)z + 1: a double factor with all its eigenvectors."""
    block = [[1 - h**2, -h], [h, 1]]
    rows = [[*block[0], 0, 0], [*block[1], 0, 0], [0, 0, *block[0]], [0, 0, *block[1]]]
    assert kinds(StepMatrix(rows)) == [
        (0, 2, "cycles", 0),
        (2, 2, "grows", 1),
        (2, sympy.oo, "diverges", 0),
    ]


def test_steps_at_which_two_circles_meet() -> None:
    """Rotations by h and by 1 share their eigenvalues at one step; a coupling makes that a Jordan block."""
    turn, still = [[1 - h**2, -h], [h, 1]], [[0, -1], [1, 1]]  # the second is the first at h = 1
    rows = [[*turn[0], 1, 0], [*turn[1], 0, 1], [0, 0, *still[0]], [0, 0, *still[1]]]
    assert kinds(StepMatrix(rows))[:3] == [(0, 1, "cycles", 0), (1, 1, "grows", 1), (1, 2, "cycles", 0)]


def test_periods() -> None:
    turn = StepMatrix([[1 - h**2, -h], [h, 1]])
    assert [period_at(turn, step) for step in (1, sympy.sqrt(2), sympy.sqrt(3))] == [6, 4, 3]
    assert period_at(turn, sympy.Rational(1, 2)) is None
    assert common_roots(turn, 12) == [
        sympy.sqrt(6) / 2 - sympy.sqrt(2) / 2,
        sympy.sqrt(2) / 2 + sympy.sqrt(6) / 2,
    ]
    assert quadratic_invariants(StepMatrix([[2, 0], [0, 2]]), sympy.symbols("x y")) == []


def test_steps_in_a_range() -> None:
    one = Range(sympy.Integer(0), sympy.sqrt(2), False, True, None)
    assert sympy.sqrt(2) in one and 1 in one and 0 not in one and 2 not in one


def test_eigenvalues_and_moduli() -> None:
    matrix = StepMatrix([[1, -h], [h, 1]])
    (factor,) = matrix.moving
    assert eigenvalues(factor) == [(1, sympy.I * h)]
    r = sympy.Symbol("r", positive=True)
    assert r - h**2 - 1 in [one.as_expr() for one in squared_moduli(factor)]
    pieces = radius([factor])
    assert pieces is not None and pieces[0].formula == sympy.sqrt(1 + h**2)
    assert square_part(sympy.expand(12 * h**2 * (1 - h))) == (2 * h, 3 - 3 * h)


def test_systems() -> None:
    x, y, z = sympy.symbols("x y z")
    circle = solve([x**2 + y**2 - 5, x * y - 2], [x, y])
    assert [one.formulas for one in circle.points] == [(-2, -1), (-1, -2), (1, 2), (2, 1)]
    assert solve([x - 1, x - 2], [x]).points == () and solve([x**2 + 1, y], [x, y]).points == ()
    plane = solve([x + y + z - 1], [x, y, z])
    assert len(plane.points) == 1 and plane.curve == (x + y + z - 1,)
    double = solve([(x - 1) ** 2, (y - x) ** 2 * (y + 1)], [x, y])
    assert [one.formulas for one in double.points] == [(1, -1), (1, 1)]
    quintic = solve([x**5 - x - 1, y - x**2], [x, y])
    (only,) = quintic.points
    assert abs(float(only.formulas[1]) - float(only.formulas[0]) ** 2) < 1e-12
    assert "are too many to solve exactly" in solve([x**5, y**5], [x, y]).note
