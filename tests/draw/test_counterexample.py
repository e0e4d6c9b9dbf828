"""The pairs at a counterexample against the mask, and where none are drawn."""

from __future__ import annotations

import numpy as np
import pytest

import lattend as lt
from lattend.counts.verdict import Counterexample
from lattend.draw.grid.rules import CounterexamplePairs, counterexample_pairs


def pairs_of(rule: lt.Rule, claim: str, **how: object) -> tuple[Counterexample, CounterexamplePairs]:
    example = rule.count(**how).claim(claim).first_counterexample
    assert example is not None
    result = counterexample_pairs(rule, example, first=rule.count(**how).first)
    assert result is not None
    return example, result


def test_the_pairs_are_as_many_as_the_count_there() -> None:
    rule = lt.rules.strided()
    example, result = pairs_of(rule, "n*t + 3*n")
    assert result.numbers == example.values
    assert result.mask.sum() == example.exact
    assert (result.row, result.column) == (None, None)


@pytest.mark.parametrize("first", [0, 1])
def test_the_row_of_a_query_and_the_column_of_a_key(first: int) -> None:
    rule = lt.rules.causal()
    example, result = pairs_of(rule, "n - 7", per="query", first=first)
    assert result.row == example.values["q"] - first
    assert result.mask[result.row].sum() == example.exact
    example, result = pairs_of(rule, "n - 7", per="key", first=first)
    assert result.column == example.values["k"] - first
    assert result.mask[:, result.column].sum() == example.exact


def test_the_pixels_of_an_image_follow_each_other() -> None:
    rule = lt.rules.neighbourhood(1)
    example = Counterexample({"rows": 2, "cols": 3}, None, 0)
    result = counterexample_pairs(rule, example)
    assert result is not None
    assert np.array_equal(result.mask, rule.mask(rows=2, cols=3).reshape(6, 6))


def test_no_positions_are_an_empty_grid() -> None:
    result = counterexample_pairs(lt.rules.causal(), Counterexample({"n": 0}, None, 0))
    assert result is not None and result.mask.shape == (0, 0)


def test_long_sides_heads_and_open_sizes_are_not_drawn() -> None:
    causal = lt.rules.causal()
    assert counterexample_pairs(causal, Counterexample({"n": 33}, None, 0)) is None
    assert counterexample_pairs(causal, Counterexample({"n": 33}, None, 0), longest=33) is not None
    assert counterexample_pairs(causal, Counterexample({}, None, 0)) is None
    heads = lt.rule("k <= q and q - k <= head")
    assert counterexample_pairs(heads, Counterexample({"n": 2, "heads": 2}, None, 0)) is None


def test_the_counterexample_of_a_chain_is_that_of_its_first_wrong_link() -> None:
    verdict = lt.rules.causal().count().claim("N = n(n + 1)/2 = n^2")
    assert verdict.counterexample is None
    assert verdict.first_counterexample == verdict.links[1].counterexample is not None
