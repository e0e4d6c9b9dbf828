"""Real solutions of polynomial equations, against worked cases."""

from __future__ import annotations

import sympy

from lattend.study.exact.roots import solve


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
