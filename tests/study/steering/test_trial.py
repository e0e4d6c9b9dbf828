"""A given query tried: its weights in 60 digits, how far they are from a wish, and what is said of it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from steering_oracle import apart, softmax

import lattend as lt
from lattend.errors import DomainError, TensorError


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 3), st.sampled_from([1, -0.5, "sqrt"]))
def test_weights_and_distances(seed: int, many: int, wide: int, scale: float | str) -> None:
    random = np.random.default_rng(seed)
    keys, query = random.integers(-3, 4, (many, wide)), random.integers(-3, 4, wide)
    wanted = random.dirichlet(np.ones(many))
    values = random.normal(size=(many, 2))
    result = lt.study.try_query(keys, query, wanted, values, scale)
    factor = wide**-0.5 if scale == "sqrt" else float(scale)
    right = softmax(keys, query, factor)
    reached = np.array([float(weight) for weight in right])
    assert result.weights == pytest.approx(reached, rel=1e-12)
    assert result.error == pytest.approx(apart(right, wanted), abs=1e-12)
    assert result.max_error == pytest.approx(np.abs(reached - wanted).max(), abs=1e-12)
    assert result.divergence == pytest.approx(float(wanted @ np.log(wanted / reached)), abs=1e-9)
    assert result.output == pytest.approx(reached @ values, abs=1e-12)
    leaders = [
        at
        for at in range(many)
        if keys[at] @ query * np.sign(factor) == (keys @ query * np.sign(factor)).max()
    ]
    assert result.leaders == tuple(leaders)
    longer = np.array([float(weight) for weight in softmax(keys, 1000 * query, factor)])
    assert longer == pytest.approx(
        [len(leaders) ** -1 if at in leaders else 0 for at in range(many)], abs=1e-9
    )


def test_parallel_to_the_wanted_key_does_not_suffice() -> None:
    result = lt.study.try_query([[1, 0], [2, 0]], [3, 0], [1, 0])
    assert result.weights == pytest.approx([1 / (1 + math.e**3), math.e**3 / (1 + math.e**3)])
    assert (result.parallel, result.leaders) == ((0, 1), (1,))
    assert result.how == (
        "The query is parallel to key 0, the wanted one, but that does not suffice: its logit is 3, and "
        "key 1 has 6, as logits grow with the length of a key along the query. Made longer, this query gives "
        "all to key 1 in the limit."
    )
    assert result.best is not None and result.best.query == pytest.approx([-6.906755, 0], abs=1e-6)
    assert dict(result.draw().facts)["better"] == "(−6.90675, 0) has error 0.001, reached in the limit"


def test_parallel_to_one_of_orthonormal_keys_suffices_in_the_limit() -> None:
    result = lt.study.try_query(np.eye(4), [0, 5, 0, 0], [0, 1, 0, 0])
    assert result.error == pytest.approx(3 / (math.e**5 + 3))
    assert result.how == (
        "The query is parallel to key 1, the wanted one, and no key has a greater logit. "
        "Made longer, this query gives all to key 1 in the limit."
    )


def test_without_a_wish() -> None:
    result = lt.study.try_query([[1, 0], [0, 1], [1, 1]], [3, 0], values=[[1.0], [2.0], [3.0]])
    assert (result.wanted, result.error, result.divergence, result.best) == (None, None, None, None)
    assert result.how == "Made longer, this query gives equal shares of all to keys 0, 2 in the limit."
    facts = dict(result.draw().facts)
    assert set(facts) == {"query", "parallel", "output"}
    assert [chart.title for chart in result.draw().charts] == ["Keys", "What keys get"]
    assert result.draw().table[0] == ("key", "logit", "weight")


def test_a_query_of_zeros_and_one_key() -> None:
    result = lt.study.try_query([[1, 2], [3, 4]], [0, 0], [0.5, 0.5])
    assert result.how == "All logits are equal: every key gets the same, however long the query is."
    assert (result.parallel, result.error) == ((), 0)
    assert "better" not in dict(result.draw().facts)
    assert lt.study.try_query([[2]], [1], [1]).weights == [1]


def test_tensors_and_plain_data() -> None:
    result = lt.study.try_query(torch.eye(2), torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    assert result.weights == pytest.approx([0.731059, 0.268941], abs=1e-6)
    data = json.loads(json.dumps(result.json()))
    assert data["max_error"] == pytest.approx(0.731059, abs=1e-6) and data["best"]["reach"] == "in the limit"


def test_bad_input() -> None:
    with pytest.raises(TensorError, match=r"query has shape \(1,\), and keys have 2 numbers; give as many"):
        lt.study.try_query([[1, 0], [2, 0]], [3])
    with pytest.raises(TensorError, match="a query is tried on one head"):
        lt.study.try_query(np.zeros((2, 3, 4)), np.zeros(4))
    with pytest.raises(TensorError, match="weights has shape"):
        lt.study.try_query([[1, 0], [2, 0]], [3, 0], [1])


@pytest.mark.parametrize("wanted", [[1, 0, 0], [0.5, 0.5, 0], None])
def test_the_mark_of_the_mixture_hides_no_key(wanted: list[float] | None) -> None:
    keys = [[0, 0], [2, 0], [1, 0]]
    chart = lt.study.try_query(keys, [1, 1], wanted).draw().charts[0]
    several = wanted is not None and wanted[1] > 0
    assert [dots.name for dots in chart.dots if dots.shape == "cross"] == (
        ["wanted mixture"] if several else []
    )
    drawn = [dots.shape for dots in chart.dots]
    assert "cross" not in drawn[1:]  # below the keys: the last drawn is seen
    shown = lt.study.try_query(keys, [1, 1], wanted).draw().terminal(width=120)
    assert {
        None: "0, 1, 2: keys",
        1: "0: wanted key   1, 2: other keys",
        0.5: "0, 1: wanted keys   2: other key",
    }[wanted and wanted[0]] in shown
    assert not shown.endswith("\n")


def test_logits_beyond_floats_are_refused() -> None:
    with pytest.raises(DomainError, match="beyond floats"):
        lt.study.try_query([["1e300", 2], ["-1e300", 1]], ["1e300", 1])
