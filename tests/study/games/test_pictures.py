"""Phase portraits and distances: every mark is where the mathematics puts it."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.draw.charts.chart import Arrows, Dots, Stroke
from lattend.errors import DomainError, LattendError
from lattend.study.games.game import Game, dirac
from lattend.study.games.methods import consensus, gradient_penalty
from lattend.study.games.phase import _contours, followed, orbit_window, rest_of
from lattend.study.games.pictures import (
    STEPS,
    compare_methods,
    compare_orbits,
    distances,
    portrait,
    with_pictures,
)

PQ = Game("p*q")
SIX = PQ.orbit((1, 1), step=1, steps=6)
WELLS = Game("(p^2 - 1)*q - q^2/4")


def named(figure, kind, name):
    """The marks of this kind and name."""
    return [mark for mark in figure.charts[0].layers() if isinstance(mark, kind) and mark.name == name]


def test_the_orbit_of_period_6():
    figure = portrait(SIX)
    (line,), (dots,) = named(figure, Stroke, "orbit"), named(figure, Dots, "orbit")
    p, q = (1, -1, -2, -1, 1, 2, 1), (1, 2, 1, -1, -2, -1, 1)
    assert np.array_equal(line.points, np.array([p, q]).T)
    assert np.array_equal(dots.points, np.array([p, q]).T[:6])  # the seventh is the first again
    assert list(dots.labels) == list("012345")
    assert [mark.points for mark in named(figure, Dots, "equilibrium")] == [[(0.0, 0.0)]]
    assert figure.subtitle == ("alternating, q first, step 1",)


def test_what_every_step_keeps_is_drawn_through_the_orbit():
    (line,) = named(portrait(SIX), Stroke, "kept by every step")
    assert all(p * p + q * q + p * q == pytest.approx(3, abs=5e-3) for p, q in line.points)
    assert tuple(line.points[0]) == tuple(line.points[-1])
    for place in SIX.floats:
        assert min(math.dist(place, point) for point in line.points) < 0.06
    other = PQ.orbit((1, 1), step="1/2", steps=9, method="alternating", first="p")
    (line,) = named(portrait(other), Stroke, "kept by every step")
    assert all(p * p + q * q - p * q / 2 == pytest.approx(1.5, abs=5e-3) for p, q in line.points)
    assert not named(portrait(PQ.orbit((1, 1), 1, 3, "simultaneous")), Stroke, "kept by every step")


def test_lines_of_equal_f():
    figure = portrait(SIX)
    for name, holds in (("f below", lambda f: f < 0), ("f above", lambda f: f > 0)):
        lines = named(figure, Stroke, name)
        assert lines and all(line.under for line in lines)
        for line in lines:
            values = [p * q for p, q in line.points]
            assert holds(values[0])
            assert np.ptp(values) < 0.01
    (zero,) = {
        abs(p * q) < 1e-9 for line in named(figure, Stroke, "f as at the equilibrium") for p, q in line.points
    }
    assert zero


def test_a_level_through_a_point_that_is_no_equilibrium_does_not_call_it_one():
    figure = portrait(Game("p*q - p^2/4").orbit((1, 1), 0.1, 3))
    assert named(figure, Stroke, "f as at the stationary point")
    assert not named(figure, Stroke, "f as at the equilibrium")


@settings(max_examples=10, deadline=None)
@given(st.integers(-3, 3), st.integers(-3, 3), st.integers(1, 3))
def test_the_field_points_down_for_p_and_up_for_q(a, b, c):
    figure = portrait(game=Game(f"{a}*p^2 + {c}*p*q + {b}*q^2"), x=(-2, 2), y=(-2, 2))
    (arrows,) = named(figure, Arrows, "where the gradients pull")
    assert len(arrows.pairs) == 144
    for (p0, q0), (p1, q1) in arrows.pairs[::7]:
        p, q = (p0 + p1) / 2, (q0 + q1) / 2
        pull = -(2 * a * p + c * q), c * p + 2 * b * q
        move = p1 - p0, q1 - q0
        assert move[0] * pull[1] == pytest.approx(move[1] * pull[0], abs=1e-9)
        assert move[0] * pull[0] + move[1] * pull[1] >= 0


def test_a_point_that_solves_nothing_is_crossed_out():
    figure = portrait(game=WELLS)
    (good,), (bad,) = (
        named(figure, Dots, "equilibrium"),
        named(figure, Dots, "stationary, not an equilibrium"),
    )
    assert sorted(map(tuple, good.points)) == [(-1.0, 0.0), (1.0, 0.0)]
    assert (list(bad.points), bad.shape) == ([(0.0, -2.0)], "cross")


def test_an_orbit_that_leaves_is_cut_and_said_so():
    orbit = PQ.orbit((1, 1), step=1, steps=20, method="simultaneous")
    figure = portrait(orbit)
    (line,) = named(figure, Stroke, "orbit")
    assert len(line.points) == 6  # sqrt(2)^5 = 5.7 is the first above 4
    assert figure.caption == ("orbit: steps after 5 lie far outside",)
    assert len(followed(orbit, rest_of(PQ))) == 6


def test_a_leap_does_not_take_the_room_of_all_others():
    orbit = Game("p^3*q").orbit((3, 3), 1, 50, floats=True)  # p is -807 after one step
    plane = portrait(orbit).charts[0]
    assert plane.ends() == ((1.5, 4.5), (1.5, 4.5))
    assert portrait(orbit).caption == ("orbit: steps after 0 lie far outside",)


def test_a_window_that_is_given_is_kept():
    plane = portrait(SIX, x=(-1, 5), y=(0, 6)).charts[0]
    assert plane.ends() == ((-1, 5), (0, 6))


def test_more_than_two_numbers_show_the_first_of_each_player():
    game = Game("x*u + y*v", minimise="x y")
    orbit = game.orbit((1, 0, 2, 0), step="1/2", steps=4)
    figure = portrait(orbit)
    assert not figure.charts[0].arrows
    (line,) = named(figure, Stroke, "orbit")
    assert np.array_equal(line.points, orbit.floats[:, [0, 2]])
    assert figure.caption[-1] == "of x, y, u, v the first of each player; the field depends on the others"


def test_a_function_without_a_formula_has_its_portrait():
    torch = pytest.importorskip("torch")
    game = Game(lambda p, q: torch.sin(p) * q)
    figure = portrait(game.orbit((1, 1), step=0.1, steps=3), x=(-1, 1), y=(-1, 1))
    lines = [mark for mark in figure.charts[0].lines if mark.under]
    assert lines
    for line in lines:
        assert np.ptp([math.sin(p) * q for p, q in line.points]) < 0.01


@pytest.mark.parametrize(
    ("method", "factor"),
    [("simultaneous", math.sqrt(1.25)), ("extragradient", math.sqrt(0.8125)), ("consensus", 0.5**0.5)],
)
def test_distances_change_by_the_proved_factor(method, factor):
    # At h = 1/2: 1 + h^2, (1 - h^2)^2 + h^2 and (1 - h)^2 + h^2 are the squares
    orbit = PQ.orbit((1, 1), step="1/2", steps=12, method=method)
    line = distances(orbit).charts[0].lines[0].points
    assert [d for _, d in line] == pytest.approx([2**0.5 * factor**step for step in range(13)])
    assert distances(orbit, to=(0, 0)).json()["distances"]["orbit"] == [d for _, d in line]


def test_a_distance_of_0_has_a_place_on_the_scale():
    figure = distances(PQ.orbit((0, 0), step=1, steps=2))
    assert {d for _, d in figure.charts[0].lines[0].points} == {1e-16}
    assert figure.caption == ("a distance of 0 is drawn as 1e-16",)
    # p' = p - p = 0 and q stays 0: one step
    lower = distances(Game("p^2/2 - q^2/2").orbit(("1e-30", 0), step=1, steps=1, method="simultaneous"))
    assert [d for _, d in lower.charts[0].lines[0].points] == pytest.approx([1e-30, 1e-31])
    assert lower.caption == ("a distance of 0 is drawn as 1e-31",)


def test_small_orbits_are_drawn_as_they_are():
    orbit = PQ.orbit(("1e-30", "1e-30"), step="1/2", steps=20, method="simultaneous")
    line = distances(orbit).charts[0].lines[0].points
    assert [d for _, d in line] == pytest.approx([2**0.5 * 1e-30 * 1.25 ** (t / 2) for t in range(21)])
    assert len(followed(orbit, rest_of(PQ))) == 14  # 1.25^(13/2) = 4.3 is the first above 4


def test_equilibria_that_fill_a_line():
    # p' = p - (p - q)/5, q' = q + (q - p')/5 turns the pair along p = q; d = q - p is what counts
    game = Game("(p - q - 1)^2")
    orbit = game.orbit((2, 3), step="1/10", steps=8)
    figure = with_pictures(orbit)
    (line,) = named(figure, Stroke, "stationary, not an equilibrium")
    assert not named(figure, Dots, line.name)
    assert [p - q for p, q in line.points] == pytest.approx([1, 1])
    (x, _), ends = figure.charts[0].ends(), sorted(p for p, _ in line.points)
    assert ends[0] < x[0] and x[1] < ends[1]
    assert figure.caption == ("the gradient is 0 wherever p - q - 1 = 0",)
    _, curve = figure.charts
    assert curve.title == "Distance to the nearest equilibrium"
    result = [d for _, d in curve.lines[0].points]
    assert result == pytest.approx([abs(p - q - 1) / math.sqrt(2) for p, q in orbit.floats])
    assert rest_of(game).foot(orbit) == pytest.approx([3, 2])  # the foot of (2, 3) on p = q + 1
    to_one = distances(orbit, to=(1, 0)).charts[0].lines[0].points
    assert to_one[0][1] == pytest.approx(math.dist((2, 3), (1, 0)))


def test_orbits_are_compared():
    orbits = [
        PQ.orbit((1, 1), step="1/2", steps=n, method=m) for m, n in (("simultaneous", 30), ("optimistic", 20))
    ]
    figure = compare_orbits(*orbits)
    assert figure.subtitle == ("step 1/2",)
    assert dict(figure.facts)["optimistic"].startswith(
        "converges, factor sqrt(2)/2 = 0.7071 a step; distance 1.41"
    )
    assert "distances up to step 20, where the shortest orbit ends or passes 1e+100" in figure.caption
    assert [line.name for line in figure.charts[1].lines] == ["simultaneous", "optimistic"]
    looks = {(mark.colour, mark.shape) for mark in figure.charts[0].dots[:2]}
    assert len(looks) == 2


def test_names_say_what_differs():
    orbits = [PQ.orbit((1, 1), step=step, steps=2) for step in ("1/2", ("1/2", 1))]
    assert [line.name for line in distances(*orbits).charts[0].lines] == ["step 1/2", "steps 1/2 and 1"]
    both = [orbits[0], PQ.orbit((1, 1), 1, 2, "optimistic")]
    assert [line.name for line in distances(*both).charts[0].lines] == [
        "alternating, q first, step 1/2",
        "optimistic, step 1",
    ]


def test_a_game_with_two_solutions_is_measured_to_the_nearer():
    orbit = WELLS.orbit((2, 1), step="1/8", steps=10, floats=True)
    figure = compare_orbits(orbit)
    assert figure.charts[1].lines[0].points[0][1] == pytest.approx(2**0.5)  # from (2, 1) to (1, 0)
    assert figure.facts[0][1].startswith("near the equilibrium converges, factor sqrt(15)/4 = 0.9682 a step")


def test_one_figure_of_an_orbit():
    figure = SIX.draw()
    assert ("period", "6, proved: the state after 6 steps is that after 0") in figure.facts
    assert figure.facts[-1][0] == "this step"
    assert figure.json()["period"] == 6
    assert figure.svg().count("<path") > 100
    assert max(map(len, figure.terminal(40, colour=False, encoding="ascii").splitlines())) <= 40
    nowhere = with_pictures(Game("p*exp(q)").orbit((1, 1), step="0.1", steps=3))
    assert [chart.title for chart in nowhere.charts] == ["Phase portrait"]


def test_errors():
    with pytest.raises(
        DomainError, match=re.escape("a picture needs orbits, as in portrait(game.orbit((1, 1)))")
    ):
        portrait()
    with pytest.raises(
        DomainError, match=re.escape("a picture shows one game: min over p, max over q of p*q, not")
    ):
        portrait(SIX, Game("2*p*q").orbit((1, 1)))
    with pytest.raises(
        DomainError, match=r"no equilibrium of .* is known to measure distances to; give one: to="
    ):
        distances(Game("p*exp(q)").orbit((1, 1), step="0.1", steps=3))
    with pytest.raises(DomainError, match="p = 1, q = 0 is no equilibrium"):
        distances(SIX, to=(1, 0))
    beyond = r"a picture has room for numbers up to 1e\+100, and the orbit starts beyond"
    for start in (("1e400", 1), ("9e99", "9e99")):
        for draw in (portrait, distances, compare_orbits, with_pictures):
            with pytest.raises(DomainError, match=beyond):
                draw(PQ.orbit(start, step=1, steps=2))


def test_numbers_without_bound_have_their_picture():
    figure = with_pictures(PQ.orbit((1, 1), step=1, steps=2000, method="simultaneous"))
    line = figure.charts[1].lines[0].points
    assert line[-1][1] == pytest.approx(2 ** (len(line) / 2)) and line[-1][1] < 1e100 < 2 * line[-1][1]
    assert figure.svg().startswith("<svg")


def test_the_picture_of_an_analysis():
    """Optimistic steps on p·q: 1/√2 at 1/2, 1 at 1/√3, and √(2h² + h√(4h² − 1)) beyond 1/2."""
    result = PQ.analyse("optimistic", step="1/4")
    figure = result.draw()
    (curve,) = figure.charts
    line = {point[0]: point[1] for point in curve.lines[0].points}
    assert max(line) == pytest.approx(1.5 / math.sqrt(3))  # half as far again as the end of the range
    for h, factor in line.items():
        if h > 0.5:
            exactly = math.sqrt(2 * h**2 + h * math.sqrt(4 * h**2 - 1))
            assert factor == pytest.approx(exactly)
        assert factor >= line[0.5] - 1e-7
    assert [(dots.labels, *dots.points) for dots in curve.dots] == [
        (["best step"], (0.5, pytest.approx(math.sqrt(0.5)))),
        (["h = 1/4"], (0.25, pytest.approx((math.sqrt(2) + math.sqrt(6)) / 4))),
    ]
    assert ("best step", "1/2: factor sqrt(2)/2 = 0.7071") in figure.facts
    assert figure.json()["best"] == result.json()["best"]
    assert figure.svg().startswith("<svg")


def test_an_analysis_beyond_floats_has_facts_alone():
    figure = Game("10^400*p*q").analyse("simultaneous").draw()
    assert not figure.charts and figure.facts


def test_the_picture_of_equilibria():
    result = WELLS.equilibria()
    figure = result.draw()
    assert [mark.points for mark in named(figure, Dots, "equilibrium")] == [[(-1.0, 0.0), (1.0, 0.0)]]
    assert figure.facts[1] == ("p = 0, q = -2", "not an equilibrium: p gains by moving")
    assert figure.json()["equilibria"] == result.json()["equilibria"]
    one = result[2].draw()
    assert [mark.points for mark in named(one, Dots, "equilibrium")] == [[(1.0, 0.0)]]
    assert one.charts[0].x == (-0.5, 2.5)
    assert one.facts == (("p = 1, q = 0", str(result[2])),)
    assert one.json()["point"] == ["1", "0"]


def test_results_are_named_in_one_line():
    result = WELLS.equilibria()
    assert repr(result[1]) == "<Equilibrium p = 0, q = -2: not an equilibrium>"
    assert repr(result) == "<Equilibria of q*(p^2 - 1) - q^2/4: 3>"
    assert repr(PQ.analyse(step=1)) == "<Analysis of p*q: alternating, q first>"
    assert (
        repr(PQ.analyse(step=1).here)
        == "<StepOutcome h = 1: cycles, period 6: the step's matrix has M^6 = 1>"
    )
    assert repr(SIX) == "<Orbit of p*q: alternating, q first, 6 steps, period 6>"


def test_lines_of_equal_value():
    axis = np.linspace(-2, 2, 81)
    x, y = np.meshgrid(axis, axis)
    (circle,) = _contours(axis, axis, x**2 + y**2, 1.02)
    assert circle[0].tolist() == circle[-1].tolist()
    assert np.hypot(*circle.T) == pytest.approx(math.sqrt(1.02), abs=1e-3)
    right, left = _contours(axis, axis, x * y, 0.5)
    assert (right.prod(axis=1), left.prod(axis=1)) == (pytest.approx(0.5, abs=2e-3),) * 2
    hole = _contours(axis, axis, np.where(np.hypot(x, y) < 0.5, np.nan, x), 0.01)  # upright, but not there
    assert len(hole) == 2 and all(np.abs(line[:, 1]).min() >= 0.45 for line in hole)


def test_a_chart_is_drawn_into_axes_that_are_given():
    from matplotlib.figure import Figure

    left, right = Figure().subplots(1, 2)
    assert portrait(SIX, ax=left).charts[0].title == left.get_title() == "Phase portrait"
    distances(SIX, ax=right)
    assert (right.get_yscale(), right.get_xlabel()) == ("log", "step")
    (line,) = [line for line in right.get_lines() if len(line.get_xdata())]
    assert line.get_ydata()[0] == pytest.approx(math.sqrt(2))
    assert "orbit" in left.get_legend_handles_labels()[1]
    with pytest.raises(LattendError, match="has 2 charts, and axes take one: draw one of"):
        SIX.draw().onto(left)


@pytest.mark.parametrize("game", [PQ, WELLS, Game("(p - q)^2"), Game("p^3*q")])
def test_the_window_of_orbits_is_that_of_their_portrait(game):
    orbits = [game.orbit(("1/2", 3), "1/4", 5, method) for method in ("alternating", "simultaneous")]
    assert orbit_window(orbits) == compare_orbits(*orbits).charts[0].ends()


PQ = Game("p*q")


@pytest.fixture(scope="module")
def table():
    return compare_methods(PQ)


def cell(table, method, step):
    return table.json()["methods"][method][list(STEPS).index(step)]


def radius(rows):
    return np.abs(np.linalg.eigvals(np.array(rows))).max()


@pytest.mark.parametrize(("text", "h"), [("1/10", 0.1), ("1/2", 0.5), ("3/2", 1.5), ("5/2", 2.5)])
def test_factors_are_those_of_the_steps_matrix(table, text, h):
    one, turn = np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]])  # (p, q) moves by h·turn
    expected = {
        "simultaneous": one + h * turn,
        "alternating, q first": [[1 - h * h, -h], [h, 1]],
        "optimistic": np.block([[one + 2 * h * turn, -h * turn], [one, 0 * one]]),
        "extragradient": one + h * turn @ (one + h * turn),
        "consensus, weight 1": one + h * (turn - one),
        "gradient penalty, weight 1": one + h * (turn - np.diag([0.0, 1.0])),
    }
    for method, rows in expected.items():
        assert cell(table, method, text)["factor"] == pytest.approx(radius(rows)), method


def test_p_times_q_converges_cycles_and_diverges_where_it_should(table):
    kinds = [cell(table, "alternating, q first", step)["kind"] for step in STEPS]
    assert kinds == ["cycles"] * 6 + ["grows", "diverges"]
    assert {cell(table, "simultaneous", step)["kind"] for step in STEPS} == {"diverges"}
    facts = dict(table.facts)
    assert facts["optimistic"] == "converges for 0 < h < sqrt(3)/3; best factor sqrt(2)/2 = 0.7071 at h = 1/2"
    assert facts["extragradient"] == (
        "converges for 0 < h < 1; best factor sqrt(3)/2 = 0.8660 at h = sqrt(2)/2 = 0.7071"
    )
    assert facts["alternating, q first"] == "cycles for 0 < h < 2; grows like t for h = 2; diverges for h > 2"
    assert facts["momentum, mass -1/2, q first"].endswith("best factor 0.8846 at h = 0.8712")


def test_a_terminal_shows_the_factors(table):
    lines = table.terminal(80, colour=False, encoding="utf-8").splitlines()
    assert "          optimistic 0.995  0.966  0.707  1.401  1.932  2.957  3.968  4.975" in lines
    assert "alternating, q first cycles cycles cycles cycles cycles cycles grows  4.000" in lines
    assert "a number below 1 converges, above 1 diverges; cycles: distances stay within" in lines
    narrow = table.terminal(40, colour=False, encoding="utf-8")
    assert max(map(len, narrow.splitlines())) <= 40
    assert "a number below 1" not in narrow  # none are shown


def test_colours_follow_the_factor(table):
    row = [label.text for label in table.panels[0].marks][:8]
    assert row == ["1.005", "1.031", "1.118", "1.250", "1.414", "1.803", "2.236", "2.693"]
    cells = table.panels[0].cells
    assert cells[1, 0] == 32  # the middle of the scale: a factor of 1
    assert cells[0].tolist() == sorted(cells[0].tolist()) and cells[2, 2] < 32


def test_methods_of_one_name_keep_their_numbers():
    figure = compare_methods(PQ, ["1/2"], [consensus(1), consensus("1/2"), gradient_penalty(1)])
    assert [name for _, name in figure.panels[0].rows.ticks] == [
        *("consensus, weight 1", "consensus, weight 1/2"),
        "gradient penalty",
    ]


def test_an_equilibrium_is_chosen():
    game = Game("(p^2 - 1)*q - q^2/4")
    with pytest.raises(DomainError, match=r"several equilibria: .*; say which: at="):
        compare_methods(game, ["1/2"], ["simultaneous"])
    result = compare_methods(game, ["1/16"], ["simultaneous"], at=(1, 0)).json()["methods"]["simultaneous"]
    # The field's matrix at (1, 0) is [[0, -2], [2, -1/2]]
    assert result[0]["factor"] == pytest.approx(radius(np.eye(2) + np.array([[0, -2], [2, -0.5]]) / 16))


def test_where_equilibria_form_a_line_methods_settle_at_one_of_them():
    line = Game("x*q", minimise="x y", maximise="q")
    shown = " ".join(compare_methods(line, 0.5, "extragradient").terminal(80, colour=False).split())
    assert "settles: at one of the equilibria, which form a line" in shown


def test_what_is_not_decided_is_said():
    figure = compare_methods(dirac(), ["1", "5"], "alternating")  # a cycle of the linear part, then growth
    (row,) = figure.json()["methods"].values()
    assert [one["kind"] for one in row] == ["undecided", "diverges"]
    assert figure.caption[0].endswith("; undecided: second derivatives do not decide")


def test_one_step_and_one_method_need_no_list():
    result = compare_methods(PQ, "12", "optimistic").json()
    assert result["steps"] == ["12"] and list(result["methods"]) == ["optimistic"]
    assert list(compare_methods(PQ, 0.5, consensus(1)).json()["methods"]) == ["consensus, weight 1"]


def test_a_table_needs_something():
    with pytest.raises(DomainError, match="a table needs one step and one method, or more"):
        compare_methods(PQ, [])
