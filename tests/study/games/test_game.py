"""Reading games: names, players, functions; and what is no game."""

from __future__ import annotations

import math
from typing import Any

import pytest
import sympy

import lattend as lt
from lattend.errors import DomainError, NamingError, TextError, TraceError
from lattend.study.games.game import Game, step_pair

ZERO = "sqrt(5 + 2*sqrt(6)) - sqrt(2) - sqrt(3)"


def test_the_first_in_the_alphabet_minimises() -> None:
    assert str(Game("q*p")) == str(Game("p*q")) == "min over p, max over q of p*q"
    assert str(Game("x*u + y*v", minimise="x y")) == "min over x, y, max over u, v of u*x + v*y"
    assert Game("p*q", maximise="p").minimise == ("q",)
    assert Game(lambda y, x: y * x + y**2).minimise == ("y",)
    assert Game(sympy.Symbol("a") * sympy.Symbol("b")).names == ("a", "b")


@pytest.mark.parametrize(
    ("written", "read"),
    [("pq", "p*q"), ("2pq", "2*p*q"), ("pq - p", "p*q - p"), ("p^2 - 3pq + q", "p^2 - 3*p*q + q")],
)
def test_letters_side_by_side_are_a_product(written: str, read: str) -> None:
    assert str(Game(written)) == str(Game(read))
    assert Game("xy*ab").names == ("ab", "xy")  # no letter of theirs is a name: two players


def test_values_and_gradients() -> None:
    game = Game("p^2*q - q^2/2")
    assert game.value((2, 3)) == 12 - 4.5
    assert game.gradient({"q": 3, "p": 2}) == (12, 4 - 3)
    assert game.polynomial and not game.quadratic and Game("p*q - p^2").quadratic
    assert not Game("exp(p)*q").polynomial


def test_functions_on_torch_numbers() -> None:
    torch = pytest.importorskip("torch")

    def f(q: Any, p: Any) -> Any:
        return torch.tanh(p * q) + p**2 / 2

    game = Game(f, minimise="p")
    assert game.names == ("p", "q") and game.formula is None and str(game).endswith("of f(q, p)")
    slope = 1 - math.tanh(0.02) ** 2
    assert game.gradient((0.1, 0.2)) == pytest.approx((0.2 * slope + 0.1, 0.1 * slope))


def test_functions_that_torch_cannot_follow() -> None:
    """math.sin makes a float of a tensor, and a warning, which would be an error here."""
    pytest.importorskip("torch")
    with pytest.raises(DomainError, match="torch does not see through those of math or numpy"):
        Game(lambda p, q: math.sin(p) * q)


def test_a_tensor_is_a_place() -> None:
    torch = pytest.importorskip("torch")
    start = torch.tensor([0.1, 2.0], requires_grad=True)
    assert Game("p*q").point(start) == (sympy.Rational(1, 10), 2)


def test_a_player_moves_first_by_its_own_name() -> None:
    game = Game("x*u", minimise="x")
    for own, player in (("u", "q"), ("x", "p")):
        expected = game.orbit((1, 1), "1/2", 3, first=player)
        assert game.orbit((1, 1), "1/2", 3, first=own).points == expected.points
        assert game.analyse(first=own).invariants == game.analyse(first=player).invariants
    turned = Game("p*q", maximise="p")  # p is still the minimiser, as the methods say it
    assert str(turned.method("alternating", first="p")) == "alternating, p first"
    with pytest.raises(NamingError, match='first is "q", the maximiser, or "p", the minimiser; got \'y\''):
        game.orbit((1, 1), first="y")


