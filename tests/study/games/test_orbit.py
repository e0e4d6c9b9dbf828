"""Orbits: the table of period 6, exact returns, and floats where there is nothing exact."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import DomainError
from lattend.report.table import Table
from lattend.study.games.game import Game

small = st.fractions(min_value=-2, max_value=2, max_denominator=4)


def test_the_table_of_period_6() -> None:
    orbit = Game("p*q").orbit((1, 1), step=1, steps=6, method="alternating")
    assert [q for _, q in orbit.points] == [1, 2, 1, -1, -2, -1, 1]
    assert [p for p, _ in orbit.points] == [1, -1, -2, -1, 1, 2, 1]
    assert orbit.exact and orbit.period == 6 and orbit.returns == (0, 6)
    assert orbit.values == (1, -2, -2, 1, -2, -2, 1)
    assert orbit.stalls == (1, 4)  # f is -2 twice, with the gradient (1, -2) in between


def test_what_is_printed() -> None:
    orbit = Game("p*q").orbit((1, 1), step=1, steps=6)
    assert (
        str(orbit)
        == """\
min over p, max over q of p*q
alternating, q first, step 1

one step       p' = -q, q' = p + q, f' = -q*(p + q)
numbers        exact
period         6, proved: the state after 6 steps is that after 0
f stays equal  from step 1 to 2, 4 to 5, though the gradient is not 0: no sign of an equilibrium

