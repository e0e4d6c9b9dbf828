"""Whatever is asked of any panel is answered in time: with an answer of its type, or with the reason."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import from_json
from web.questions import good_questions, questions

from lattend.web.panel import Problem
from lattend.web.panels import PANELS
from lattend.web.pool import Asking, Pool, Reply
from lattend.web.worker import LATE

GOOD = good_questions()
MOST_LATE = 0.2  # of all questions may go without an answer in time
Ask = Callable[[str, Any], Reply]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Asks workers, as the server does; too many that are late fail in the end."""
    loop = asyncio.new_event_loop()
    running = threading.Thread(target=loop.run_forever)
    running.start()
    pools = {torch: Pool(1, torch=torch) for torch in (False, True)}
    statuses: Counter[int] = Counter()

    def asking(panel: str, question: Any) -> Reply:
        body = json.dumps(question).encode()
        asked = pools[PANELS[panel].torch].ask((panel, "", body), Asking("", object()), 5)
        found = asyncio.run_coroutine_threadsafe(asked, loop).result(70)
        statuses[found.status] += 1
        return found

    yield asking

    async def stop() -> None:
        for pool in pools.values():
            pool.stop()

    asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    running.join()
    loop.close()
    assert statuses[200] > statuses.total() / 10, statuses
    assert statuses[504] <= 2 + MOST_LATE * statuses.total(), statuses


@pytest.mark.parametrize("name", PANELS)
def test_good_questions_have_answers(ask: Ask, name: str) -> None:
    for question in GOOD[name][:3]:
        found = ask(name, question)
        assert found.status in (200, LATE, 422, 504), found.body
        if found.status in (200, LATE):
            PANELS[name].reply.model_validate_json(found.body)


def check(ask: Ask, name: str, question: Any) -> None:
    """An answer of its type, or a problem that is no mistake of ours."""
    found = ask(name, question)
    assert found.status in (200, LATE, 422, 504), found
    from_json(found.body, allow_inf_nan=False)
    if found.status in (200, LATE):
        PANELS[name].reply.model_validate_json(found.body)
        return
    problem = Problem.model_validate_json(found.body)
    assert problem.kind != "mistake", problem.message
    assert problem.message
    assert 0 <= problem.start <= problem.end <= max(len(problem.text), problem.end)


QUIET = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)


@pytest.mark.parametrize("name", PANELS)
@settings(max_examples=8, deadline=None, suppress_health_check=QUIET)
@given(data=st.data())
def test_any_question_is_answered(ask: Ask, name: str, data: st.DataObject) -> None:
    check(ask, name, data.draw(questions(PANELS[name], GOOD[name])))


@pytest.mark.long
@pytest.mark.parametrize("name", PANELS)
@settings(max_examples=300, deadline=None, suppress_health_check=QUIET)
@given(data=st.data())
def test_any_of_many_questions_is_answered(ask: Ask, name: str, data: st.DataObject) -> None:
    check(ask, name, data.draw(questions(PANELS[name], GOOD[name])))
