"""Pictures of steered queries, and cones of directions in which a key wins."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import DomainError, TensorError
from lattend.study.steering.numbers import shares
from lattend.study.steering.pictures import WinningCone, figure_of_query, hull, winning_cones
from lattend.study.steering.steer import Steered, steer
from lattend.study.steering.trial import try_query

INNER = """\
Attention over 3 keys, steered to 1 of them
No query gives these weights: no corner of the hull of the keys has key 1 and no other. This one is
  nearest by KL: KL(wanted ‖ attention) is least.

query     (0)
reached   never
because   key 1 = 1/2·key 0 + 1/2·key 2, so that every query gives both sides the same logit
so        keys 0, 2 together cannot fade while the wanted keys keep their weights
at most   0.333333 for key 1, whatever the query
least KL  1.09861 nats from the wanted weights, for every query
error     0.666667, half the sum of the differences of weights

key  wanted  logit    weight
  0       0      0  0.333333
  1       1      0  0.333333
  2       0      0  0.333333"""
SQUARE = [[0, 0], [2, 0], [2, 2], [0, 2], [1, 1]]


def steered(*given: Any, **options: Any) -> Steered:
    result = lt.study.steer(*given, **options)
    assert isinstance(result, Steered)
    return result


def test_a_certificate_in_words() -> None:
    assert str(steered([[0], [1], [2]], [0, 1, 0])) == INNER
    said = dict(steered([[0], [1], [2]], ["1/4", "1/2", "1/4"]).draw().facts)
    assert said["so"] == "attention has a1^2 = a0·a2; the wanted weights have 0.25 and 0.0625"
    long = steered([["0.123456789"], ["0.987654321"], ["0.5"]], [0, 0, 1])
    said = dict(long.draw().facts)
    assert said["because"].startswith("key 2 = 0.564286·key 0 + 0.435714·key 1, so that")
    keys = np.random.default_rng(0).normal(size=(30, 2))
    said = dict(steered(keys, np.full(30, 1 / 30) + np.r_[0.01, -0.01, [0] * 28]).draw().facts)
    assert said["so"].startswith(
        "with y the factors above, those on the left negative, attention has Σ yᵢ log aᵢ = 0, and the wanted"
    )
    assert "more)" in said["because"]


@pytest.mark.parametrize(
    ("keys", "wanted", "words"),
    [
        (np.eye(2), [1, 0], "The keys are orthonormal, and q = Σ βᵢkᵢ has logits βᵢ: β + log(s·wanted)"),
        ([[1, 0], [1, 1]], [1, 0], "The keys are linearly independent, so that every logit can be set: β"),
        (
            [[1], [2]],
            [1, 0],
            "affinely independent, so that every logit can be set up to a common constant: β + log(s",
        ),
        (np.eye(2), [0.5, 0.5], "logits βᵢ: here log(m·wanted), so that the weights are the wanted ones."),
        ([[0], [1], [2]], [1, 0, 0], "The convex hull of the wanted key is a face of the hull of all"),
        (SQUARE, [0.5, 0.5, 0, 0, 0], "The convex hull of the 2 wanted keys is a face"),
        ([[0], [1], [2]], ["1/3"] * 3, "lie in the span of the keys' columns and ones"),
        (
            SQUARE,
            [0.5, 0, 0.5, 0, 0],
            "no face (side, edge) of the hull of the keys has keys 0, 2 and no others. This one is nearest",
        ),
        ([[0], [0], [1]], [1, 0, 0], "has key 0 and no other. This one nears the nearest by KL as β grows: "),
    ],
)
def test_how(keys: Any, wanted: Any, words: str) -> None:
    assert words in steered(keys, wanted).how


def test_curves() -> None:
    weights, error = steered(SQUARE, [0.5, 0.5, 0, 0, 0], sharpness=6).draw().charts[1:]
    assert [line.name for line in weights.lines] == ["key 0", "key 1", "all others"] and not weights.log_y
    for at in range(65):
        assert sum(line.points[at][1] for line in weights.lines) == pytest.approx(1)
    bound, exact = ({at[0]: at[1] for at in line.points} for line in error.lines)
    assert all(exact[beta] <= bound[beta] for beta in bound) and error.log_y == 10
    lengths = steered([[0], [1], [2]], ["1/7", "2/7", "4/7"]).draw().charts
    assert min(height for _, height in lengths[1].lines[0].points) == pytest.approx(
        0, abs=1e-12
    )  # at length 1
    never = steered([[0], [1], [2]], ["1/7", "3/7", "3/7"])
    assert never.certificate is not None and "bound" not in dict(never.draw().facts)["error"]
    for result, here in (
        (never.draw().charts[1], 1.0),
        (steered([[0, 0], [1, 0], [2, 0], [0, 2]], [0.25, 0, 0.75, 0], sharpness=4).draw().charts[2], 4.0),
    ):
        nats, least = (line.points for line in result.lines)
        ((place, height),) = result.dots[0].points
        assert result.title == "KL(wanted ‖ attention)" and place == here
        assert min(y for _, y in nats) >= least[0][1] - 1e-12
        assert min(nats, key=lambda point: abs(point[0] - here))[1] == pytest.approx(height, rel=0.02)
    assert steered([[0], [1], [2]], [0, 1, 0]).draw().charts == ()  # the query is 0, however long


def test_the_map_of_keys() -> None:
    result = figure_of_query(steered(SQUARE, [0.5, 0.5, 0, 0, 0], sharpness=6))
    plane = result.charts[0]
    assert list(plane.lines[0].points) == [(0, 0), (2, 0), (2, 2), (0, 2), (0, 0)]
    (tail, tip), *_ = plane.arrows[0].pairs
    assert list(tail) == [1, 0] and list(tip) == pytest.approx([1, -0.7])  # away from all other keys
    assert figure_of_query(steered(np.eye(3), [1, 0, 0])).charts[0].title == "What keys get"


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_narrow(columns: int) -> None:
    keys = np.random.default_rng(0).normal(size=(40, 2))
    for result in (
        lt.study.steer(keys, np.full(40, 1 / 40), values=keys),
        lt.study.steer(SQUARE, [0.5, 0.5, 0, 0, 0], scale=0.5),
        lt.study.steer(np.eye(4), np.eye(4)),
    ):
        text = result.draw().terminal(width=columns)
        assert max(map(len, text.splitlines())) <= columns


def test_many_keys_and_heads_are_cut() -> None:
    result = steered(np.eye(100), [0.5, 0.5, *[0] * 98], values=np.eye(100))
    assert [row[0] for row in result.draw().table[1:]] == ["0", "1", "2", "3", "4", "95 more"]
    assert dict(result.draw().facts)["query"].endswith(", … 92 more)")
    assert dict(result.draw().facts)["apart"].endswith("the diameter of the values times the bound above")
    many = lt.study.steer(np.eye(20), np.eye(20))
    assert many.draw().table[-1][0] == "8 more"
    assert [line.name for line in many.draw().charts[0].lines] == [f"head {at}" for at in range(5)]
    assert lt.study.steer(np.eye(2), [[0.5, 0.5]]).draw().charts == ()


def test_weights_bend_where_another_key_becomes_the_greatest() -> None:
    """Along q = (½ log 2, −γ), γ found by halving for β = log(mean wanted weight / greatest other)."""
    result = steered(SQUARE, ["1/3", "2/3", 0, 0, 0], sharpness=6)
    keys = np.array(SQUARE, dtype=float)

    def weights(far: float) -> Any:
        raised = np.exp(keys @ (np.log(2) / 2, -far))
        return raised / raised.sum()

    def halved(beta: float) -> Any:
        low, high = -20.0, 20.0
        for _ in range(100):
            middle = weights((low + high) / 2)
            below = np.log(middle[:2].mean() / middle[2:].max()) < beta
            low, high = ((low + high) / 2, high) if below else (low, (low + high) / 2)
        return weights(low)

    line = result.draw().charts[1].lines[0].points
    assert np.log(1.5) == pytest.approx(result.ray.turns(np.linspace(0, 8, 9))[0])
    assert any(beta == pytest.approx(np.log(1.5), abs=1e-12) for beta, _ in line)
    assert [weight for _, weight in line] == pytest.approx([halved(beta)[1] for beta, _ in line])


SMALL = st.integers(-3, 3)
KEYS = st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=6)


def is_inside(cone: WinningCone, query: tuple[int, int]) -> bool:
    if cone.start is None or cone.end is None:
        return True
    from_start, to_end = (_cross(cone.start, query), _cross(query, cone.end))
    return from_start > 1e-9 and to_end > 1e-9


def _cross(a: tuple[float, float], b: tuple[float, float]) -> float:
    return a[0] * b[1] - a[1] * b[0]


@given(KEYS, st.tuples(SMALL, SMALL), st.sampled_from([1, -2, "sqrt"]))
def test_the_winner_is_the_key_with_the_greatest_logit(
    keys: list[tuple[int, int]], query: tuple[int, int], scale: float | str
) -> None:
    factor = 1 if scale == "sqrt" else float(scale)
    logits = [factor * (x * query[0] + y * query[1]) for x, y in keys]
    leaders = tuple(at for at, logit in enumerate(logits) if logit == max(logits))
    inside = [cone for cone in winning_cones(keys, scale) if is_inside(cone, query)]
    alone = len({keys[at] for at in leaders}) == 1
    assert [cone.keys for cone in inside] == ([leaders] if alone else [])


@given(KEYS)
def test_cones_fill_the_plane(keys: list[tuple[int, int]]) -> None:
    cones = winning_cones(keys)
    for cone, after in zip(cones, cones[1:] + cones[:1], strict=True):
        assert cone.end == after.start
    angles = [
        math.atan2(_cross(cone.start, cone.end), np.dot(cone.start, cone.end)) % math.tau
        for cone in cones
        if cone.start and cone.end
    ]
    assert not angles or sum(angles) == pytest.approx(math.tau)


def test_equal_keys_win_together_and_inner_ones_never() -> None:
    cones = winning_cones([[0, 0], [4, 0], [0, 4], [1, 1], [4, 0], [2, 2]])
    assert [cone.keys for cone in cones] == [(0,), (1, 4), (2,)]
    assert winning_cones([["1/3", 1], ["1/3", 1]]) == (WinningCone((0, 1), None, None),)
    with pytest.raises(TensorError, match="keys of two numbers"):
        winning_cones([[1, 2, 3]])


def test_hull_of_fractions() -> None:
    third = Fraction(1, 3)
    assert hull([(third, third), (2 * third, 2 * third), (1, 1), (0, 1)]) == [(0, 1), (third, third), (1, 1)]


def test_shares() -> None:
    assert shares(["1/2", 1, "0.5"]) == [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]
    assert shares(["sqrt(2)", "sqrt(2)"]) == [0.5, 0.5]
    with pytest.raises(DomainError, match="all 0"):
        shares([0, "0"])
    with pytest.raises(DomainError, match=r"weights\[1\] is -1; a weight is at least 0"):
        shares([1, -1])


def test_the_sides_of_a_certificate_meet() -> None:
    keys = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0], [1.0, 1.0]])
    result = steer(keys, [0, 0, 0, 0, 1])
    assert isinstance(result, Steered)
    assert result.certificate is not None
    assert result.certificate.meeting(keys).tolist() == [1.0, 1.0]


def test_where_a_longer_query_leads() -> None:
    assert try_query([[1, 0], [0, 1], [1, 0]], [1, 0]).limit.tolist() == [0.5, 0.0, 0.5]
