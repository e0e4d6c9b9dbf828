"""Steering on the page: what the library finds, as typed data, and hostile input."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.study.steering.numbers import shares
from lattend.study.steering.steer import Steered
from lattend.web.worker import reply

NUMBER = st.sampled_from(["0", "1", "-1", "2", "0.5", "1/3", "-3/2", "sqrt(2)"])
KEYS = st.lists(st.tuples(NUMBER, NUMBER).map(list), min_size=1, max_size=5)
SQUARE = [["0", "0"], ["2", "0"], ["2", "2"], ["0", "2"], ["1", "1"]]


def asked(panel: str, **question: Any) -> tuple[int, dict[str, Any]]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


@settings(max_examples=40, deadline=None)
@given(KEYS, st.tuples(NUMBER, NUMBER).map(list), st.sampled_from(["1", "-1/2", "sqrt"]))
def test_a_tried_query_is_the_librarys(keys: list[list[str]], query: list[str], scale: str) -> None:
    status, found = asked("try_query", keys=keys, query=query, values=keys, scale=scale)
    right = lt.study.try_query(keys, query, values=keys, scale=scale)
    assert status == 200
    assert [weight["share"] for weight in found["weights"]] == right.weights.tolist()
    assert [weight["limit"] for weight in found["weights"]] == right.limit.tolist()
    assert right.output is not None
    assert found["output"] == right.output.tolist()
    assert found["how"] == right.how
    growth = found["growth"]
    assert growth["lengths"][10] == 1
    assert [weights[10] for weights in growth["weights"]] == right.weights.round(6).tolist()
    winners = {key for cone in found["cones"] for key in cone["keys"]}
    assert len(right.leaders) > 1 or set(right.leaders) <= winners


@settings(max_examples=40, deadline=None)
@given(KEYS, st.lists(st.sampled_from(["0", "1", "2", "1/2", "0.3"]), min_size=5, max_size=5))
def test_a_steered_query_is_the_librarys(keys: list[list[str]], parts: list[str]) -> None:
    parts = parts[: len(keys)]
    status, found = asked("steer", keys=keys, wanted=parts)
    if not any(float(part) if "/" not in part else 1 for part in parts):
        assert (status, found["message"]) == (422, "the weights are all 0; give one of them more")
        return
    try:
        right = lt.study.steer(keys, shares(parts))
    except lt.errors.DomainError as error:  # keys that are too nearly dependent
        assert (status, found["message"]) == (422, str(error))
        return
    assert isinstance(right, Steered)
    assert status == 200
    assert (found["reach"], found["how"]) == (right.reach, right.how)
    assert found["place"] == np.asarray(right.query).tolist()
    assert (found["certificate"] is None) == (right.certificate is None)


def test_never_comes_with_two_mixtures_that_are_one_point() -> None:
    status, found = asked("steer", keys=SQUARE, wanted=["0", "0", "0", "0", "1"])
    assert (status, found["reach"]) == (200, "never")
    why = found["certificate"]
    assert why["left"] == [4]
    assert why["meeting"] == [1, 1]
    assert set(why["right"]) < {0, 1, 2, 3}


def test_a_command_and_python_that_ask_the_same() -> None:
    _, found = asked("steer", keys=[["1", "0"], ["0", "1/3"]], wanted=["1", "3"], scale="sqrt")
    assert found["copies"]["command"] == ("lattend steer --keys '1,0;0,1/3' --weights 1/4,3/4 --scale sqrt")
    assert found["copies"]["python"].endswith(
        "lt.study.steer([[1, 0], [0, '1/3']], ['1/4', '3/4'], scale='sqrt'))"
    )
    names: dict[str, Any] = {}
    exec(found["copies"]["python"].replace("print(", "made = ("), names)
    assert np.asarray(names["made"].query).tolist() == found["place"]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"keys": [["x", "0"]]}, 'keys[0][0]: "x" is not a number'),
        ({"keys": []}, "there is no number in it"),
        ({"keys": [["1", "2"], ["1"]]}, "row 1 has 2 and row 2 has 1"),
        ({"keys": [["1"]]}, "give as many"),
        ({"keys": [["(" * 200, "2"]]}, "levels deep"),
        ({"keys": [["9^9^9^9", "2"]]}, "a power of at most"),
        ({"scale": "0"}, "scale is 0"),
        ({"query": ["1e300", "1e300"], "keys": [["1e300", "1"]]}, "beyond floats"),
        ({"wanted": ["-1"]}, "a weight is at least 0"),
    ],
)
def test_hostile_input_is_told_what_is_wrong(question: dict[str, Any], message: str) -> None:
    status, found = asked("try_query", **{"keys": [["1", "2"]], "query": ["1", "2"], **question})
    assert (status, found["kind"]) == (422, "input")
    assert message in found["message"]


def test_pictures() -> None:
    question = json.dumps({"keys": SQUARE, "wanted": ["1", "1", "0", "0", "0"]}).encode()
    status, media, body = reply("steer", "svg", question)
    assert (status, media) == (200, "image/svg+xml")
    assert b"hull of the keys" in body
