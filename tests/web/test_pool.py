"""The pool keeps its word: a hard question delays nobody, a death costs a retry, nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from web.odd_panels import alive, gone, processes_of

from lattend.sets import guard
from lattend.web import nursery, pool
from lattend.web.pool import Asking, Pool, Reply

TESTS = str(Path(__file__).parents[1])
Result = TypeVar("Result")


@pytest.fixture(autouse=True)
def odd_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that know the panels of odd_panels.py, and load nothing else before they start."""
    path, _, tend = nursery.PROGRAM.partition("\n")
    odd = f"sys.path.append({TESTS!r}); import web.odd_panels, lattend.web.nursery as nursery"
    unloaded = "nursery.load = lambda torch: None"
    monkeypatch.setattr(nursery, "PROGRAM", "\n".join((path, odd, unloaded, tend)))


def run(work: Callable[[Pool], Awaitable[Result]], size: int = 1) -> Result:
    """What the work gives with a pool that is ready; the pool leaves nothing behind."""

    async def running() -> tuple[Result, set[int]]:
        tested = Pool(size)
        try:
            await tested.ready()
            before = processes_of(os.getpid())
            return await work(tested), before
        finally:
            tested.stop()

    before = {os.getpid()}
    found, during = asyncio.run(running())
    assert not gone(during - before - {guard_pid()})
    return found


def guard_pid() -> int:
    process = guard._WORKER.process  # pyright: ignore[reportPrivateUsage]
    return process.pid if process else 0


def ask(
    asked: Pool,
    panel: str,
    amount: float = 0,
    *,
    page: str = "a",
    asker: str = "",
    first: bool = False,
    seconds: float = 5,
) -> asyncio.Task[Reply]:
    message = (panel, "", json.dumps({"amount": amount}).encode())
    return asyncio.ensure_future(asked.ask(message, Asking(page, asker or object(), first), seconds))


def told(reply: Reply) -> Any:
    return json.loads(reply.body)


async def running_worker(task: asyncio.Task[Reply], asked: Pool) -> pool.Worker:
    """The worker that has taken the only question."""
    free = asked._free[0]  # pyright: ignore[reportPrivateUsage]
    while asked._free:  # pyright: ignore[reportPrivateUsage]
        await asyncio.sleep(0.005)
    assert not task.done()
    return free


def test_a_worker_killed_while_it_answers_is_replaced_and_asked_again() -> None:
    async def work(asked: Pool) -> tuple[int, Reply]:
        task = ask(asked, "sleep", 0.2)
        worker = await running_worker(task, asked)
        os.kill(worker.pid, signal.SIGKILL)
        return worker.pid, await task

    killed, reply = run(work)
    assert reply.status == 200
    assert told(reply)["pid"] != killed


def test_a_question_that_kills_its_worker_says_so_and_the_next_is_answered() -> None:
    async def work(asked: Pool) -> tuple[Reply, Reply]:
        return await ask(asked, "die"), await ask(asked, "sleep")

    died, after = run(work)
    assert (died.status, told(died)["message"]) == (504, "the process that worked on this died, twice")
    assert after.status == 200


def test_a_late_answer_is_given_up_and_its_process_ended() -> None:
    async def work(asked: Pool) -> tuple[Reply, set[int], Reply]:
        task = ask(asked, "sleep", 60, seconds=0.2)
        worker = await running_worker(task, asked)
        late = await task
        return late, gone({worker.pid}), await ask(asked, "sleep")

    late, left, after = run(work)
    assert late.status == 504
    assert told(late)["message"].startswith("no answer within 0.2 seconds")
    assert not left
    assert after.status == 200


def test_what_a_worker_started_ends_with_it() -> None:
    async def work(asked: Pool) -> tuple[set[int], set[int]]:
        first = told(await ask(asked, "sets"))
        await ask(asked, "sets", 60, seconds=0.3)
        pids = {first["pid"], first["child"]}
        return pids, gone(pids)

    pids, left = run(work)
    assert len(pids) == 2
    assert not left


def test_memory_and_mistakes_are_told_and_the_worker_lives() -> None:
    async def work(asked: Pool) -> list[Reply]:
        return [await ask(asked, name, 1e12) for name in ("swallow", "fail")] + [await ask(asked, "sleep")]

    swallowed, failed, after = run(work)
    assert (swallowed.status, told(swallowed)["kind"]) == (422, "no answer")
    assert "memory" in told(swallowed)["message"]
    assert (failed.status, told(failed)["kind"]) == (422, "mistake")
    assert "ZeroDivisionError: one / zero" in told(failed)["message"]
    assert after.status == 200


