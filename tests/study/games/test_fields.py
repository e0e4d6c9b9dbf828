"""One step of a game as formulas."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.errors import DomainError, NamingError
from lattend.study.games.game import Game
from lattend.study.games.methods import METHODS

small = st.fractions(min_value=-2, max_value=2, max_denominator=3)
GAMES = ("p*q", "p*q - p^2/4", "p^2*q - q^3/3 + p", "p*q + (p^2 - q^2)/2")


def put_in(formula: Any, values: dict[str, Any]) -> Any:
    exact = {sympy.Symbol(name, real=True): sympy.Rational(str(value)) for name, value in values.items()}
    return formula.xreplace(exact)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(GAMES),
    st.sampled_from(sorted(METHODS)),
    st.tuples(small, small),
    st.fractions(min_value=Fraction(1, 5), max_value=2, max_denominator=5),
)
def test_the_map_is_a_step_of_the_orbit(text: str, method: str, start: tuple[Any, Any], h: Fraction) -> None:
    game = Game(text)
    orbit = game.orbit(start, h, steps=2, method=method)
    result = game.map(method, h)
    state = dict(zip("pq", start, strict=True))
    if "g_p" in result.formulas:
        still = method == "momentum"
        state |= (
            {"g_p": 0, "g_q": 0}
            if still
            else dict(zip(("g_p", "g_q"), exact_gradient(game, start), strict=True))
        )
    for t in (1, 2):
        assert put_in(result.value, state) == orbit.values[t]
        state = {name: put_in(formula, state) for name, formula in result.formulas.items()}
        assert (state["p"], state["q"]) == orbit.points[t]


def exact_gradient(game: Game, start: tuple[Any, Any]) -> list[Any]:
    p, q = sympy.symbols("p q", real=True)
    f = sympy.parse_expr(game.text.replace("^", "**"), {"p": p, "q": q}, transformations="all")
    return [put_in(sympy.diff(f, name), dict(zip("pq", start, strict=True))) for name in (p, q)]


def test_the_step_stays_open() -> None:
    assert str(Game("p*q").map()) == "p' = (1 - h^2)*p - h*q, q' = h*p + q, f' = -(h*p + q)*(h^2*p + h*q - p)"
    assert str(Game("p*q").map(step=1)) == "p' = -q, q' = p + q, f' = -q*(p + q)"
    assert Game("p*q").map(step=1)["p"] == -sympy.Symbol("q", real=True)


def test_a_long_value_is_left_in_the_new_place() -> None:
    result = Game("p^4/4 - p^2 + p*q - q^2/2").map("extragradient")
    assert result.texts["f'"] == "p'^4/4 - p'^2 - q'^2/2 + p'*q'"


def test_maps_that_there_are_none_of() -> None:
    with pytest.raises(NamingError, match="h is the step of a map"):
        Game("h*q").map()
    torch_game = Game(lambda p, q: (p * q).relu())
    with pytest.raises(DomainError, match="takes no symbols"):
        torch_game.map()


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(METHODS)), st.tuples(small, small))
def test_an_orbit_of_formulas_is_the_orbit_of_numbers(method: str, start: tuple[Any, Any]) -> None:
    formulas = Game("p*q").orbit(("a", "b"), "1/2", steps=4, method=method)
    numbers = Game("p*q").orbit(start, "1/2", steps=4, method=method)
    values = dict(zip("ab", start, strict=True))
    assert [tuple(put_in(x, values) for x in point) for point in formulas.points] == list(numbers.points)
    assert [put_in(x, values) for x in formulas.values] == list(numbers.values)


def test_a_period_for_every_start() -> None:
    orbit = Game("p*q").orbit(("p0", "q0"), steps=7)
    assert (orbit.period, orbit.letters) == (6, ["p0", "q0"])
    assert "6, proved for all p0 and q0: the state after 6 steps is that after 0" in str(orbit)
    assert "   1  -q0       p0 + q0   -q0*(p0 + q0)\n" in str(orbit)
    assert orbit.json()["points"][2] == ["-p0 - q0", "p0"]


def test_formulas_that_grow_stop() -> None:
    orbit = Game("p*q - p^4").orbit(("a", 1), steps=6)
    assert "before the formulas get longer" in orbit.note
    assert len(orbit.points) == len(orbit.values) < 6


def test_letters_are_not_drawn_nor_analysed() -> None:
    with pytest.raises(
        DomainError, match="the start has p0 and q0 in it; to draw the orbit, start at numbers"
    ):
        Game("p*q").orbit(("p0", "q0")).draw()
    with pytest.raises(DomainError, match="at: "):
        Game("p*q").analyse(at=("a", 0))


def test_the_matrix_is_printed() -> None:
    matrix = Game("p*q").analyse().matrix
    assert str(matrix) == "[1 - h^2, -h; h, 1]"
    assert repr(matrix) == "<MatrixOfH [1 - h^2, -h; h, 1]>"
    assert Game("p*q").analyse().json()["matrix"] == [["1 - h^2", "-h"], ["h", "1"]]
