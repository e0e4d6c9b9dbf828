"""Analyses: all that is known of p·q as a formula, and random games against eigenvalues in floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from games_oracle import matrix, method_map
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import DomainError
from lattend.study.exact.matrix import H
from lattend.study.games.analysis import Analysis
from lattend.study.games.game import Game

h = H
BILINEAR = np.array([[0.0, 1.0], [1.0, 0.0]])


def kinds(analysis: Analysis) -> list[tuple[Any, Any, str]]:
    return [(one.low, one.high, one.behaviour.kind if one.behaviour else "?") for one in analysis.ranges]


def equal(a: Any, b: Any) -> bool:
    return sympy.simplify(a - b) == 0


def test_alternating_on_p_times_q() -> None:
    result = Game("p*q").analyse("alternating", step=1)
    assert kinds(result) == [(0, 2, "cycles"), (2, 2, "grows"), (2, sympy.oo, "diverges")]
    assert result.ranges[1].behaviour is not None and result.ranges[1].behaviour.order == 1
    p, q = sympy.symbols("p q", real=True)
    assert result.invariants == (p**2 + h * p * q + q**2,)
    assert Game("p*q").analyse("alternating", first="p").invariants == (p**2 - h * p * q + q**2,)
    assert result.best is None and result.here is not None and result.here.period == 6
    assert result.periodic is not None
    j, m = sorted(result.periodic.free_symbols, key=str)
    assert equal(result.periodic, 2 * sympy.sin(j * sympy.pi / m))


def test_simultaneous_diverges_by_the_root_of_1_plus_h_squared() -> None:
    result = Game("p*q").analyse("simultaneous")
    assert kinds(result) == [(0, sympy.oo, "diverges")]
    assert result.radius is not None and result.radius[0].formula == sympy.sqrt(1 + h**2)
    assert result.eigenvalues == (1 + sympy.I * h, 1 - sympy.I * h)


@pytest.mark.parametrize(
    ("method", "end", "step", "factor"),
    [
        ("optimistic", 1 / sympy.sqrt(3), sympy.Rational(1, 2), 1 / sympy.sqrt(2)),
        ("extragradient", sympy.Integer(1), 1 / sympy.sqrt(2), sympy.sqrt(3) / 2),
    ],
)
def test_best_steps_on_p_times_q(method: str, end: Any, step: Any, factor: Any) -> None:
    result = Game("p*q").analyse(method)
    assert result.ranges[0].behaviour is not None and result.ranges[0].behaviour.kind == "converges"
    assert equal(result.ranges[0].high, end) and not result.ranges[0].high_in
    assert result.best is not None and equal(result.best.step, step) and equal(result.best.factor, factor)
    assert float(result.best.factor) == pytest.approx(_radius(method, BILINEAR, 1, float(step)))
    nearby = [_radius(method, BILINEAR, 1, float(step) * x) for x in (0.9, 0.99, 1.01, 1.1)]
    assert min(nearby) > float(factor)


@pytest.mark.parametrize("m", range(3, 13))
def test_periods_by_enumeration(m: int) -> None:
    """At each step named for m, orbits return after m steps and not before; the other formula agrees."""
    from lattend.study.exact.eigenvalues import common_roots

    analysis = Game("p*q").analyse()
    steps = analysis.steps_of_period(m)
    assert len(steps) == sum(np.gcd(j, m) == 1 for j in range(1, (m + 1) // 2))
    for step in steps:
        track = Game("p*q").orbit((1, 0.3), float(step), m, floats=True).floats
        away = np.abs(track - track[0]).max(axis=1)
        assert away[m] < 1e-12 and away[1:m].min() > 1e-3
    if m <= 8 and m != 7:  # the roots of degree 6 take a second
        assert analysis.matrix is not None
        roots = common_roots(analysis.matrix, m)
        assert np.allclose(sorted(map(float, roots)), sorted(map(float, steps)))


def test_invariants_stay_equal_along_orbits() -> None:
    game = Game("2(p - 1)*(q + 3)")
    (form,) = game.analyse("alternating").invariants
    values: set[Any] = set()
    for point in game.orbit((2, 1), "1/3", 5).points:
        names = dict(zip(sympy.symbols("p q", real=True), point, strict=True))
        values.add(sympy.expand(form.subs({**names, h: sympy.Rational(1, 3)})))
    assert len(values) == 1


def test_the_wrong_test_fails() -> None:
    """f' - f is 0 on two lines, and an orbit crosses them: f stays equal there, far from (0, 0)."""
    change, lines = Game("p*q").analyse("alternating").change or (None, False)
    p, q = sympy.symbols("p q", real=True)
    assert lines and equal(change, (p - h * (q + h * p)) * (q + h * p) - p * q)
    at_one = change.subs(h, 1)  # pyright: ignore[reportOptionalMemberAccess]
    assert [at_one.subs({p: a, q: b}) for a, b in ((-1, 2), (1, -2), (1, 1))] == [0, 0, -3]


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("simultaneous", {}),
    ("alternating", {}),
    ("optimistic", {}),
    ("extragradient", {}),
    ("momentum", {"mass": -0.5}),
    ("consensus", {"weight": 0.5}),
    ("gradient_penalty", {"weight": 2}),
]


