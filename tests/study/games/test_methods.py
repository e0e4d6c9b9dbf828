"""Each method against its textbook equations in floats, and its refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from games_oracle import matrix, method_map
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import DomainError, NamingError
from lattend.study.games.fields import step_rows
from lattend.study.games.methods import METHODS, method_of, options_of

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("simultaneous", {}),
    ("alternating", {"first": "q"}),
    ("alternating", {"first": "p"}),
    ("optimistic", {}),
    ("extragradient", {}),
    *(("momentum", {"mass": -0.25, **first}) for first in ({}, {"first": "q"}, {"first": "p"})),
    *(("consensus", {"weight": 0.5, **first}) for first in ({}, {"first": "q"}, {"first": "p"})),
    *(("gradient_penalty", {"weight": 0.5, **first}) for first in ({}, {"first": "q"}, {"first": "p"})),
]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@settings(max_examples=8, deadline=None)
@given(st.integers(1, 2), st.integers(1, 2), st.data())
def test_step_on_a_quadratic_game(
    name: str, options: dict[str, Any], first: int, second: int, data: st.DataObject
) -> None:
    n = first + second
    entries = data.draw(st.lists(st.integers(-3, 3), min_size=n * n, max_size=n * n))
    half = np.array(entries, dtype=float).reshape(n, n)
    H = half + half.T
    result = step_rows(method_of(name, **options), H.tolist(), first, (0.5, 0.25), float)
    expected = method_map(name, H, first, 0.5, 0.25, **options)
    assert np.allclose(np.array(result, dtype=float), matrix(expected, len(result)))


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_fractions_floats_and_tensors_agree(name: str, options: dict[str, Any]) -> None:
    """One rule for all numbers, on a game that is not quadratic: the penalties need its Hessian."""
    torch = pytest.importorskip("torch")
    f = "p^3/3 + p*q^2 - q^3/6 + 2p*q"
    game = lt.study.games.Game(f)
    exact = game.orbit((0.5, -0.25), 0.125, 2, name, **options)
    floats = game.orbit((0.5, -0.25), 0.125, 2, name, floats=True, **options)
    tensors = lt.study.games.Game(lambda p, q: torch.pow(p, 3) / 3 + p * q**2 - q**3 / 6 + 2 * p * q).orbit(
        (0.5, -0.25), 0.125, 2, name, **options
    )
    assert exact.exact and not floats.exact and not tensors.exact
    assert np.allclose(exact.floats, floats.floats, atol=1e-13)
    assert np.allclose(exact.floats, tensors.floats, atol=1e-13)


def test_penalties_are_gradients() -> None:
    """Against central differences of ½‖v‖² and ½‖∂f/∂p‖²."""
    field = lt.study.games.Game("p^3*q - p*q^2 + q^4/4").field()
    point, eps = np.array([0.3, -0.7]), 1e-6

    def lengths(x: Any) -> Any:
        g = field.all(x)
        return g @ g / 2, g[0] ** 2 / 2

    difference = [
        [(a - b) / (2 * eps) for a, b in zip(lengths(point + e), lengths(point - e), strict=True)]
        for e in np.eye(2) * eps
    ]
    both = np.concatenate(field.consensus(point[:1], point[1:]))
    assert np.allclose(both, [row[0] for row in difference], atol=1e-8)
    assert np.allclose(field.penalty(point[:1], point[1:]), [difference[1][1]], atol=1e-8)


def test_names() -> None:
    assert [str(method_of(name)) for name in METHODS] == [
        "simultaneous",
        "alternating, q first",
        "optimistic",
        "extragradient",
        "momentum, mass -1/2",
        "consensus, weight 1",
        "gradient penalty, weight 1",
    ]
    assert method_of("gradient penalty", weight=0.1) == lt.study.games.gradient_penalty(Fraction(1, 10))
    assert options_of("gradient-penalty") == ["weight", "first"] and options_of("optimistic") == []


def test_a_mistake_inside_a_method_is_not_taken_for_a_wrong_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(first: str = "q") -> Any:
        raise TypeError("inside")

    monkeypatch.setitem(METHODS, "alternating", broken)
    with pytest.raises(TypeError, match="inside"):
        method_of("alternating", first="p")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: method_of("adam"), NamingError, 'there is no method "adam"; there are simultaneous, alt'),
        (lambda: method_of("optimistic", first="q"), NamingError, "optimistic takes no options, got first"),
        (lambda: method_of("momentum", weight=1), NamingError, "momentum takes mass and first, got weight"),
        (
            lambda: lt.study.games.Game("p*q").orbit((1, 1), method=lt.study.games.optimistic(), first="p"),
            NamingError,
            "optimistic is made already, so first comes too late: give it where that is made",
        ),
        (lambda: method_of(3), NamingError, "a method is one of simultaneous, "),  # pyright: ignore
        (
            lambda: lt.study.games.alternating("r"),
            NamingError,
            'first is "q", the maximiser, or "p", the minim',
        ),
        (lambda: lt.study.games.momentum(1), DomainError, "mass must lie between -1 and 1, got 1"),
        (
            lambda: lt.study.games.momentum("sqrt(2)/2"),
            DomainError,
            "mass must be a whole number, a fraction or",
        ),
        (
            lambda: lt.study.games.consensus(0),
            DomainError,
            "weight must be above 0, got 0; without it this is",
        ),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
