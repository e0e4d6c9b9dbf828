"""What is too long, too often or says too much: numbers, texts that are kept, and messages."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from dataclasses import replace
from functools import wraps
from typing import Any

import pytest
import uvicorn
from web.questions import good_questions

from lattend.web import answer_cache, fork_server, worker
from lattend.web.answer_cache import OVERHEAD, Answers, Meaning, meaning_of
from lattend.web.fork_server import ForkServer
from lattend.web.panels import PANELS
from lattend.web.pool import Asking, Pool, QueuedQuestion, Reply
from lattend.web.serve import SETTINGS

HUGE = 10**4000  # its square has more digits than Python writes


def ask(panel: str, **question: Any) -> tuple[int, dict[str, Any]]:
    status, _, body = worker.reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


@pytest.mark.parametrize("number", [HUGE, -HUGE, 10**60, "9" * 61])
def test_a_number_of_too_many_digits_is_refused_however_it_is_written(number: int | str) -> None:
    status, found = ask("count", rule="causal", numbers={"n": number})
    assert (status, found["message"]) == (422, "numbers.n: a number has at most 60 digits")
    assert ask("count", rule="causal", numbers={"n": 10**60 - 1})[0] == 200


@pytest.mark.parametrize("field", ["hidden_size", "vocab_size", "intermediate_size"])
def test_a_model_that_is_too_large_is_refused(field: str) -> None:
    config = good_questions()["model"][0]["config"]
    status, found = ask("model", config={**config, field: HUGE})
    assert status == 422
    assert (
        f'"{field}" of the config must be a whole number up to 1,000,000,000,000,000, got 1000'
        in found["message"]
    )
    assert len(found["message"]) < 200


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file", "/srv/x"), ImportError("/srv/y")])
def test_a_mistake_names_no_file_of_the_machine(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    count = PANELS["count"]

    @wraps(count.answer)
    def fail(_: object) -> None:
        raise error

    monkeypatch.setitem(worker.PANELS, "count", replace(count, answer=fail))
    status, found = ask("count", rule="causal")
    assert status == 500
    assert found["message"].endswith(type(error).__name__)


def test_a_long_rule_is_neither_read_nor_remembered_by_the_server() -> None:
    before = answer_cache._one_spelling.cache_info()  # pyright: ignore[reportPrivateUsage]
    long = " and ".join(["k <= q"] * 200)
    panel = PANELS["count"]
    found = meaning_of(panel, "", panel.question.model_validate({"rule": long}))
    assert json.loads(found.key)["rule"] == long
    assert answer_cache._one_spelling.cache_info() == before  # pyright: ignore[reportPrivateUsage]


def test_the_rules_as_typed_count_as_kept_bytes() -> None:
    kept = Answers(most=1000)
    kept.keep("count", "", Meaning(b"a", {"rule": "x" * 100}), Reply(200, "", b"12345"))
    assert kept.bytes == 1 + 100 + 5 + OVERHEAD
    kept.keep("count", "", Meaning(b"b", {"rule": "x" * 600}), Reply(200, "", b""))
    assert kept.bytes == 0  # what is longer than all that may be kept is not kept


def test_nobody_asks_under_another_address() -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"])

    config = uvicorn.Config(app, **SETTINGS)
    config.load()
    scope = {"type": "http", "client": ("127.0.0.1", 1), "headers": [(b"x-forwarded-for", b"10.0.0.1")]}
    asyncio.run(config.loaded_app(scope, None, None))  # pyright: ignore[reportArgumentType]
    assert seen == [("127.0.0.1", 1)]


def test_two_places_wanted_at_once_end_two_questions() -> None:
    async def ended() -> list[bool]:
        pool = Pool(1)
        now, loop = time.monotonic(), asyncio.get_running_loop()
        slow = [QueuedQuestion(Asking("page", i), loop.create_future(), begun=now - 10 - i) for i in range(5)]
        pool._slow.extend(slow)  # pyright: ignore[reportPrivateUsage]
        for _ in range(3):
            pool._thin_out()  # pyright: ignore[reportPrivateUsage]
        return [one.reason is not None for one in slow]

    assert asyncio.run(ended()) == [False, False, False, True, True]  # SLOW_PER_PLACE go on


def test_a_fork_server_that_does_not_listen_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "PROGRAM", "import time; time.sleep(60)")
    server = ForkServer(torch=False)
    asked: list[socket.socket] = []
    with pytest.raises(OSError, match="too many are asked for"):
        while len(asked) < 5000:
            asked.append(server.fork())
            asked[-1].close()
    server.stop()
