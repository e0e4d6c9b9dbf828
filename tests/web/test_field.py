"""The receptive field on the page: the library's, and clear messages for what cannot be asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

import lattend as lt
from lattend.counts import Count
from lattend.web.views import formula
from lattend.web.worker import reply


def ask(panel: str, **question: Any) -> tuple[int, dict[str, Any]]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


@pytest.mark.parametrize(
    ("text", "numbers", "layers"),
    [
        ("k <= q and q - k <= t", {}, 2),
        ("sliding_window(window=4096)", {"n": 131072}, 32),
        ("dilated", {"t": 3, "step": 2}, 5),
        ("neighbourhood", {"r": 1}, 4),
        ("windowed", {"w": 4, "n": 9}, 3),
    ],
)
def test_it_is_the_librarys(text: str, numbers: dict[str, int], layers: int) -> None:
    status, found = ask("field", rule=text, numbers=numbers, layers=layers)
    assert status == 200
    rule = lt.rule(text).at(**numbers)
    seen = rule.receptive_field(layers)
    assert found["text"] == seen.text
    keys = seen.count(per="query")
    assert isinstance(keys, Count)
    assert found["keys"] == formula(keys).model_dump()
    assert [span["most"]["text"] for span in found["spans"]] == [
        formula(span.most).text for span in seen.reach().spans
    ]
    if found["until"] is not None:
        depth = rule.layers_to_reach_all()
        assert found["until"] == formula(depth.layers).model_dump()
        assert (found["sees"], found["all_reached"]) == (depth.seen(), depth.all_reached)


def test_how_many_layers_it_takes_is_said() -> None:
    found = ask("field", rule="strided", numbers={"n": 131072, "t": 4095}, layers=32)[1]
    assert (found["until"]["text"], found["sees"]) == ("33", "every position sees all before it")
    found = ask("field", rule="windowed", numbers={"n": 9, "w": 4}, layers=3)[1]
    assert (found["all_reached"], found["sees"]) == (False, "positions 0 and 4 never see each other")


def test_the_copied_python_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    found = ask("field", rule="strided", numbers={"n": 40, "t": 2}, layers=3)[1]
    exec(found["copies"]["python"], {})
    printed = capsys.readouterr().out
    assert found["text"] in printed
    assert printed.endswith("after 20 layers every position sees all before it\n")
    assert found["copies"]["command"] == "lattend reach strided --at n=40,t=2 --layers 3"


def test_the_map_has_the_numbers_of_the_grid() -> None:
    status, found = ask("first_layers", rule="k <= q and q - k <= t", numbers={"t": 5})
    assert (status, found["at"], found["rows"]) == (200, "n = 12, t = 5", list(range(12)))
    assert found["layers"][11] == [3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 0]
    image = ask("first_layers", rule="axial", numbers={"rows": 3, "cols": 4}, pixel=[0, 1])[1]
    assert image["pixel"] == [0, 1]
    assert image["layers"] == [[1, 0, 1, 1], [2, 1, 2, 2], [2, 1, 2, 2]]
    # a pixel of another image, chosen before: the one in the middle
    assert ask("first_layers", rule="axial", numbers={"rows": 3, "cols": 4}, pixel=[7, 9])[1]["pixel"] == [
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("panel", "question", "message"),
    [
        ("field", {"rule": "causal", "layers": 0}, "greater than or equal to 1"),
        ("field", {"rule": "causal", "layers": 10**30}, "less than or equal to"),
        ("field", {"rule": "causal", "layers": "many"}, "not a whole number"),
        ("field", {"rule": "causal(align=bottom-right)"}, "only layers of self-attention"),
        ("field", {"rule": "q - k == head"}, "give heads a number"),
        ("field", {"rule": "k * k <= q"}, "not affine"),
        ("first_layers", {"rule": "k <="}, "has nothing after it"),
    ],
)
def test_what_cannot_be_asked(panel: str, question: dict[str, Any], message: str) -> None:
    status, found = ask(panel, **question)
    assert status == 422
    assert message in found["message"]


def test_what_has_no_map_says_why() -> None:
    found = ask("first_layers", rule="causal(align=bottom-right)")[1]
    assert "only layers of self-attention" in found["no_map"]
    assert "not affine" in ask("first_layers", rule="k * k <= q", numbers={"n": 10**6})[1]["no_map"]
    beyond = ask("first_layers", rule="strided", numbers={"n": "99999999999999999999", "t": 3})
    assert beyond[0] == 200
    assert "positions beyond 2^53 are not drawn on the page" in beyond[1]["no_map"]
    assert ask("first_layers", rule="strided", numbers={"n": 2**53, "t": 3})[1]["no_map"] == ""
