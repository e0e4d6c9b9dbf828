"""Equilibria: solved, complete, and classified as Hessians and small moves in floats say."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from lattend.study.games.equilibria import search
from lattend.study.games.game import Game


def kinds(text: str) -> list[tuple[tuple[Any, ...], str]]:
    return [(one.point, one.kind) for one in Game(text).equilibria()]


def test_the_only_equilibrium_of_p_times_q() -> None:
    result = Game("p*q").equilibria()
    assert result.complete and not result.curve
    assert [(one.point, one.kind) for one in result] == [((0, 0), "Nash")]
    assert str(result).splitlines()[1] == "one equilibrium, and no other"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p^2 - q^2 + 4p*q", [((0, 0), "strict Nash")]),
        ("q^2 - p^2", [((0, 0), "none")]),
        ("2p*q - p^2/2 - q^2", [((0, 0), "minimax")]),  # max over q: q = p, then p²/2
        ("p^2 + q^2/2 - 2p*q", [((0, 0), "maximin")]),  # min over p: p = q, then -q²/2
        ("p^4 - q^4", [((0, 0), "Nash")]),  # decided by fourth derivatives
        ("p^3 - q^2", [((0, 0), "none")]),  # p gains by going left
        ("p^3 + q", []),
        ("log(sigmoid(p*q))", [((0, 0), "Nash")]),  # the Dirac-GAN, through its flat lines p = 0 and q = 0
    ],
)
def test_kinds(text: str, expected: list[tuple[Any, str]]) -> None:
    assert kinds(text) == expected


def test_several_in_surds() -> None:
    result = Game("p^4/8 - p^2 + p*q - q^2/2").equilibria()  # q = p, then p³/2 = p
    root = sympy.sqrt(2)
    assert [one.point for one in result] == [(-root, -root), (0, 0), (root, root)]
    assert [one.kind for one in result] == ["strict Nash", "none", "strict Nash"]
    surds = Game("p^3 - 3p + p*q - q^2").equilibria()
    for one in surds:
        p, q = one.point
        assert sympy.simplify(3 * p**2 - 3 + q) == 0 and sympy.simplify(p - 2 * q) == 0
    assert [one.kind for one in surds] == ["none", "strict Nash"]


@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(-2, 2), min_size=6, max_size=6))
def test_all_are_found(c: list[int]) -> None:
    """Whatever Newton's method finds from 324 starts is among the exact ones, which all have gradient 0."""
    game = Game(f"p^3 - q^3 + {c[0]}p^2 + {c[1]}p*q + {c[2]}q^2 + {c[3]}p + {c[4]}q + {c[5]}p*q^2")
    exact = game.equilibria()
    assert exact.complete or exact.curve
    for one in exact:
        assert np.abs(game.gradient([repr(x) for x in one.floats])).max() < 1e-6
        _check_kind(game, one.floats, one.kind)
    for point in search(game)[0] if exact.complete else []:
        near = [np.abs(np.subtract(one.floats, [float(x) for x in point])).max() for one in exact]
        assert min(near) < 1e-5


def _check_kind(game: Game, point: tuple[float, ...], kind: str) -> None:
    """A player said to hold loses by small moves, one that gains finds one that pays."""
    far = 1e-3
    value = game.value(point)
    p_gain = min(game.value((point[0] + d, point[1])) for d in (-far, far)) - value
    q_gain = value - max(game.value((point[0], point[1] + d)) for d in (-far, far))
    if kind in ("strict Nash", "Nash"):
        assert p_gain >= -1e-12 and q_gain >= -1e-12
    elif kind == "none":
        assert min(p_gain, q_gain) < 0


def test_lines_and_curves() -> None:
    line = Game("(p - q)^2").equilibria()
    assert line.curve == ("p - q",) and len(line) == 1
    curve = Game("p^2*q^2").equilibria()
    assert not curve.complete and curve.curve == ("p^2*q", "p*q^2") and len(curve) == 0
    assert "stationary points wherever p^2*q = 0 and p*q^2 = 0" in str(curve)  # on q = 0, q gains by moving


