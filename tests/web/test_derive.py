"""Derivations on the page: the library's lines, and verdicts on lines that were changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lattend.study.derivations.draft import derive
from lattend.web.worker import reply


def ask(**question: Any) -> tuple[int, dict[str, Any]]:
    status, _, body = reply("derive", "", json.dumps(question).encode())
    return status, json.loads(body)


@pytest.mark.parametrize("name", ["causal", "limit", "elbo", "rnn2d"])
def test_the_lines_are_the_librarys(name: str) -> None:
    status, found = ask(derivation=name)
    lines = derive(name).lines
    assert (status, found["holds"]) == (200, True)
    assert [line["sentence"] for line in found["lines"]] == [line.checked for line in lines]
    joined = [f"{line['left']} &{line['relation']} {line['right']}".lstrip() for line in found["lines"]]
    assert joined == [line.latex for line in lines]
    assert found["copies"]["latex"] == derive(name).latex()


def test_a_game_of_ones_own_is_derived() -> None:
    _, found = ask(derivation="game", f="p*q - p^2/4", step="h")
    lines = derive("game", f="p*q - p^2/4", step="h").lines
    assert [line["right"] for line in found["lines"]] == [line.latex.split("&= ")[1] for line in lines]


def test_a_changed_line_is_judged_and_not_handed_on() -> None:
    _, found = ask(derivation="strided", changes={"8": "(2n - t) t/2"})
    assert [line["verdict"] for line in found["lines"]][-1] == "refuted"
    assert found["lines"][-1]["changed"]
    assert (found["holds"], found["copies"]["latex"], found["remark"]) == (False, "", "")


def test_a_line_that_is_not_read_points_at_the_place() -> None:
    _, found = ask(derivation="causal", changes={"6": "n (n + 1"})
    line = found["lines"][5]
    assert (line["verdict"], line["start"]) == ("unread", 2)  # the bracket that is not closed


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"derivation": "causla"}, "did you mean causal?"),
        ({"derivation": "elbo", "changes": {"0": "n"}}, "elbo has lines 1 to 6, and no 0"),
        ({"changes": {"six": "n"}}, "lines have numbers from 1 on"),
        ({"derivation": "game", "f": "p +"}, "something is missing at the end"),
        ({"derivation": "game", "step": "0"}, "a step must be above 0"),
    ],
)
def test_what_there_is_not_says_so(question: dict[str, Any], message: str) -> None:
    status, found = ask(**question)
    assert status == 422
    assert message in found["message"]
