"""Where time runs out, no panel tells it as a fact, and what it does tell is not kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from web.questions import good_questions

from lattend.budget import Budget
from lattend.errors import DeadlineError
from lattend.sets import guard
from lattend.web import rules, views
from lattend.web.answer_cache import Answers, Meaning
from lattend.web.panels import PANELS, cost, rule_cost
from lattend.web.pool import Reply
from lattend.web.worker import LATE, reply

GOOD = good_questions()
NUMBERED = {"rule": "k <= q and 3*k >= q - t", "numbers": {"n": 20, "t": 4}}
MORE: dict[str, list[dict[str, Any]]] = {
    **{name: [NUMBERED] for name in ("count", "keys", "cache", "rules", "reach")},
    "cost": [{"layer": "attention", "rule": "strided", "backward": True}],
    "shared": [{**NUMBERED, "other": "causal"}],
}


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No set work ends in time, and nothing is remembered."""

    def late(*_: object) -> None:
        raise DeadlineError("no answer within 0 seconds")

    def forget() -> None:
        guard.forget_sets()
        for known in (views.KNOWN_FORMULAS, cost.KNOWN):
            known.clear()
        for function in (rules.read, rule_cost._formulas):
            function.cache_clear()

    forget()
    monkeypatch.setattr(guard._WORKER, "call", late)
    yield
    forget()


@pytest.mark.usefixtures("no_time")
@pytest.mark.parametrize("name", PANELS)
def test_what_time_did_not_allow_is_not_told_as_a_fact(name: str) -> None:
    for question in (*MORE.get(name, ()), *GOOD[name][:1]):
        status, _, body = reply(name, "", json.dumps(question).encode())
        found = json.loads(body)
        assert found.get("kind") != "mistake", (question, found)
        assert status in (200, LATE, 422, 504), (question, found)
        assert status in (LATE, 504) or "no answer within" not in body.decode(), (question, found)
        assert found.get("late", False) == (status == LATE), (question, found)


def test_a_cost_cut_by_its_budget_is_late_and_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    cost.KNOWN.clear()
    monkeypatch.setattr("lattend.cost.summary.REPORT", Budget(0))
    for backward in (False, True):
        asked = {"layer": "attention", "rule": "q // w == k // w", "backward": backward}
        status, _, body = reply("cost", "", json.dumps(asked).encode())
        assert (status, json.loads(body)["late"]) == (LATE, True), body
    assert not cost.KNOWN


@pytest.mark.parametrize("status", [LATE, 409, 500, 503, 504])
def test_only_what_stays_so_is_kept(status: int) -> None:
    known = Answers()
    known.keep("count", "", Meaning(b"{}", {}), Reply(status, "application/json", b"{}"))
    assert known.get("count", "", Meaning(b"{}", {})) is None
    for kept in (200, 422):
        known.keep("count", "", Meaning(b"%d" % kept, {}), Reply(kept, "application/json", b"{}"))
        assert known.get("count", "", Meaning(b"%d" % kept, {})) is not None


def test_a_mistake_in_the_mask_is_shown_in_the_mask() -> None:
    for rule, marked in (("q*k % 7 == 1", "q*k"), ("k <= ", "<=")):
        status, _, body = reply("cost", "", json.dumps({"layer": "attention", "rule": rule}).encode())
        problem = json.loads(body)
        assert (status, problem["field"]) == (422, "rule"), body
        assert rule[problem["start"] : problem["end"]] == marked