step   p   q   f
   0   1   1   1
   1  -1   2  -2
   2  -2   1  -2
   3  -1  -1   1
   4   1  -2  -2
   5   2  -1  -2
   6   1   1   1"""
    )
    assert orbit._repr_html_().count("<table>") == 2  # facts, and the places
    narrow = orbit.text(40)
    assert max(map(len, narrow.splitlines())) <= 40
    assert orbit.json()["points"][1] == ["-1", "2"] and orbit.json()["period"] == 6


@settings(max_examples=20, deadline=None)
@given(small, small, st.fractions(min_value=Fraction(1, 4), max_value=2, max_denominator=4))
def test_against_fractions_by_hand(p: Fraction, q: Fraction, h: Fraction) -> None:
    """q' = q + h(p² - q), p' = p - h(2pq' - 1), for f = p²q - q²/2 - p."""
    orbit = Game("p^2*q - q^2/2 - p").orbit((p, q), h, 4)
    for point in orbit.points:
        assert point == (p, q)
        q = q + h * (p * p - q)
        p = p - h * (2 * p * q - 1)


def test_surds_return_exactly() -> None:
    for step, period in (("sqrt(2)", 4), ("sqrt(3)", 3), ("2*sin(pi/5)", 5), ("sqrt(2 - sqrt(2))", 8)):
        orbit = Game("p*q").orbit((1, "1/3"), step, 9)
        assert orbit.exact and orbit.period == period


def test_a_fixed_point_has_period_one() -> None:
    orbit = Game("p*q").orbit((0, 0), 1, 3)
    assert orbit.period == 1 and orbit.stalls == ()
    assert ("period", "1, proved: nobody moves from step 0 on") in orbit.draw().facts


def test_the_memory_must_return_too() -> None:
    """p and q come back after two steps, the remembered gradient does not: 1, 0, 1, -1, … is no period."""
    orbit = Game("p^2/2 - q^2/2").orbit((1, 0), 1, 8, "optimistic")
    assert [p for p, _ in orbit.points[:4]] == [1, 0, 1, -1]  # p' = p - 2p + p of the step before
    assert orbit.points[0] == orbit.points[2] and orbit.period is None


def test_long_fractions_stop() -> None:
    orbit = Game("p^3 + p*q").orbit((1, 1), 0.1, 30)
    assert orbit.note == "stopped after 7 of 30 steps, before 1,000 digits; floats go on"
    assert len(orbit.points) == 8
    floats = Game("p^3 + p*q").orbit((1, 1), 0.1, 30, floats=True)
    assert np.allclose(orbit.floats, floats.floats[:8]) and not floats.exact


def test_floats_stop_when_they_leave() -> None:
    orbit = Game("p^3*q").orbit((3, 3), 1, 50, floats=True)
    assert "the next numbers are too large" in orbit.note and np.isfinite(orbit.floats).all()
    assert Game("exp(p)*q").orbit((0, 1), "1/2", 3).exact is False
    assert Game("p*q").orbit((1, 1), "pi", 2).exact is False  # pi is in no number field


def test_floats_stop_where_f_has_no_value() -> None:
    orbit = Game("log(p)*q").orbit((1, 1), "1/2", 12)
    assert orbit.note == "stopped after 1 of 12 steps: f has no value at the next place"
    assert orbit.points == ((1.0, 1.0), (0.5, 1.0))  # next q = 1 + log(1/2)/2, then p = 1/2 - q < 0
    assert math.isfinite(sum(orbit.values))
    assert "f has no value at the next place" in Game("p^0.5*q").orbit((1, 1), "1/2", 12).note


@pytest.mark.parametrize(("f", "start"), [("log(p)*q", (-1, 1)), ("p/q", (1, 0)), ("exp(p)*q", (1000, 1))])
def test_a_start_without_a_value_is_refused(f: str, start: tuple[int, int]) -> None:
    said = f"at the start, {start[0]}, {start[1]}, f is no finite number in floats; start elsewhere"
    with pytest.raises(DomainError, match=said):
        Game(f).orbit(start, 1, 3)


def test_a_step_that_floats_cannot_hold_is_refused() -> None:
    with pytest.raises(DomainError, match="step 1e-400 is beyond floats, which this orbit needs"):
        Game("p*q").orbit((1, 1), "1e-400", 3, floats=True)


def test_what_repeats_is_computed_once() -> None:
    began = time.perf_counter()
    orbit = Game("p*q").orbit((1, 1), 1, 100_000)
    assert time.perf_counter() - began < 2
    assert orbit.points == (orbit.points[:6] * 16_667)[:100_001]
    assert orbit.values[99_999] == orbit.values[3] and orbit.returns == (0, 6)
    assert len(orbit.stalls) == 2 * 16_666 + 1  # 1 and 4 of every six; 99,997 is 1 of the last, shorter turn


def test_a_period_after_a_while() -> None:
    """p' = p - p = 0 for ever, q' = q - q/2: f = p²/2 in whole steps rests after the first."""
    orbit = Game("p^2/2 + 0*q - q^2/2").orbit((1, 1), 1, 5, "simultaneous")
    assert orbit.returns == (1, 2) and orbit.points == ((1, 1), *((0, 0),) * 5)
    assert ("period", "1, proved: nobody moves from step 1 on") in orbit.draw().facts


def test_long_numbers_are_shown_by_six_digits() -> None:
    about, _, table = Game("p^2*q^2").orbit((1, 1), 3, 3).report().parts
    assert isinstance(table, Table) and table.rows[-1][1:3] == ("-1.75135e97", "1.1301e40")
    about, _, table = Game("p*q").orbit(("1e400", 1), "1e-400", 0).report().parts
    assert about == "alternating, q first, step 1e-400"
    assert ("period", "none within 1 step") in Game("p*q").orbit((1, 1), 1, 1).draw().facts
    assert isinstance(table, Table) and table.rows[-1] == ("0", "1e400", "1", "1e400")


@pytest.mark.parametrize("method", ["alternating", "simultaneous", "optimistic"])
def test_several_numbers_a_player(method: str) -> None:
    """Two games side by side are played as each one alone."""
    both = lt.study.games.Game("x*u + 2y*v", minimise="x y").orbit((1, 2, 3, 4), "1/3", 5, method)
    one = lt.study.games.Game("x*u", minimise="x").orbit((1, 3), "1/3", 5, method)
    two = lt.study.games.Game("2y*v", minimise="y").orbit((2, 4), "1/3", 5, method)
    for all_four, first, second in zip(both.points, one.points, two.points, strict=True):
        assert all_four == (first[0], second[0], first[1], second[1])
