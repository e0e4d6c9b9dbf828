"""The questions on the page are the library's, found as `lattend ask` finds them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lattend.ask import questions, search
from lattend.ask.question import OTHER_NAMES
from lattend.web.worker import reply


def ask(panel: str, **question: Any) -> Any:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    assert status == 200
    return json.loads(body)


def test_all_questions_are_there_with_what_their_commands_print() -> None:
    found = ask("questions")["questions"]
    assert [one["asks"] for one in found] == [one.asks for one in questions()]
    assert [[(command["line"], command["printed"]) for command in one["commands"]] for one in found] == [
        one.commands for one in questions()
    ]


@pytest.mark.parametrize("words", ["sliding window", "KL", "why?", "  "])
def test_words_find_what_the_command_finds(words: str) -> None:
    assert ask("ask", words=words)["numbers"] == [one.number for one in search(words.split())]


def test_where_none_has_all_words_the_nearest_are_found() -> None:
    found = ask("ask", words="causl unheard-of sums")
    assert found["nearest"]
    assert found["numbers"]
    assert found["close"] == ["causal"]


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_question_has_the_other_names_that_find_it(name: str) -> None:
    named = [one["number"] for one in ask("questions")["questions"] if name in one["other_names"]]
    assert named == [one.number for one in search([name])]
