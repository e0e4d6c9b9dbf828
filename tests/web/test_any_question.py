"""Whatever is asked of any panel is answered in time: with an answer of its type, or with the reason.

The questions go by HTTP through the whole application, as the page and scripts send them.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import from_json
from web.questions import PANELS_OF, good_questions, questions

import lattend as lt
from lattend.web.app import application
from lattend.web.guards import Hosts
from lattend.web.panel import Problem
from lattend.web.panels import PANELS

GOOD = good_questions()
LATE = 0.2  # of all questions may go without an answer in time
SOON = 30.0  # seconds for a question, of which it works at most 5: the machine may be busy
HOST = "127.0.0.1:8321"
TYPES = {"svg": "image/svg+xml", "png": "image/png"}
BEGINNINGS = {"svg": b"<svg", "png": b"\x89PNG"}


@dataclass
class Asker:
    """Asks one application, and keeps count of how it answered."""

    client: TestClient
    statuses: Counter[int] = field(default_factory=Counter)

    def __call__(self, path: str, question: Any) -> tuple[int, str, bytes]:
        """Status, media type and body; where it was asked too fast, once more."""
        begun = time.monotonic()
        while True:
            found = self.client.post(
                f"/api/{path}", content=json.dumps(question), headers={"content-type": "application/json"}
            )
            if found.status_code != 429:
                break
            time.sleep(0.1)
        assert time.monotonic() - begun < SOON
        self.statuses[found.status_code] += 1
        return found.status_code, found.headers["content-type"], found.content

    def again(self, path: str, question: Any) -> tuple[int, str, bytes]:
        """The same; what is late on a busy machine is asked up to three times."""
        found = self(path, question)
        for _ in range(2):
            if found[0] in (503, 504):
                found = self(path, question)
        return found


@pytest.fixture(scope="module")
def ask() -> Iterator[Asker]:
    """One application for all questions; too many that are late fail in the end."""
    app = application(Hosts(frozenset({HOST})), sets=1, torch=1)
    with TestClient(app, base_url=f"http://{HOST}") as client:  # which raises what the application raises
        asker = Asker(client)
        yield asker
    statuses = asker.statuses
    assert statuses[200] > statuses.total() / 4, statuses
    assert statuses[503] + statuses[504] <= 2 + LATE * statuses.total(), statuses


def test_every_panel_has_a_page_that_asks_it() -> None:
    asked = {name for names in PANELS_OF.values() for name in names.split()}
    assert asked | {"ask", "tiles"} == PANELS.keys()  # those two, with what a person does, are in MORE
    assert all(GOOD.values())


def one_of_several(ask: Asker, name: str, question: Any) -> tuple[int, bytes]:
    """Status and body of a question, asked as the page asks."""
    status, _, body = ask("batch", [[name, "", question]])
    if status != 200:
        return status, body
    ((_, each, found),) = map(from_json, body.splitlines())
    return each, json.dumps(found).encode()


def answered(ask: Asker, name: str, question: Any) -> dict[str, Any]:
    """The answer to a question that has one."""
    status, _, body = ask.again(name, question)
    assert status == 200, (question, body)
    PANELS[name].reply.model_validate_json(body)
    return from_json(body, allow_inf_nan=False)


@pytest.mark.parametrize("name", PANELS)
def test_good_questions_have_answers(ask: Asker, name: str) -> None:
    for question in GOOD[name][:3]:
        answered(ask, name, question)


@pytest.mark.parametrize("name", [panel.name for panel in PANELS.values() if panel.picture])
def test_good_questions_have_pictures(ask: Asker, name: str) -> None:
    for form, kind in TYPES.items():
        status, media, body = ask.again(f"{name}/picture.{form}", GOOD[name][0])
        assert (status, media) == (200, kind), body
        assert BEGINNINGS[form] in body[:200]


def test_several_good_questions_are_answered_at_once(ask: Asker) -> None:
    asked = [(name, GOOD[name][0]) for name in PANELS_OF["rule"].split()]
    status, _, body = ask("batch", [[name, "", question] for name, question in asked])
    assert status == 200
    lines = [from_json(line) for line in body.splitlines()]
    assert sorted(place for place, _, _ in lines) == [*range(len(asked))]
    for place, each, found in lines:
        assert each in (200, 503, 504), (asked[place], found)
        if each == 200:
            PANELS[asked[place][0]].reply.model_validate(found)
    assert [each for _, each, _ in lines].count(200) > len(asked) / 2


RULES = ("causal", "strided", "windowed", "k <= q or k < p")
Library = Callable[[str], str]
FORMULAS: dict[str, tuple[str, Library]] = {
    "count": ("formula", lambda text: str(lt.rule(text).count())),
    "keys": ("per_query", lambda text: str(lt.rule(text).count(per="query"))),
    "growth": ("order", lambda text: str(lt.rule(text).count().order())),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("text", RULES)
def test_formulas_are_the_librarys(ask: Asker, name: str, text: str) -> None:
    place, library = FORMULAS[name]
    assert answered(ask, name, {"rule": text})[place]["text"] == library(text)


def test_answers_are_the_librarys(ask: Asker) -> None:
    for question in GOOD["same"][:3]:
        is_same = lt.rule(question["rule"]).same_as(lt.rule(question["other"])) is True
        assert answered(ask, "same", question)["same"] is is_same
    size = GOOD["tiles"][0]
    mask = lt.rule(size["rule"]).mask(**size["numbers"])[3:15, 0:16]
    assert answered(ask, "tiles", size)["counts"][0] == str(int(mask.sum()))
    claim = GOOD["cost_claim"][1]
    sentence = str(lt.cost.rnn2d().claim("multiplies", "n^2 h^2"))
    assert answered(ask, "cost_claim", claim)["verdict"]["sentence"] == sentence


def check(ask: Asker, name: str, form: str, question: Any) -> None:
    """An answer of its type, or a problem that is no mistake of ours."""
    if form == "several":
        status, body = one_of_several(ask, name, question)
    else:
        status, media, body = ask(f"{name}/picture.{form}" if form else name, question)
        if form and status == 200:
            assert media == TYPES[form]
            assert BEGINNINGS[form] in body[:200]
            return
    assert status in (200, 400, 422, 503, 504), body
    from_json(body, allow_inf_nan=False)
    if status == 200:
        PANELS[name].reply.model_validate_json(body)
        return
    problem = Problem.model_validate_json(body)
    assert problem.kind != "mistake", problem.message
    assert problem.message
    assert 0 <= problem.start <= problem.end <= len(problem.text) + 1  # what is missing stands behind the end


QUIET = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)


def draw_and_check(ask: Asker, name: str, data: st.DataObject) -> None:
    forms = ["", "several", *(TYPES if PANELS[name].picture else ())]
    form = data.draw(st.sampled_from(forms))
    check(ask, name, form, data.draw(questions(PANELS[name], GOOD[name])))


@pytest.mark.parametrize("name", PANELS)
@settings(max_examples=5, deadline=None, suppress_health_check=QUIET)
@given(data=st.data())
def test_any_question_is_answered(ask: Asker, name: str, data: st.DataObject) -> None:
    draw_and_check(ask, name, data)


@pytest.mark.long
@pytest.mark.parametrize("name", PANELS)
@settings(max_examples=300, deadline=None, suppress_health_check=QUIET)
@given(data=st.data())
def test_any_of_many_questions_is_answered(ask: Asker, name: str, data: st.DataObject) -> None:
    draw_and_check(ask, name, data)