@pytest.mark.parametrize(("method", "options"), VARIANTS)
@settings(max_examples=6, deadline=None)
@given(
    st.tuples(st.integers(-3, 3), st.integers(1, 3), st.integers(-3, 3)).filter(
        lambda x: x[0] * x[2] != x[1] ** 2
    ),
    st.sampled_from([(1, 1), (1, 2), (2, 1)]),
)
def test_ranges_against_eigenvalues(
    method: str, options: dict[str, Any], entries: tuple[int, int, int], steps: tuple[int, int]
) -> None:
    """In every range, at places in it, the largest eigenvalue in floats is on the side that is claimed."""
    a, b, c = entries
    game = Game(f"{a}/2*p^2 + {b}p*q + {c}/2*q^2")
    result = game.analyse(method, steps, at=(0, 0), **options)
    hessian = np.array([[a, b], [b, c]], dtype=float)
    for one in result.ranges:
        assert one.behaviour is not None
        low, high = float(one.low), float(one.high) if one.high != sympy.oo else float(one.low) + 3
        for share in (0.01, 0.3, 0.7, 0.99) if one.low != one.high else (0.0,):
            size = _radius(method, hessian, steps[1] / steps[0], low + share * (high - low), **options)
            side = {"converges": size < 1, "diverges": size > 1}
            assert side.get(one.behaviour.kind, abs(size - 1) < 1e-6)
    for piece in result.radius or ():
        if piece.formula is not None:
            at = float(piece.low) + (0.37 if piece.high == sympy.oo else 0.37 * float(piece.high - piece.low))
            size = _radius(method, hessian, steps[1] / steps[0], at, **options)
            assert float(piece.formula.subs(h, at)) == pytest.approx(size, abs=1e-6)
    if result.best is not None:
        best, at = float(result.best.factor), float(result.best.step)
        assert best == pytest.approx(_radius(method, hessian, steps[1] / steps[0], at, **options), abs=1e-6)
        for one in (r for r in result.ranges if r.behaviour and r.behaviour.kind == "converges"):
            grid = np.linspace(float(one.low), float(min(one.high, one.low + 9)), 60)[1:-1]
            sizes = [_radius(method, hessian, steps[1] / steps[0], x, **options) for x in grid]
            assert best <= min(sizes) + 1e-7


@pytest.mark.parametrize("method", ["simultaneous", "alternating"])
@settings(max_examples=4, deadline=None)
@given(st.lists(st.integers(-2, 2), min_size=5, max_size=5))
def test_ranges_of_three_numbers(method: str, c: list[int]) -> None:
    """Two numbers against one, lines of equilibria included: what moves is on the side that is claimed."""
    game = Game(
        f"x*q + {c[0]}/2*x^2 + {c[1]}x*y + {c[2]}/2*y^2 + {c[3]}y*q + {c[4]}/2*q^2",
        minimise="x y", maximise="q",
    )  # fmt: skip
    hessian = np.array([[c[0], c[1], 1], [c[1], c[2], c[3]], [1, c[3], c[4]]], dtype=float)
    resting = 3 - int(np.linalg.matrix_rank(hessian))
    result = game.analyse(method, at=(0, 0, 0))
    assert result.resting == resting
    for one in result.ranges:
        assert one.behaviour is not None
        low, high = float(one.low), float(one.high) if one.high != sympy.oo else float(one.low) + 3
        for share in (0.02, 0.5, 0.98) if one.low != one.high else (0.0,):
            step = low + share * (high - low)
            values = np.linalg.eigvals(matrix(method_map(method, hessian, 2, step, step), 3))
            moving = np.abs(values[np.argsort(np.abs(values - 1))][resting:]).max()
            kind = one.behaviour.kind
            side = {"converges": moving < 1, "settles": moving < 1, "diverges": moving > 1}
            assert side.get(kind, abs(moving - 1) < 1e-4) and (kind != "converges" or not resting)


@pytest.mark.parametrize("f", ["q^4 - p^4", "p^3 + q^3", "p^4 - q^4"])
def test_second_derivatives_of_0_decide_nothing(f: str) -> None:
    """The linear part of the step is 1, and the orbit of the first leaves: no word of settling."""
    result = Game(f).analyse("simultaneous", step="1/10", at=(0, 0))
    assert kinds(result) == [(0, sympy.oo, "undecided")]
    assert result.here is not None and result.here.kind == "undecided"
    assert result.invariants == () and result.best is None
    assert dict(result.draw().facts)["best step"] == "none: no step is proved to converge"


