"""Keys that nearly agree, of many sizes: error, bound, reach and certificate against 50 digits."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import steering_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.study.steering.linear import SMALL
from lattend.study.steering.steer import Steered

CLOSE = [
    [0.0019109469879813148, -0.0004222372114605083, -0.0014394510028688057],
    [-0.0014717478418754789, -0.0004989999693192639, 0.00011886479225826982],
    [0.001910946913783674, -0.00042223716833332157, -0.0014394510013200166],
]  # the first and the last differ by 2.5e-8 of the size of the keys


@st.composite
def keys_and_weights(draw: st.DrawFn) -> tuple[Any, Any]:
    """Keys of one size, some of them copies, midpoints or twins of others with a small difference."""
    m, d = draw(st.integers(2, 7)), draw(st.integers(1, 3))
    source = np.random.default_rng(draw(st.integers(0, 10**9)))
    keys = source.normal(size=(m, d))
    for _ in range(draw(st.integers(0, 3))):
        one, other, third = draw(st.tuples(*[st.integers(0, m - 1)] * 3))
        step = 10.0 ** draw(st.sampled_from([-16, -12, -10, -8, -7, -6, -4, -2])) * source.normal(size=d)
        keys[one] = (keys[other] + keys[third]) / 2 + step
    parts = np.array(draw(st.lists(st.sampled_from([0, 0, 1e-6, 0.1, 1, 2]), min_size=m, max_size=m)))
    parts[draw(st.integers(0, m - 1))] += 1
    size = 10.0 ** draw(st.sampled_from([-200, -8, -3, 0, 3, 8, 200]))
    return keys * size, parts / parts.sum()


def steered(keys: Any, wanted: Any, error: float) -> Steered | None:
    """None where the keys are refused as too nearly dependent."""
    try:
        result = lt.study.steer(keys, wanted, error=error)
    except lt.errors.DomainError as refused:
        assert "too nearly dependent for a query in floats" in str(refused)
        return None
    assert isinstance(result, Steered)
    return result


@settings(max_examples=300, deadline=None)
@given(keys_and_weights(), st.sampled_from([0.1, 1e-3, 1e-9]))
def test_what_is_said_is_so(case: tuple[Any, Any], most: float) -> None:
    keys, wanted = case
    result = steered(keys, wanted, most)
    if result is None:
        return
    reached = oracle.softmax(keys, result.query)
    true = oracle.apart(reached, result.wanted)
    assert result.error == pytest.approx(true, rel=1e-9, abs=1e-15)
    assert true <= result.bound * (1 + 1e-9) + 1e-15
    np.testing.assert_allclose(result.weights, np.array(reached, dtype=float), rtol=1e-9, atol=1e-15)
    if result.reach == "exactly":
        assert (result.wanted > 0).all() and true < 1e-5
    elif result.reach == "in the limit":
        assert result.ray.face.tolist() == (result.wanted > 0).tolist()
        leak = sum(weight for weight, want in zip(reached, result.wanted, strict=True) if want == 0)
        assert leak < most + 1e-4
        # A long query may tell wanted keys apart that were taken to be equal
        assert true < most + 1e-4 or "digits of these numbers are too few" in result.how
    else:
        check_certificate(keys / np.abs(keys).max(), np.abs(keys).max() * result.query, result)


def check_certificate(keys: Any, query: Any, result: Steered) -> None:
    """The relation and the mean keys agree within the share of the size of the keys that docs name."""
    why = result.certificate
    assert why is not None and why.within < 100 * SMALL
    y, used = why.relation.astype(float), result.wanted > 0
    size = max(1e-6, np.abs(keys - keys.mean(axis=0)).max())  # of keys whose greatest number is 1
    y = y / np.abs(y).max()
    with mpmath.workdps(50):
        sums = [mpmath.fdot(y.tolist(), column) for column in [*keys.T.tolist(), [1.0] * len(keys)]]
    assert max(abs(total) for total in sums[:-1]) <= 2 * size * why.within + 1e-14 and abs(sums[-1]) < 1e-12
    if (y[~used] != 0).any():
        assert (y[~used] >= -1e-12).all() and why.total == -math.inf
    else:
        assert abs(float(y[used] @ np.log(result.wanted[used]))) > SMALL
    missed = np.abs((why.weights - result.wanted) @ (keys - keys.mean(axis=0))).max()
    assert missed <= 10 * SMALL * 2 * size
    for length in (0, 0.3, 3, 30):
        tried = np.random.default_rng(0).normal(size=keys.shape[1]) * length
        assert nats(keys, tried, result.wanted) >= why.nats - 4 * missed * length * keys.shape[1] - 1e-9
    if result.ray.face.all():
        got = nats(keys, query, result.wanted)  # of a long query, with what its rounding costs
        assert why.nats - 1e-9 <= got <= why.nats + 1e-9 + 10 * missed * np.linalg.norm(query)


def nats(keys: Any, query: Any, wanted: Any) -> float:
    """KL(wanted ‖ softmax(Kq)) in 60 digits."""
    with mpmath.workdps(60):
        pairs = zip(oracle.softmax(keys, query), wanted.tolist(), strict=True)
        return float(mpmath.fsum(w * mpmath.log(w / a) for a, w in pairs if w > 0))


@settings(max_examples=60, deadline=None)
@given(keys_and_weights(), st.sampled_from([2.0**-40, 2.0**10, 2.0**60]))
def test_the_unit_of_the_keys_makes_no_difference(case: tuple[Any, Any], factor: float) -> None:
    keys, wanted = case
    one, other = steered(keys, wanted, 0.1), steered(factor * keys, wanted, 0.1)
    if one is None or other is None:
        assert one is other
        return
    assert one.reach == other.reach and one.error == other.error and one.bound == other.bound
    np.testing.assert_array_equal(one.query, factor * other.query)
    np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize("factor", [1, 1000])
def test_keys_within_the_share_are_taken_for_equal(factor: float) -> None:
    keys = np.array(CLOSE) * factor
    result = lt.study.steer(keys, [0, 0.12790942323935395, 0.872090576760646])
    assert isinstance(result, Steered) and result.certificate is not None
    assert result.error == pytest.approx(oracle.apart(oracle.softmax(keys, result.query), result.wanted))
    said = dict(result.draw().facts)["because"]
    assert said.startswith("key 2 = key 0, within 2e−8 of the size of the keys, so that every query that")


@pytest.mark.parametrize("apart", [1e-3, 1e-5, 2e-7])
def test_keys_beyond_the_share_are_told_apart(apart: float) -> None:
    """So long a query has few digits left, and the error says so."""
    keys = np.array([[1 / 3, 2 / 7], [-1 / 7, 1 / 9], [1 / 3, 2 / 7 + apart]])
    for wanted in ([0.25, 0.5, 0.25], [0.7, 0.2, 0.1]):
        result = lt.study.steer(keys, wanted)
        assert isinstance(result, Steered) and result.exact and result.error < 1e-8
        assert np.linalg.norm(result.query) > 0.1 / apart or wanted[0] == wanted[2]
    result = lt.study.steer(keys, [0, 0.2, 0.8], error=1e-3)
    assert isinstance(result, Steered) and result.reach == "in the limit"
    assert result.error == pytest.approx(1e-3, rel=1e-4)


def test_fractions_that_floats_cannot_tell_apart() -> None:
    two = lt.study.steer([["1/3"], ["1000000000000000000001/3000000000000000000000"]], ["1/4", "3/4"])
    assert isinstance(two, Steered) and two.exact and two.error == pytest.approx(0.25)
    assert two.how.endswith("with more of them the error would be at most 0.")
    assert two.weights.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("wanted", [[0, 1, 0, 0], ["1/4", "1/4", "1/4", "1/4"], ["1/2", 0, "1/2", 0]])
def test_fractions_of_a_lower_rank_in_floats(wanted: list[Any]) -> None:
    """The second number of the second key is lost beside the others."""
    keys = [[1, 1], [2, "2.00000000000000000000000001"], [3, 3], ["1/2", "1/2"]]
    try:
        result = lt.study.steer(keys, wanted)
    except lt.errors.DomainError as refused:
        assert str(refused).endswith("in floats; omit one of those that nearly agree")
        return
    assert isinstance(result, Steered)
    floats = [[1, 1], [2, 2], [3, 3], [0.5, 0.5]]
    assert result.error == pytest.approx(oracle.apart(oracle.softmax(floats, result.query), result.wanted))


def test_keys_that_agree_but_for_their_last_digit() -> None:
    result = lt.study.steer([[1 / 3], [1 / 3 + 1e-15]], [0.9, 0.1])
    assert isinstance(result, Steered) and result.reach == "never"
    assert result.weights.tolist() == [0.5, 0.5] and result.error == pytest.approx(0.4)


def test_the_largest_floats() -> None:
    keys = np.array([[1.7e308], [-1.7e308], [-1.6e308]])
    result = lt.study.steer(keys, [1, 0, 0], error=0.01)
    assert isinstance(result, Steered) and result.bound == pytest.approx(0.01)
    assert result.error == pytest.approx(oracle.apart(oracle.softmax(keys, result.query), result.wanted))
