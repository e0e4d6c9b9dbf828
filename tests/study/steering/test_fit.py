"""Best fits against scipy's minimiser, and against the condition that they satisfy."""

from __future__ import annotations

import numpy as np
import pytest
import steering_oracle as oracle

from lattend.study.steering.linear import best_fit, entropy, shortest, softmax


@pytest.mark.parametrize("seed", range(8))
def test_the_least_divergence(seed: int) -> None:
    source = np.random.default_rng(seed)
    keys, wanted = source.normal(size=(9, 3)), source.dirichlet(np.full(9, 0.5))
    result = softmax(keys @ best_fit(keys, wanted, 3))
    np.testing.assert_allclose(result @ keys, wanted @ keys, atol=1e-12)
    nats = float((wanted * np.log(wanted / result)).sum())
    assert nats == pytest.approx(oracle.least_nats(keys, wanted), abs=1e-8)
    assert nats == pytest.approx(entropy(result) - entropy(wanted), abs=1e-10)


def test_keys_on_a_line_in_space_get_the_shortest_query() -> None:
    keys = np.array([[along, 2 * along, 2 * along] for along in (0.0, 1.0, 2.0, 4.0)]) + 5
    result = best_fit(keys, np.array([0.4, 0.1, 0.1, 0.4]), 1)
    np.testing.assert_allclose(result, result @ [1, 2, 2] / 9 * np.array([1, 2, 2]), atol=1e-12)


def test_a_mean_close_to_a_corner() -> None:
    keys = np.array([[-1.0], [0.0], [1.0]])
    result = softmax(keys[:, 0] * best_fit(keys, np.array([0.0, 1e-12, 1 - 1e-12]), 1)[0])
    assert result @ keys[:, 0] == pytest.approx(1 - 1e-12, abs=1e-15)


def test_shortest() -> None:
    np.testing.assert_allclose(shortest(np.eye(2), np.array([3.0, 1.0]), 1), [1, -1])