def test_cycles_of_the_linear_part_are_not_those_of_the_game() -> None:
    result = Game("p*q + p^4/4").analyse("alternating", step=1)
    assert kinds(result)[0][2] == "undecided" and result.here is not None and result.here.period is None
    assert result.steps_of_period(6) == [] and result.periodic is None
    assert dict(result.draw().facts)["stays equal"] == "p^2 + h*p*q + q^2, of the linear part"


def test_what_rests_away_from_the_equilibrium_does_not_settle() -> None:
    """f = p²/2 - q²/2, a place ahead at h = 1 is (0, 0), where the gradient is 0: nobody moves."""
    result = Game("p^2/2 - q^2/2").analyse("extragradient", step=1)
    assert result.here is not None and (result.here.kind, result.here.period) == ("cycles", 1)


@pytest.mark.parametrize("power", [-31, -12, 12, 31])
def test_scales(power: int) -> None:
    """c·p·q with steps h is p·q with steps c·h, whatever c is."""
    scale = sympy.Integer(10) ** power
    for method in ("alternating", "optimistic", "extragradient"):
        result, plain = Game(f"p*q*1e{power}").analyse(method), Game("p*q").analyse(method)
        expected = [(low / scale, high / scale, kind) for low, high, kind in kinds(plain)]
        for (low, high, kind), (low_2, high_2, kind_2) in zip(kinds(result), expected, strict=True):
            assert equal(low, low_2) and kind == kind_2 and (high == high_2 or equal(high, high_2))
        if plain.best is not None:
            assert result.best is not None and equal(result.best.step * scale, plain.best.step)
            assert equal(result.best.factor, plain.best.factor)


def test_two_scales() -> None:
    """The slow half has the factor sqrt(1 - h² + h⁴), 31 zeros from 1: best where the fast half meets it."""
    result = Game("x*u*1e31 + y*v", minimise="x y").analyse("extragradient")
    assert result.best is not None and 1 - sympy.Rational(1, 10**60) < result.best.factor < 1
    assert 0 < sympy.Integer(10) ** -31 - result.best.step < sympy.Integer(10) ** -90


def test_numbers_beyond_floats() -> None:
    result = Game("p*q*1e999").analyse("momentum", step=1)
    assert result.note == "not derived: numbers of more than 40 digits; ask at a step, in floats"
    assert result.here is not None and result.here.kind == "undecided" and str(result.here) == "undecided"


def test_kinks_have_no_analysis() -> None:
    with pytest.raises(DomainError, match="f has a kink at p = 0, q = 0: no second derivatives to analyse"):
        Game("abs(p)*q").analyse(at=(0, 0))
    away = Game("p*q + abs(p - 3)*q^2").analyse("simultaneous", at=(0, 0))  # q² with the weight 3 there
    assert kinds(away) == kinds(Game("p*q + 3q^2").analyse("simultaneous"))


def test_periods_are_whole_numbers() -> None:
    for wrong in (2.5, "6", 1, 61):
        with pytest.raises(DomainError, match="a period is a whole number from 2 to 60, got"):
            Game("p*q").analyse().steps_of_period(wrong)  # pyright: ignore[reportArgumentType]


def test_no_equilibrium_no_advice() -> None:
    with pytest.raises(DomainError, match=r"has no equilibrium: the gradient is 0 nowhere$"):
        Game("p*q + r", minimise="p").analyse()


def test_two_numbers_a_player() -> None:
    """x·u + 2y·v: the faster game decides, 1/√3 becomes half of it."""
    result = lt.study.games.Game("x*u + 2y*v", minimise="x y").analyse("optimistic")
    assert equal(result.ranges[0].high, 1 / (2 * sympy.sqrt(3)))
    assert result.matrix is not None and result.matrix.size == 8


def test_a_line_of_equilibria() -> None:
    """q sees x alone: y rests, and every start settles on an equilibrium of its own."""
    result = lt.study.games.Game("x*q", minimise="x y", maximise="q").analyse("extragradient", step="1/2")
    assert kinds(result)[0] == (0, 1, "settles")
    assert result.best is not None and equal(result.best.factor, sympy.sqrt(3) / 2)
    surd = lt.study.games.Game("sqrt(2)*x*q", minimise="x y", maximise="q").analyse(
        "extragradient", at=(0, 0, 0)
    )
    assert surd.game.quadratic and surd.best is None and kinds(surd)[0][2] == "settles"
    assert surd.searched_best == pytest.approx((0.5, float(sympy.sqrt(3) / 2)), rel=1e-3)


