"""Weights and leaks against sums in many digits, the smallest α against its definition, and the curve."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import DomainError, NamingError
from lattend.nn.convolution.sharpness import BOUND_LATEX, bound, enough

DIGITS = 400


def exact(alpha: float, rows: int, cols: int, at: tuple[int, int]) -> tuple[Any, Any]:
    """The weight of the pixel nearest to `at` and 1 minus it, all pixels summed in 400 digits."""
    with mpmath.workdps(DIGITS):
        near = [min(max(place, 0), size - 1) for place, size in zip(at, (rows, cols), strict=True)]
        best = sum((a - b) ** 2 for a, b in zip(near, at, strict=True))
        apart = [(y - at[0]) ** 2 + (x - at[1]) ** 2 - best for y in range(rows) for x in range(cols)]
        weight = 1 / sum(mpmath.exp(-mpmath.mpf(alpha) * d) for d in apart)
        return weight, 1 - weight


places = st.integers(1, 6), st.integers(1, 6), st.integers(-9, 9), st.integers(-9, 9)


@given(st.floats(1e-3, 60), *places)
def test_weight_and_leak_of_an_image(alpha: float, rows: int, cols: int, y: int, x: int) -> None:
    found = lt.nn.sharpness(alpha, rows=rows, cols=cols, query=(0, 0), centre=(y, x))
    weight, leak = exact(alpha, rows, cols, (y, x))
    assert found.weight == pytest.approx(float(weight), rel=1e-14)
    assert found.leak == pytest.approx(float(leak), rel=1e-12, abs=1e-320)
    assert found.leak <= found.bound * (1 + 1e-14)
    assert found.nearest == (min(max(y, 0), rows - 1), min(max(x, 0), cols - 1))


@pytest.mark.parametrize("alpha", [1e-9, 0.03, 0.7, 1 - 1e-9, 1.0, 2.5, 30.0, 300.0, 700.0])
def test_weight_and_leak_of_the_plane(alpha: float) -> None:
    """θ₃(0, e^−α)², by mpmath's theta function, or for small α by its other form √(π/α)."""
    with mpmath.workdps(DIGITS):
        a = mpmath.mpf(alpha)
        theta = (
            mpmath.jtheta(3, 0, mpmath.exp(-a))
            if alpha > 0.5
            else mpmath.sqrt(mpmath.pi / a) * mpmath.jtheta(3, 0, mpmath.exp(-(mpmath.pi**2) / a))
        )
        weight = 1 / theta**2
        found = lt.nn.sharpness(alpha)
        assert abs(found.weight / weight - 1) < 1e-15
        assert abs(found.leak / (1 - weight) - 1) < 2e-15
        assert abs(found.log_leak - mpmath.log(1 - weight)) < 1e-13
        assert 1 - weight <= found.bound * (1 + mpmath.mpf(1e-14))


def test_a_tiny_leak_is_not_zero() -> None:
    assert 0 < lt.nn.sharpness(692.0).leak < 1.2e-300
    assert lt.nn.sharpness(2000.0).leak == 0.0  # too small for a double
    assert lt.nn.sharpness(2000.0).log_leak == pytest.approx(math.log(4) - 2000)


def test_the_image_grows_into_the_plane() -> None:
    leaks = [lt.nn.sharpness(0.2, rows=size, cols=size).leak for size in (1, 3, 9, 41)]
    assert leaks[0] == 0.0
    assert sorted(leaks) == leaks
    assert leaks[-1] == pytest.approx(lt.nn.sharpness(0.2).leak, rel=1e-12)


@given(st.floats(1e-300, 0.999), *places)
@settings(max_examples=60)
def test_the_smallest_alpha_is_the_smallest(eps: float, rows: int, cols: int, y: int, x: int) -> None:
    place = lt.nn.sharpness(rows=rows, cols=cols, query=(0, 0), centre=(y, x))
    sufficient, smallest = place.for_error(eps)
    assert smallest <= sufficient
    assert exact(sufficient, rows, cols, (y, x))[1] <= eps
    assert exact(smallest + 2e-12, rows, cols, (y, x))[1] <= eps
    if smallest > 2e-12:
        assert exact(smallest - 2e-12, rows, cols, (y, x))[1] > eps
    else:
        assert rows * cols == 1 or eps >= 1 - 1 / (rows * cols) - 1e-9


@pytest.mark.parametrize("eps", [1e-300, 1e-12, 0.01, 0.5, 0.9, 0.999])
def test_the_smallest_alpha_on_the_plane(eps: float) -> None:
    sufficient, smallest = lt.nn.sharpness().for_error(eps)
    with mpmath.workdps(DIGITS):

        def leak(alpha: Any) -> Any:
            return 1 - 1 / mpmath.jtheta(3, 0, mpmath.exp(-alpha)) ** 2

        start = mpmath.mpf(smallest)
        root = mpmath.findroot(
            lambda alpha: mpmath.log(leak(alpha)) - mpmath.log(mpmath.mpf(eps)), (start, start * 1.01)
        )
        assert abs(root - smallest) < 1e-12
        assert abs(sufficient - 2 * mpmath.acosh(1 / mpmath.sqrt(mpmath.mpf(eps)))) < 1e-12


