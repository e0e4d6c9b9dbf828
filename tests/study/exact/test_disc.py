"""Roots inside, on and outside the unit circle, against factors whose roots are known and against floats."""

from __future__ import annotations

import numpy as np
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.study.exact.matrix import Disc, Z, disc
from lattend.study.exact.sign import sign

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