def test_surds_in_the_second_derivatives() -> None:
    """The equilibrium has p = (√145 - 1)/12: ranges in its number field, against eigenvalues in floats."""
    result = Game("p^3 - 3p + p*q - q^2").analyse("simultaneous", step="1/10")
    hessian = np.array([[6 * float(result.equilibrium.point[0]), 1], [1, -2.0]])
    assert [kind for _, _, kind in kinds(result)] == ["converges", "undecided", "diverges"]
    end = float(result.ranges[0].high)
    sizes = [_radius("simultaneous", hessian, 1, end * x) for x in (0.1, 0.999, 1, 1.001)]
    assert max(sizes[:2]) < 1 < sizes[3] and sizes[2] == pytest.approx(1)
    assert result.here is not None and result.here.kind == "converges"
    assert result.here.factor == pytest.approx(_radius("simultaneous", hessian, 1, 0.1))
    assert "0 < h < 0.383937…" in str(result) and "solves 145h^4 - 290h^3 + 136h^2 + 24h - 16 = 0" in str(
        result
    )
    root = Game("sqrt(2)*p*q").analyse()
    assert kinds(root)[1] == (sympy.sqrt(2), sympy.sqrt(2), "grows")


def test_beyond_small_number_fields() -> None:
    """Roots of degree 8 in the second derivatives: floats at a step, and the sentence that says so."""
    game = Game("p^4 - 2p^2 + p*q - q^4")
    point = game.equilibria()[4].point
    result = game.analyse("simultaneous", "1/10", at=point)
    assert result.ranges == () and "in no small number field; ask at a step" in result.note
    p, q = map(float, point)
    size = _radius("simultaneous", np.array([[12 * p * p - 4, 1], [1, -12 * q * q]]), 1, 0.1)
    assert result.here is not None and result.here.kind == "converges"
    assert result.here.factor == pytest.approx(size)
    assert not Game("exp(p)*q - q").analyse("simultaneous", at=(0, 0)).note


def test_high_degrees_are_said_not_waited_for() -> None:
    """Where two factors are equal is a root of degree 18 here: the best step is searched for instead."""
    result = Game("4x^2 + x*y/3 - 4/3*y^2").analyse("momentum", first="q")
    assert result.radius is None and result.best is None
    assert kinds(result)[0][2] == "converges"
    assert dict(result.draw().facts)["best step"].endswith("searched for in floats, not proved")
    assert result.searched_best is not None
    step, factor = result.searched_best
    hessian = np.array([[8, 1 / 3], [1 / 3, -8 / 3]])
    sizes = [_radius("momentum", hessian, 1, step * x, mass=-0.5, first="q") for x in (0.98, 1, 1.02)]
    assert min(sizes) == pytest.approx(factor) and sizes[1] == min(sizes)


def test_what_is_printed() -> None:
    assert (
        str(Game("p*q").analyse(step=1))
        == """\
min over p, max over q of p*q
alternating, q first, steps h, near p = 0, q = 0

equilibrium  Nash: no player gains by a small move of its own
one step     p' = (1 - h^2)*p - h*q, q' = h*p + q, f' = -(h*p + q)*(h^2*p + h*q - p)
matrix       M = [1 - h^2, -h; h, 1], by which a step multiplies
eigenvalues  1 - h^2/2 ± h*sqrt(h^2 - 4)/2
best step    none: no step converges
stays equal  p^2 + h*p*q + q^2
period m     at h = 2sin(pi*j/m), 0 < j < m/2, j and m without a common factor
f alone      f' - f = -h*(h*p - p + q)*(h*p + p + q) is 0 on whole lines: that f stays equal for a
             step does not show an equilibrium
at h = 1     cycles, period 6: the step's matrix has M^6 = 1
holds        from every start: the gradient is linear

steps      what happens  factor a step
0 < h < 2  cycles        1
h = 2      grows like t  1
h > 2      diverges      h^2/2 + h*sqrt(h^2 - 4)/2 - 1"""
    )
    data = Game("p*q").analyse("optimistic", 0.5).json()
    assert data["best"] == {"step": "1/2", "factor": "sqrt(2)/2"}
    assert [one["kind"] for one in data["ranges"]] == ["converges", "cycles", "diverges"]
    assert "without a period" in str(Game("p*q").analyse(step="1/3").here)


def _radius(method: str, hessian: Any, ratio: float, step: float, **options: Any) -> float:
    size = 4 if method in ("optimistic", "momentum") else 2
    result = matrix(method_map(method, hessian, 1, step, ratio * step, **options), size)
    return float(np.abs(np.linalg.eigvals(result)).max())
