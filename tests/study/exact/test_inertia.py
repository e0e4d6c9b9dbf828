"""The signs of eigenvalues, against floats."""

from __future__ import annotations

import numpy as np
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.study.exact.sign import inertia


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.data())
def test_inertia_against_floats(n: int, data: st.DataObject) -> None:
    half = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=n * n, max_size=n * n))).reshape(n, n)
    whole = half + half.T
    values = np.linalg.eigvalsh(whole)
    result = inertia([[sympy.QQ(int(x)) for x in row] for row in whole], sympy.QQ)
    zero = n - int(np.linalg.matrix_rank(whole))
    assert result == ((values > 1e-9).sum(), (values < -1e-9).sum(), zero)
    assert result.positive == (values.min() > 1e-9)
