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
