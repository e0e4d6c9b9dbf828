"""What the page says is what the library says."""

from __future__ import annotations

import json

import pytest

import lattend as lt
from lattend.web.worker import reply


@pytest.mark.parametrize("text", ["causal", "strided", "windowed", "k <= q or k < p"])
def test_the_count_is_the_librarys(text: str) -> None:
    status, _, body = reply("count", "", json.dumps({"rule": text}).encode())
    assert status == 200
    assert json.loads(body)["formula"]["text"] == str(lt.rule(text).count())


def test_a_mistake_in_a_text_is_pointed_at() -> None:
    status, _, body = reply("count", "", json.dumps({"rule": "k <= q orr k < p"}).encode())
    problem = json.loads(body)
    assert status == 422
    assert (problem["field"], problem["start"], problem["end"]) == ("rule", 7, 10)


@pytest.mark.parametrize(
    ("typed", "fixed"), [("j =< i && i - j < 8", "k <= q and q - k < 8"), ("casual", "causal")]
)
def test_a_mistake_comes_with_texts_that_are_right(typed: str, fixed: str) -> None:
    status, _, body = reply("read", "", json.dumps({"rule": typed}).encode())
    problem = json.loads(body)
    assert (status, problem["fixes"][0]) == (422, {"label": fixed, "text": fixed})
    assert not problem["message"].startswith("rule ")  # the page shows the text itself


def test_a_long_text_is_offered_with_the_part_that_changes() -> None:
    text = " and ".join(["k <= q"] * 30) + " && q - k <= t"
    _, _, body = reply("read", "", json.dumps({"rule": text}).encode())
    (fix,) = json.loads(body)["fixes"]
    assert fix["text"] == text.replace("&&", "and")
    assert len(fix["label"]) < 80
    assert "and q - k <= t" in fix["label"]