def test_hard_questions_delay_nobody() -> None:
    """Every place has a hard question, of several people; another's quick one waits for SLOW at most."""

    async def work(asked: Pool) -> tuple[float, list[Reply]]:
        hard = [ask(asked, "sleep", 1.5, page=f"hard {number}") for number in range(2)]
        await asyncio.sleep(0.05)
        begun = time.monotonic()
        quick = await ask(asked, "sleep", page="quick")
        waited = time.monotonic() - begun
        return waited, [quick, *await asyncio.gather(*hard)]

    waited, replies = run(work, size=2)
    assert [reply.status for reply in replies] == [200, 200, 200]
    assert waited < pool.SLOW + 0.5  # and not 1.5


def test_where_the_slow_lane_is_full_the_page_with_most_gives_way() -> None:
    async def work(asked: Pool) -> list[Reply]:
        other = ask(asked, "sleep", 4, page="other")
        greedy = [ask(asked, "sleep", 4, page="greedy") for _ in range(pool.LANE)]
        return [await other, *await asyncio.gather(*greedy)]

    other, *greedy = run(work)
    assert other.status == 200
    assert sorted(reply.status for reply in greedy) == [200, 200, 503]


def test_pages_take_turns() -> None:
    async def work(asked: Pool) -> list[str]:
        order: list[str] = []
        tasks: list[asyncio.Task[Reply]] = []
        for page in ("many", "many", "many", "many", "one"):
            tasks.append(ask(asked, "sleep", 0.05, page=page))
            tasks[-1].add_done_callback(lambda _, page=page: order.append(page))
        await asyncio.gather(*tasks)
        return order

    assert run(work, size=2).index("one") < 3


def test_what_a_keystroke_waits_for_goes_first() -> None:
    async def work(asked: Pool) -> list[str]:
        order: list[str] = []
        tasks: list[asyncio.Task[Reply]] = []
        for page in ("running", "later", "later", "first"):
            tasks.append(ask(asked, "sleep", 0.05, page=page, first=page == "first"))
            tasks[-1].add_done_callback(lambda _, page=page: order.append(page))
        await asyncio.gather(*tasks)
        return order

    assert run(work) == ["running", "first", "later", "later"]


def test_a_page_is_answered_by_the_worker_that_knows_it() -> None:
    async def work(asked: Pool) -> list[list[int]]:
        both = [ask(asked, "sleep", 0.1, page=page) for page in ("a", "b")]
        pids = [told(await task)["pid"] for task in both]
        return [
            [pid, told(await ask(asked, "sleep", page=page))["pid"]]
            for pid, page in zip(pids, "ab", strict=True)
        ]

    (a, again_a), (b, again_b) = run(work, size=2)
    assert (a, b) == (again_a, again_b)
    assert a != b


def test_a_newer_question_takes_the_place_of_an_older() -> None:
    async def work(asked: Pool) -> list[Reply]:
        blocking = ask(asked, "sleep", 0.2, page="b")
        older = ask(asked, "sleep", 0.01, asker="field")
        beside = ask(asked, "sleep", 0.02, asker="another field")
        newer = ask(asked, "sleep", 0.03, asker="field")
        return [await task for task in (blocking, older, beside, newer)]

    assert [reply.status for reply in run(work)] == [200, 409, 200, 200]


def test_a_slow_question_ends_when_a_newer_comes() -> None:
    async def work(asked: Pool) -> tuple[float, list[int]]:
        begun = time.monotonic()
        older = ask(asked, "sleep", 5, asker="field")
        await asyncio.sleep(0.05)
        newer = ask(asked, "sleep", 0, asker="field")
        replies = await asyncio.gather(older, newer)
        return time.monotonic() - begun, [reply.status for reply in replies]

    took, statuses = run(work)
    assert statuses == [409, 200]
    assert took < 2


def test_too_many_questions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WAITING", 3)

    async def work(asked: Pool) -> list[int]:
        return [
            reply.status for reply in await asyncio.gather(*(ask(asked, "sleep", 0.01) for _ in range(6)))
        ]

    assert run(work) == [200, 200, 200, 200, 503, 503]


def test_a_nursery_that_cannot_start_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nursery, "PROGRAM", "raise SystemExit('no such library')")
    monkeypatch.setattr(pool, "START", 5.0)

    async def work(asked: Pool) -> Reply:
        return await ask(asked, "sleep")

    reply = run(work)
    assert (reply.status, told(reply)["kind"]) == (503, "busy")
    assert "no worker could be started" in told(reply)["message"]
    assert "no such library" in capfd.readouterr().err


def test_a_nursery_that_ended_is_started_again() -> None:
    async def work(asked: Pool) -> tuple[Reply, bool]:
        process = asked._nursery._process  # pyright: ignore[reportPrivateUsage]
        assert process is not None
        process.kill()
        process.wait()
        return await ask(asked, "sleep"), alive(process.pid)

    reply, still = run(work)
    assert reply.status == 200
    assert not still


def test_workers_are_replaced_when_worn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WORN", 2)

    async def work(asked: Pool) -> list[int]:
        return [told(await ask(asked, "sleep"))["pid"] for _ in range(3)]

    first, second, third = run(work)
    assert first == second
    assert third != first
