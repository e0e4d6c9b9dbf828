"""Worked attention on the page: the library's numbers, an answer judged, hostile input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import LattendError
from lattend.study.worked.work import EXAMPLE
from lattend.web.panels.work import WorkQuestion, arguments, letters_of
from lattend.web.worker import reply

CASE: dict[str, Any] = {name: [[str(x) for x in row] for row in rows] for name, rows in EXAMPLE.items()}
NUMBER = st.sampled_from(["0", "1", "-1", "2", "1/2", "0.25", "sqrt(2)"])
MATRIX = st.lists(st.lists(NUMBER, min_size=2, max_size=2), min_size=2, max_size=2)


def asked(panel: str, **question: Any) -> tuple[int, dict[str, Any]]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(NUMBER, min_size=2, max_size=2), min_size=1, max_size=3),
    *[st.just([]) | MATRIX] * 3,
    st.sampled_from(["full", "causal", "k <= q - t"]),
    st.sampled_from(["1", "sqrt", "1/3"]),
    st.integers(1, 2),
    st.integers(0, 6),
)
def test_the_steps_are_the_librarys(
    tokens: Any, wq: Any, wk: Any, wv: Any, rule: str, scale: str, heads: int, places: int
) -> None:
    question = {
        **{"tokens": tokens, "wq": wq, "wk": wk, "wv": wv, "rule": rule, "scale": scale, "heads": heads},
        "places": places,
        "numbers": {"t": 1, "n": 99, "other": 5},
    }
    status, found = asked("work", **question)
    letters: dict[str, Any] = {"t": 1} if "t" in rule.split() else {}
    matrices = {name: rows or None for name, rows in (("wq", wq), ("wk", wk), ("wv", wv))}
    try:
        right = lt.study.work(tokens, **matrices, rule=rule, scale=scale, heads=heads, **letters)
    except LattendError as error:
        assert (status, found["message"]) == (422, str(error))
        return
    assert status == 200
    assert [step["name"] for step in found["steps"]] == [step.name for step in right.steps]
    for step, true in zip(found["steps"], right.steps, strict=True):
        shown = [[[one["decimal"] for one in row] for row in rows] for rows in step["tables"]]
        assert shown == (true.decimals(places) if true.per_head else [true.decimals(places)])
        for rows, entries in zip(step["tables"], true.tables, strict=True):
            for row, line in zip(rows, entries, strict=True):
                assert [one["exact"] for one in row] == [one.latex if one.text else "" for one in line]
    assert found["facts"] == list(right.statements())


def test_python_and_command_ask_the_same() -> None:
    _, found = asked("work", **CASE, rule="k <= q and q - k <= t", numbers={"t": 1}, scale="sqrt", places=6)
    assert found["copies"]["command"] == (
        "lattend work --tokens '1,2;2,0;0,1;1,1' --wq '1,0;0,1' --wk '1,0;0,0' --wv '0,0;0,1'"
        " --rule 'k <= q and q - k <= t' --scale sqrt --at t=1 --places 6"
    )
    names: dict[str, Any] = {"print": lambda *_: None}
    exec(found["copies"]["python"], names)
    assert names["worked"].weights.decimals(6)[1] == ["0.195570", "0.804430", "0", "0"]
    assert found["copies"]["latex"].startswith("% needs")
    assert found["markdown"].startswith("# Attention worked through")


def test_queries_keys_and_values_take_the_place_of_tokens() -> None:
    direct: dict[str, Any] = {"q": [["1", "2"]], "k": [["1", "0"], ["0", "1"]], "v": [["1/3"], ["2"]]}
    status, found = asked("work", **CASE, columns=True, **direct)
    right = lt.study.work(**direct)
    assert status == 200
    assert [one["decimal"] for one in found["steps"][-1]["tables"][0][0]] == right.outputs.decimals()[0]
    assert found["copies"]["command"] == "lattend work --q 1,2 --k '1,0;0,1' --v '1/3;2'"
    assert found["copies"]["python"].split("\n")[2] == (
        "worked = lt.study.work(q=[[1, 2]], k=[[1, 0], [0, 1]], v=[['1/3'], [2]])"
    )


def test_where_a_number_comes_from() -> None:
    _, found = asked("work", **CASE)
    (weights,) = (step for step in found["steps"] if step["name"] == "weights")
    number = weights["tables"][0][0][1]
    assert number["origin"] == r"\frac{e^{2}}{1 + 2 e + e^{2}} \approx 0.5344"
    assert [source["name"] for source in number["sources"]] == ["exponentials", "sums"]


ANSWER = {
    "sums": [[["13.8256"], ["71"], ["4"], [""]]],
    "weights": [[["0.1966"] * 4, [".1041"] * 4, [""] * 4, [""] * 4]],
}


def test_an_answer_is_judged_as_the_library_does() -> None:
    status, found = asked("check", **CASE, answer=ANSWER, places=6)
    right = lt.study.work(**EXAMPLE).check({name: tables[0] for name, tables in ANSWER.items()})
    assert status == 200
    assert (found["right"], found["summary"]) == (False, right.json()["summary"])
    assert found["slips"] == right.json()["slips"]
    verdicts = {(one["step"], one["row"], one["column"]): one for one in found["numbers"]}
    assert verdicts["sums", 0, 0]["verdict"] == "right"
    assert verdicts["sums", 1, 0]["verdict"] == "slip"
    followed = verdicts["weights", 1, 0]
    assert followed["verdict"] == "follows"
    assert followed["roots"] == [{"step": "sums", "head": 0, "row": 1, "column": 0}]
    assert found["copies"]["command"].endswith(
        "--wv '0,0;0,1' --check answer.json"
    )  # places would be stricter
    names: dict[str, Any] = {"print": lambda found: names.update(judged=found)}
    exec(found["copies"]["python"], names)
    assert names["judged"].json() == right.json()


def test_an_answer_for_two_heads() -> None:
    status, found = asked(
        "check", **CASE, heads=2, answer={"sums": [[[""]] * 4, [["4"], ["4"], ["4"], ["4"]]]}
    )
    assert (status, found["summary"]) == (200, "4 numbers: all right")


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"tokens": [["x", "2"]]}, 'tokens, row 1, column 1: "x" is not a number'),
        ({"tokens": [["1", "2"], ["1"]]}, "row 1 has 2 numbers and row 2 has 1"),
        ({"tokens": [[]]}, "there is no number in it"),
        ({"tokens": [["9^999", "1"]]}, "give a smaller scale"),
        ({"rule": "("}, "never closed"),
        ({"rule": "axial"}, "needs a value for rows and cols"),
        ({"heads": 3}, "3 heads cannot share"),
        ({"scale": "nonsense"}, "scale is a number"),
        ({"wo": [["1"]]}, "wo is 1 × 1"),
        ({"memory": [["1"]]}, "memory has rows of 1"),
    ],
)
def test_hostile_input_is_told_what_is_wrong(question: dict[str, Any], message: str) -> None:
    status, found = asked("work", **{**CASE, **question})
    assert status == 422
    assert found["kind"] == "input"
    assert message in found["message"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({}, "an answer has rows of numbers"),
        ({"sums": [[[""]]]}, "an answer has rows of numbers"),
        ({"wights": [[["1"]]]}, "did you mean weights?"),
        ({"sums": [[["1"]] * 5]}, "must be 4 rows"),
        ({"sums": [[["x"], [""], [""], [""]]]}, "sums, row 1, column 1"),
    ],
)
def test_answers_that_cannot_be_read(answer: Any, message: str) -> None:
    status, found = asked("check", **CASE, answer=answer)
    assert (status, found["kind"]) == (422, "input")
    assert message in found["message"]


def test_letters_have_examples_and_sides_of_an_image_are_given() -> None:
    assert letters_of(WorkQuestion(tokens=[["1"]], rule="k <= q - t", numbers={"n": 7})) == {"t": 3}
    status, found = asked("work", **CASE, rule="axial", numbers={"rows": 2})
    assert status == 200
    assert "--at rows=2" in found["copies"]["command"]


def test_letters_of_another_rule_are_left_out() -> None:
    assert arguments(WorkQuestion(tokens=[["1"]], rule="causal", numbers={"t": 3})) == {
        "tokens": [["1"]],
        "rule": "causal",
    }
