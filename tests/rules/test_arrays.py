"""Arrays written before a rule."""

from __future__ import annotations

import numpy as np
import pytest

import lattend as lt
from lattend.errors import TextError
from lattend.rules.language.call import split_arrays

MASK = "def mask_mod(b, h, q_idx, kv_idx):\n    return ids[q_idx] == ids[kv_idx]"


@pytest.mark.parametrize(
    "text",
    [
        "ids = [0, 0, 1, 1, 1]; ids[q] == ids[k]",
        "ids = [0 0 1 1 1]\nids[q] == ids[k]",
        f"ids = [0, 0, 1, 1, 1,]\n{MASK}",
        f"other = [7]; ids = [0, 0, 1, 1, 1]\n{MASK}",
        "doc = [0, 0, 1, 1, 1]; documents",
    ],
)
def test_a_rule_holds_its_array(text: str) -> None:
    rule = lt.rule(text)
    ids = np.array([0, 0, 1, 1, 1])
    assert rule.values == {"n": 5}
    assert rule.source == text
    assert (rule.mask() == (ids[:, None] == ids)).all()


def test_places_are_those_of_the_whole_text() -> None:
    with pytest.raises(TextError, match="has nothing after it") as caught:
        lt.rule("ids = [0, 1]; ids[q] ==")
    error = caught.value
    assert error.text[error.start : error.end] == "=="


def test_the_length_is_open_where_an_entry_is_for_several_positions() -> None:
    assert lt.rule("far = [0, 1]; k <= q or far[q // 4] == 1").free == ["n"]
    assert lt.rule("unused = [1, 2]; k <= q").count(n=3) == 6


def test_an_array_that_is_missing_may_be_written_before_the_rule() -> None:
    with pytest.raises(TextError, match=r"looks up ids\[...\], but no array of that name is given") as caught:
        lt.rule("ids[q] == ids[k]")
    (suggestion,) = caught.value.suggestions
    assert lt.rule(suggestion.applied("ids[q] == ids[k]")).mask().sum() == 5 * 5 + 3 * 3 + 4 * 4


def test_what_is_no_array_is_left_alone() -> None:
    for text in ("k <= q", "x == [1]; k <= q", "x = []; k <= q"):
        assert split_arrays(text) == ({}, text)