@pytest.mark.parametrize(
    ("f", "summary"),
    [
        ("(p - q)^2", "stationary points wherever p - q = 0, none of them an equilibrium"),  # q runs away
        ("(x + y)^2 - u^2", "equilibria wherever x + y = 0 and u = 0"),
    ],
)
def test_what_fills_a_line_is_an_equilibrium_only_where_nobody_gains(f: str, summary: str) -> None:
    names = "x y" if "y" in f else "p"
    assert Game(f, minimise=names).equilibria().summary() == summary


def test_searched_where_algebra_stops() -> None:
    result = Game("sin(p)*q + p*cos(q)").equilibria()
    assert not result.complete and "found by Newton's method from 324 starts" in result.note
    for one in result:
        assert not one.exact and np.abs(Game("sin(p)*q + p*cos(q)").gradient(one.floats)).max() < 1e-6
    many = Game("a^5 + b^5 + c^5 - d^5 + a*b*c*d", minimise="a b").equilibria()
    assert "are too many to solve exactly: 16 in 4 is the limit" in many.note


def test_several_have_to_be_told_apart() -> None:
    with pytest.raises(Exception, match="has several equilibria: p = -1, q = -1; p = 1, q = 1; say which"):
        Game("p^4/4 - p^2 + p*q - q^2/2").analyse()


def test_three_numbers() -> None:
    """A game whose equilibria are the corners of a box: all eight, signs decide."""
    game = Game("x^3/3 - x + y^3/3 - y - u^3/3 + u", minimise="x y")
    result = {one.point: one.kind for one in game.equilibria()}
    assert set(result) == set(itertools.product((-1, 1), repeat=3))
    assert [point for point, kind in result.items() if kind == "strict Nash"] == [(1, 1, 1)]


def test_kinds_known_by_decimals() -> None:
    """The minimax and maximin points of quadratics, moved to irrational places, and by autograd."""
    import torch

    moved = Game("2*(exp(p)-2)*q - (exp(p)-2)^2/2 - q^2").equilibria()
    assert [(one.exact, one.kind) for one in moved] == [(False, "minimax")]
    assert moved[0].floats == pytest.approx((np.log(2), 0))
    turned = Game("(exp(p)-2)^2 + q^2/2 - 2*(exp(p)-2)*q").equilibria()
    assert [one.kind for one in turned] == ["maximin"]
    by_torch = Game(lambda p, q: 2 * p * q - p**2 / 2 - q**2 + 0 * torch.sin(p)).equilibria()
    assert [one.kind for one in by_torch] == ["minimax"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-2, 2), min_size=6, max_size=6))
def test_minimax_against_schur_complements(c: list[int]) -> None:
    """Two numbers against one: what a player gets against best answers, from its definition in floats."""
    game = Game(f"x*q + {c[0]}/2*x^2 + {c[1]}x*y + {c[2]}/2*y^2 + {c[3]}y*q + {c[4]}/2*q^2 + y*q", "x y", "q")
    A = np.array([[c[0], c[1]], [c[1], c[2]]], dtype=float)
    B, C = np.array([[1.0], [c[3] + 1]]), float(c[4])
    kind = next(one.kind for one in game.equilibria())
    own = np.linalg.eigvalsh(A).min()
    minimax = C < 0 and np.linalg.eigvalsh(A - B @ B.T / C).min() > 1e-9
    maximin = own > 1e-9 and C - (B.T @ np.linalg.inv(A) @ B)[0, 0] < -1e-9
    nash = own > -1e-9 and C <= 0
    assert kind == ("strict Nash" if own > 1e-9 and C < 0 else "Nash" if nash else kind)
    if not nash:
        assert kind == ("minimax" if minimax else "maximin" if maximin else "none")


def test_who_gains() -> None:
    (one,) = Game("q*u - x^2 - y^2", minimise="x y").equilibria()
    assert str(one) == "not an equilibrium: x, y, q, u gain by moving"
    assert Game("x*u - y^2 + 0*x", minimise="x y").equilibria()[0].reason == "x, y gain by moving"


def test_formulas_that_are_not_simplified_for_minutes() -> None:
    (one,) = Game("p^q*q^p").equilibria()
    assert one.floats == pytest.approx((np.exp(-1), np.exp(-1)))
    assert [one.point for one in Game("(p^2 + q^2 + 1)^400").equilibria()] == [(0, 0)]