def test_the_numbers_in_words() -> None:
    found = lt.nn.sharpness(2.0, rows=3, cols=4)
    where = "3 × 4 pixels, query (1, 1), centre (0, 0)"  # 1/((1 + 2e^-2)(1 + 2e^-2 + e^-8))
    assert str(found) == f"α = 2, {where}: weight 0.619183563368, leak 0.380816"
    assert str(found.at(3.0)).startswith(f"α = 3, {where}")
    assert str(lt.nn.sharpness()) == "sharpness of the infinite plane"


def test_the_curve_falls_and_stays_below_its_bound() -> None:
    place = lt.nn.sharpness(3.0, rows=5, cols=5, query=(0, 0))
    picture = place.curve(0.5, 10)
    (curve,) = picture.charts
    bound, leak = (line.points for line in curve.lines)
    assert [line.name for line in curve.lines] == ["1/cosh²(α/2)", "leak"]
    assert [alpha for alpha, _ in leak] == [alpha for alpha, _ in bound] and len(leak) == 161
    assert leak[0] == (0.5, place.at(0.5).leak) and leak[-1] == (10, place.at(10).leak)
    assert all(low < high for (_, low), (_, high) in zip(leak, bound, strict=True))
    assert all(later < sooner for (_, sooner), (_, later) in pairwise(leak))
    (dots,) = curve.dots
    assert (dots.points, dots.labels) == ([(3.0, place.leak)], ["α = 3"])
    # at α = 10 a corner leaks e^-10 to each of two neighbours
    assert "α = 10: leak 9.08e−5" in picture.words
    assert picture.png().startswith(b"\x89PNG") and "<svg" in picture.svg()
    assert "5 × 5 pixels, query (0, 0)" in picture.terminal(width=100)


def test_a_single_pixel_has_a_bound_alone() -> None:
    (curve,) = lt.nn.sharpness(1.0, rows=1, cols=1).curve().charts
    assert [line.name for line in curve.lines] == ["1/cosh²(α/2)"] and curve.dots == ()
    (curve,) = lt.nn.sharpness().curve(1, 2000).charts
    assert curve.lines[1].points[-1][0] < 800  # beyond, the leak is too small for a number


def test_torch_stays_unloaded() -> None:
    code = "import lattend as lt; lt.nn.sharpness(2.0).for_error(0.1); lt.nn.sharpness().curve()"
    code += "; import sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def odd(**given: Any) -> dict[str, Any]:
    """An image of 2 × 2 but for what is given."""
    return {"rows": 2, "cols": 2, **given}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: lt.nn.sharpness(0.0), DomainError, "α = 0: it must be positive and finite"),
        (lambda: lt.nn.sharpness(-1.5), DomainError, "α = -1.5: it must be positive"),
        (lambda: lt.nn.sharpness(math.nan), DomainError, "α = nan"),
        (lambda: lt.nn.sharpness(math.inf), DomainError, "α = inf"),
        (lambda: lt.nn.sharpness().for_error(0.0), DomainError, "eps = 0: a leak is a share"),
        (lambda: lt.nn.sharpness().for_error(1.0), DomainError, "ask for one between 0 and 1"),
        (lambda: lt.nn.sharpness().weight, NamingError, "weight and leak need α"),
        (lambda: lt.nn.sharpness(1.0, rows=3), NamingError, "give cols=…, or neither for the plane"),
        (lambda: lt.nn.sharpness(1.0, query=(0, 0)), NamingError, "query and centre need an image"),
        (lambda: lt.nn.sharpness(1.0, rows=0, cols=2), DomainError, "at least one pixel, not 0 × 2"),
        (lambda: lt.nn.sharpness(1.0, **odd(rows=2.0)), DomainError, "rows must be an integer, got 2.0"),
        (lambda: lt.nn.sharpness(1.0, **odd(centre=(0.5, 0))), DomainError, "centre must be an integer"),
        (lambda: lt.nn.sharpness(1.0, **odd(query=(1,))), NamingError, "query is a row and a column"),
        (
            lambda: lt.nn.sharpness(1.0, **odd(query=(0, 2))),
            DomainError,
            r"pixel \(0, 2\) lies outside an image of 2 × 2; only a centre may",
        ),
        (lambda: lt.nn.sharpness(1.0, **odd(query=(-1, 0))), DomainError, r"pixel \(-1, 0\) lies outside"),
        (lambda: lt.nn.sharpness(1.0).curve(3, 2), DomainError, "0 < low < high, not from 3 to 2"),
    ],
)
def test_bad_numbers(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_the_bound_as_latex_is_the_bound() -> None:
    first, second = BOUND_LATEX.split(r", \qquad ")
    assert r"\frac{1}{\cosh^2(\alpha/2)}" in first and r"2\operatorname{arcosh}" in second
    for alpha in (0.1, 1.0, 7.0):
        assert bound(alpha) == pytest.approx(1 / math.cosh(alpha / 2) ** 2)
        assert enough(bound(alpha)) == pytest.approx(2 * math.acosh(1 / math.sqrt(bound(alpha))))
