"""Which key wins in which direction, against the greatest logit of queries."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lattend.errors import DomainError, TensorError
from lattend.study.steering.numbers import shares
from lattend.study.steering.pictures import WinningCone, hull, winning_cones
from lattend.study.steering.steer import Steered, steer
from lattend.study.steering.trial import try_query

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
