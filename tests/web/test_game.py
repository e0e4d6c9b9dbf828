"""Games on the page: orbits, periods and outcomes are the library's."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from web.page_texts import text_of

from lattend.study.games.game import Game, dirac
from lattend.study.games.methods import METHODS
from lattend.web.worker import reply

PANELS = ("game", "game_field", "game_outcome", "game_steps")


def ask(panel: str, **question: Any) -> tuple[int, dict[str, Any]]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


@settings(max_examples=25)
@given(
    st.sampled_from(["p*q", "p*q - p^2/4", "p*q + p^3", "u*x - x^2"]),
    st.sampled_from(list(METHODS)),
    st.fractions(-2, 2, max_denominator=10),
    st.fractions("1/10", 2, max_denominator=10),
    st.integers(0, 9),
)
def test_an_orbit_is_the_librarys(text: str, method: str, start: Any, step: Any, steps: int) -> None:
    status, found = ask(
        "game", game=text, method=method, start=[str(start), "1"], step=str(step), steps=steps
    )
    assert status == 200
    orbit = Game(text).orbit((str(start), 1), str(step), steps, method)
    (track,) = found["tracks"]
    assert track["period"] == orbit.period
    shown = Game(text).orbit((str(start), 1), str(step), steps, method, floats=True) if orbit.note else orbit
    assert track["points"] == [*takewhile(lambda row: max(map(abs, row)) <= 1e6, shown.floats.tolist())]
    assert found["report"]["parts"][0]["text"] == orbit.report().parts[0]


def test_periods_are_proved_and_their_steps_can_be_taken() -> None:
    _, found = ask("game_steps", game="p*q", method="alternating")
    for one in found["periods"]:
        _, orbit = ask("game", game="p*q", step=one["step"], start=["2", "1/3"], steps=one["period"])
        assert orbit["tracks"][0]["period"] == one["period"]
        _, outcome = ask("game_outcome", game="p*q", step=one["step"])
        assert outcome["outcomes"][0]["period"] == one["period"]
    assert [one["period"] for one in found["periods"]] == [3, 4, 5, 6, 7, 8, 9, 10, 12]


def test_outcomes_of_several_rules_stand_side_by_side() -> None:
    also = ["simultaneous", "optimistic"]
    _, found = ask("game_outcome", game="dirac", method="extragradient", also=also, step="1/2")
    expected = {name: str(dirac().analyse(name, "1/2").here) for name in ("extragradient", *also)}
    assert {one["name"]: text_of(one["words"]) for one in found["outcomes"]} == expected


def test_the_best_step_is_the_librarys() -> None:
    _, found = ask("game_steps", game="p*q", method="optimistic")
    best = Game("p*q").analyse("optimistic").best
    assert best is not None
    assert found["best"] == str(best.step)
    assert all(factor > 0 for _, factor in found["factors"][0]["points"])


def test_the_field_points_where_the_gradients_pull() -> None:
    _, found = ask("game_field", game="p*q", view=[1, 2, 3])
    for x, y, to_x, to_y in found["arrows"]:
        p, q = (x + to_x) / 2, (y + to_y) / 2
        assert (to_x - x) * p == pytest.approx((to_y - y) * -q, abs=1e-9)  # along (-q, p)
        assert -2 <= p <= 4
        assert -1 <= q <= 5
    assert found["rests"][0]["place"] == [0.0, 0.0]


def test_letters_as_a_start_give_formulas_and_no_tracks() -> None:
    status, found = ask("game", game="p*q", start=["a", "b"], steps=6)
    assert (status, found["tracks"]) == (200, [])
    facts = dict(found["report"]["parts"][1]["rows"])
    assert facts["period"].startswith("6, proved for all a and b")


def test_more_names_need_players_and_starts_are_filled_up() -> None:
    status, found = ask("game", game="x*u + y*v")
    assert status == 422
    assert "minimise" in found["message"]
    status, found = ask("game", game="x*u + y*v", minimise="x y", start=["2"])
    assert (status, found["names"], found["start"]) == (200, ["x", "y", "u", "v"], ["2", "1", "1", "1"])


def test_several_equilibria_are_offered_and_one_is_taken() -> None:
    _, found = ask("game_steps", game="x^3 - 3*x*y^2 + x")
    assert found["points"] == ["0, -sqrt(3)/3", "0, sqrt(3)/3"]
    assert found["factors"] == []
    _, near = ask("game_steps", game="x^3 - 3*x*y^2 + x", at=found["points"][1])
    assert near["factors"]


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("game", ["", "p", "(" * 300, "p*q*", "1/(p-p)", "p^9999*q", "💥", "ring", "p q r s"])
def test_nonsense_is_a_problem_of_its_own_panel(panel: str, game: str) -> None:
    status, found = ask(panel, game=game)
    assert (status, found["kind"]) == (422, "input")
    assert found["message"]


@pytest.mark.parametrize("step", ["", "0", "-1", "1/0", "x", "1,2,3", "sqrt(-1)"])
@pytest.mark.parametrize("panel", ["game", "game_outcome"])
def test_a_step_that_is_none_is_a_problem(panel: str, step: str) -> None:
    assert ask(panel, game="p*q", step=step)[0] == 422


def test_a_mistake_in_the_formula_is_pointed_at() -> None:
    _, found = ask("game", game="p*q + p**")
    assert (found["field"], found["text"]) == ("game", "p*q + p**")
    assert found["start"] == 9


@pytest.mark.parametrize("panel", ["game", "game_field", "game_steps"])
def test_pictures_are_drawn(panel: str) -> None:
    status, media, body = reply(panel, "svg", json.dumps({"game": "p*q"}).encode())
    assert (status, media) == (200, "image/svg+xml")
    assert b"<svg" in body