def test_large_numbers_stay_quiet() -> None:
    """exp of 1000 is an infinity, not a warning, which would be an error here."""
    assert Game("softplus(p*q)").value((100, 10)) == math.inf


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Game("3"), DomainError, "f has no gradient: it is 3 everywhere, and nobody would move"),
        (lambda: Game("p*q*0", "p", "q"), DomainError, "f has no gradient: it is 0 everywhere"),
        (lambda: Game("p^2"), NamingError, "a game needs two players"),
        (lambda: Game("p*q*r"), NamingError, "f has p, q, r: say which of them minimise"),
        (lambda: Game("p*q", "p", "r"), NamingError, "f has q, which neither minimises nor maximises"),
        (lambda: Game("p*q", "p", "p q"), NamingError, "p cannot both minimise and maximise"),
        (lambda: Game("p*q", "p q"), NamingError, "nobody maximises; f has p, q"),
        (lambda: Game("p^2", "p", "q"), NamingError, "f has no q, which maximises; f has p"),
        (lambda: Game("x*u", minimise="z"), NamingError, "f has no z, which minimises; f has u, x"),
        (lambda: Game("x*u", 3), NamingError, 'a player has names, as in minimise="x y", got 3'),  # pyright: ignore
        (lambda: Game("x*u", [1, 2]), NamingError, "a player has names, as in"),  # pyright: ignore
        (lambda: Game("2pp"), NamingError, "and one that maximises; f has pp"),
        (lambda: Game(max), NamingError, "or a function of the players' numbers; got <built-in func"),
        (lambda: Game(int), NamingError, "a game is a formula, as in"),
        (lambda: Game(lambda p, q: sympy.I * p * q), DomainError, "f must be a real number wherever"),
        (lambda: Game(sympy.Symbol("p") * sympy.Symbol("q") * sympy.I), DomainError, "and it has I in it"),
        (lambda: Game(lambda p, q: 3), DomainError, "f has no gradient: it is 3 everywhere"),
        (lambda: Game(lambda p, q: q), DomainError, "no gradient for the player that minimises"),
        (lambda: Game(lambda p, q: len(p + q)), TraceError, "takes neither symbols nor torch numbers"),
        (lambda: Game("p*"), TextError, "something is missing at the end"),
        (lambda: Game(7), NamingError, "or a function of the players' numbers; got 7"),
        (lambda: Game("p*q").orbit((1, 1), 0), DomainError, "a step must be above 0, got 0: nobody"),
        (lambda: Game("p*q").orbit((1, 1), (1, -1)), DomainError, "got -1: the players would change sides"),
        (lambda: Game("p*q").orbit((1, 1), (1, 1, 1)), DomainError, "step is one number or two"),
        (lambda: Game("p*q").orbit((1, 1), float("nan")), DomainError, "step: nan is not a finite number"),
        (lambda: Game("p*q").orbit((1,), 1), DomainError, "start must be 2 numbers, for p, q; got 1"),
        (lambda: Game("p*q").orbit("11", 1), DomainError, "start must be 2 numbers, for p, q; got '11'"),
        (lambda: Game("p*q").orbit({"p": 1, "r": 1}, 1), NamingError, "for p, q; got some for p, r"),
        (lambda: Game("p*q").orbit((1, 1), 1, -1), DomainError, "an orbit has 0 to 100,000 steps, got -1"),
        (lambda: Game("p*q").orbit((1, 1), 1, 2.5), DomainError, "100,000 steps, got 2.5"),  # pyright: ignore
        (lambda: Game("p*q").orbit((1, 1), 1, "6"), DomainError, "100,000 steps, got '6'"),  # pyright: ignore
        (lambda: Game("p*q").orbit((1, 1), 1, None), DomainError, "100,000 steps, got None"),  # pyright: ignore
        (lambda: Game("p*q").orbit((1, 1), ZERO), DomainError, "sqrt(2) - sqrt(3): nobody would move"),
        (lambda: Game("p*q").orbit((1, 1), "sin(1)^2 + cos(1)^2 - 1"), DomainError, "nobody would move"),
        (lambda: Game("p*q").orbit((1, 1), "-1e-400"), DomainError, "the players would change sides"),
        (lambda: Game("p*q").analyse(at=(1, 0)), DomainError, "q = 0 is no equilibrium: the gradient by q"),
        (lambda: Game("p*h").analyse(), NamingError, "h is the step in an analysis"),
        (lambda: Game("p + q").analyse(), DomainError, "p + q has no equilibrium: the gradient is 0 nowhere"),
        (lambda: Game("p*q").analyse().steps_of_period(1), DomainError, "a period is a whole number"),
        (lambda: Game("p*q").analyse().at(0), DomainError, "a step must be above 0, got 0"),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_steps() -> None:
    assert step_pair("1/3") == (sympy.Rational(1, 3),) * 2
    assert step_pair([1, 0.1]) == (1, sympy.Rational(1, 10))


def test_names_are_loaded_when_used() -> None:
    assert set(dir(lt.study.games)) >= {"Game", "Orbit", "alternating"}
    with pytest.raises(AttributeError, match=r"lt\.study\.games has no 'Gmae'; it has Game"):
        _ = lt.study.games.Gmae  # pyright: ignore
