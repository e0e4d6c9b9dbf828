"""The pool keeps its word: a hard question delays nobody, a death costs a retry, nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from web.gates import Gates, gates
from web.processes import alive, gone, processes_of

from lattend.sets import guard
from lattend.web import fork_server, pool
from lattend.web.panels import PANELS
from lattend.web.pool import Asking, Pool, Reply

TESTS = str(Path(__file__).parents[1])
NEVER = 600.0  # seconds: no test runs so long
HANGS = 60.0  # seconds after which a test has failed
Result = TypeVar("Result")


@pytest.fixture(autouse=True)
def odd_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that know the panels of odd_panels.py, and load nothing else before they start."""
    program("fork_server.load = lambda torch: None", monkeypatch)


@pytest.fixture(autouse=True)
def no_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """No question is slow, however busy the machine is, but where a test says so."""
    monkeypatch.setattr(pool, "SLOW", NEVER)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every question that waits is slow."""
    monkeypatch.setattr(pool, "SLOW", 0.01)


def program(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run this too in the process that is forked into workers."""
    path, _, run = fork_server.PROGRAM.partition("\n")
    odd = f"sys.path.append({TESTS!r}); import web.odd_panels; from lattend.web import fork_server"
    known = "web.odd_panels.register()"
    monkeypatch.setattr(fork_server, "PROGRAM", "\n".join((path, odd, known, line, run)))


class Asked:
    """A pool that is ready, and gates for what is asked of it."""

    def __init__(self, tested: Pool, gate: Gates) -> None:
        self.pool, self.gate = tested, gate

    async def asking(
        self,
        panel: str,
        name: str = "",
        *,
        page: str = "a",
        asker: str = "",
        first: bool = False,
        seconds: float = NEVER,
    ) -> Reply:
        message = (panel, "", json.dumps({"gate": self.gate.place, "name": name}).encode())
        return await self.pool.ask(message, Asking(page, asker or object(), first), seconds)

    def ask(self, *question: str, **how: Any) -> asyncio.Task[Reply]:
        return asyncio.ensure_future(self.asking(*question, **how))


def run(work: Callable[[Asked], Awaitable[Result]], size: int = 1) -> Result:
    """What the work gives with a pool that is ready; the pool leaves nothing behind."""
    before = processes_of(os.getpid())

    async def running() -> tuple[Result, set[int]]:
        with tempfile.TemporaryDirectory() as folder:
            tested = Pool(size)
            try:
                async with asyncio.timeout(HANGS), gates(Path(folder)) as gate:
                    await tested.ready()
                    with_pool = processes_of(os.getpid())
                    return await work(Asked(tested, gate)), with_pool
            finally:
                tested.stop()

    found, during = asyncio.run(running())
    assert not gone(during - before - {guard_pid()})
    return found


def guard_pid() -> int:
    process = guard._WORKER.process  # pyright: ignore[reportPrivateUsage]
    return process.pid if process else 0


def told(reply: Reply) -> Any:
    return json.loads(reply.body)


async def statuses(*tasks: asyncio.Task[Reply]) -> list[int]:
    return [reply.status for reply in await asyncio.gather(*tasks)]


def test_the_panels_of_these_tests_are_not_the_servers() -> None:
    import web.odd_panels

    assert web.odd_panels.PANELS is PANELS
    assert not PANELS.keys() & {"wait", "die", "fail"}


def test_a_worker_killed_while_it_answers_is_replaced_and_asked_again() -> None:
    async def work(asked: Asked) -> tuple[int, Reply]:
        task = asked.ask("wait", "question")
        killed = await asked.gate.begun("question")
        os.kill(killed, signal.SIGKILL)
        await asked.gate.begun("question", times=2)
        await asked.gate.open("question")
        return killed, await task

    killed, reply = run(work)
    assert reply.status == 200
    assert told(reply)["pid"] != killed


def test_a_question_asked_again_has_its_time_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would have called the first attempt slow is not there any more when the second runs."""

    async def work(asked: Asked) -> list[bool]:
        timers: list[asyncio.TimerHandle] = []
        loop = asyncio.get_running_loop()
        later = loop.call_later

        def call_later(delay: float, call: Any, *args: Any) -> asyncio.TimerHandle:
            timer = later(delay, call, *args)
            if delay == pool.SLOW:
                timers.append(timer)
            return timer

        monkeypatch.setattr(loop, "call_later", call_later)
        task = asked.ask("wait", "question")
        os.kill(await asked.gate.begun("question"), signal.SIGKILL)
        await asked.gate.begun("question", times=2)
        found = [timer.cancelled() for timer in timers]
        await asked.gate.open("question")
        await task
        return found

    assert run(work) == [True, False]


def test_a_question_that_kills_its_worker_says_so_and_the_next_is_answered() -> None:
    async def work(asked: Asked) -> tuple[Reply, Reply]:
        return await asked.ask("die"), await asked.ask("tell")

    died, after = run(work)
    assert (died.status, told(died)["message"]) == (504, "the process that worked on this died, twice")
    assert after.status == 200


def test_a_late_answer_is_given_up_and_its_process_ended() -> None:
    async def work(asked: Asked) -> tuple[Reply, set[int], Reply]:
        worker = told(await asked.ask("tell"))["pid"]
        late = await asked.ask("wait", "for ever", seconds=0.2)
        return late, gone({worker}), await asked.ask("tell")

    late, left, after = run(work)
    assert late.status == 504
    assert told(late)["message"].startswith("no answer within 0.2 seconds")
    assert not left
    assert after.status == 200


def test_what_a_worker_started_ends_with_it() -> None:
    async def work(asked: Asked) -> tuple[set[int], set[int]]:
        worker = told(await asked.ask("tell"))["pid"]
        task = asked.ask("wait_in_sets", "for ever")
        pids = {worker, await asked.gate.begun("for ever")}
        task.cancel()  # the browser is gone
        await asyncio.wait([task])
        return pids, gone(pids)

    pids, left = run(work)
    assert len(pids) == 2
    assert not left


def test_memory_and_mistakes_are_told() -> None:
    async def work(asked: Asked) -> list[Reply]:
        return [await asked.ask(name) for name in ("swallow", "fail", "tell")]

    swallowed, failed, after = run(work)
    assert (swallowed.status, told(swallowed)["kind"]) == (504, "no answer")
    assert "memory" in told(swallowed)["message"]
    assert (failed.status, told(failed)["kind"]) == (500, "mistake")
    assert "ZeroDivisionError: one / zero" in told(failed)["message"]
    assert after.status == 200


@pytest.mark.parametrize("kept", [True, False])
def test_a_worker_is_kept_after_an_answer_only(monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    monkeypatch.setattr(pool, "KEPT", (200,) if kept else ())

    async def work(asked: Asked) -> list[int]:
        return [told(await asked.ask("tell"))["pid"] for _ in range(2)]

    first, second = run(work)
    assert (first == second) is kept


@pytest.mark.usefixtures("slow")
def test_hard_questions_delay_nobody() -> None:
    """Every place has a hard question, of several people; another's quick one is answered before them."""

    async def work(asked: Asked) -> tuple[Reply, list[int]]:
        hard = [asked.ask("wait", page, page=page) for page in ("hard", "harder")]
        for page in ("hard", "harder"):
            await asked.gate.begun(page)
        quick = await asked.ask("tell", page="quick")
        await asked.gate.open("hard", "harder")
        return quick, await statuses(*hard)

    quick, hard = run(work, size=2)
    assert (quick.status, hard) == (200, [200, 200])


@pytest.mark.usefixtures("slow")
def test_where_the_slow_lane_is_full_the_page_with_most_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LEAST_RUN", 0.0)

    async def work(asked: Asked) -> tuple[int, Reply, list[int]]:
        names = ["other", *(f"greedy {number}" for number in range(pool.SLOW_PER_PLACE))]
        tasks: list[asyncio.Task[Reply]] = []
        for name in names:
            tasks.append(asked.ask("wait", name, page=name.split()[0]))
            await asked.gate.begun(name)
        (ended,), left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await asked.gate.open(*names)
        return tasks.index(ended), await ended, await statuses(*left)

    place, ended, left = run(work)
    assert place == 1  # the one that has run longest, not of the page that has only one
    assert (ended.status, told(ended)["message"].split(";")[0]) == (503, "too many hard questions at once")
    assert left == [200] * pool.SLOW_PER_PLACE


@pytest.mark.usefixtures("slow")
def test_on_a_busy_machine_all_have_their_time_and_no_more_run_than_it_bears(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "LEAST_RUN", NEVER)

    async def work(asked: Asked) -> tuple[int, list[int]]:
        names = [str(number) for number in range(pool.RUNNING_PER_PLACE + 2)]
        tasks = [asked.ask("wait", name) for name in names]
        for name in names[: pool.RUNNING_PER_PLACE]:
            await asked.gate.begun(name)
        while len(asked.pool._slow) < pool.RUNNING_PER_PLACE:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.001)
        running = asked.pool._slow, asked.pool._quick  # pyright: ignore[reportPrivateUsage]
        most = sum(map(len, running))
        await asked.gate.open(*names)
        return most, await statuses(*tasks)

    most, found = run(work)
    assert most == pool.RUNNING_PER_PLACE
    assert found == [200] * (pool.RUNNING_PER_PLACE + 2)


def test_pages_take_turns() -> None:
    async def work(asked: Asked) -> list[str]:
        names = ("many 1", "many 2", "many 3", "many 4", "one")
        tasks = [asked.ask("wait", name, page=name.split()[0]) for name in names]
        for name in names[:2]:
            await asked.gate.begun(name)
        await asked.gate.open("many 1")
        await asked.gate.begun("one")
        came = [*asked.gate.came]
        await asked.gate.open(*names)
        await statuses(*tasks)
        return came

    assert sorted(run(work, size=2)) == ["many 1", "many 2", "one"]


def test_what_a_keystroke_waits_for_goes_first() -> None:
    async def work(asked: Asked) -> list[str]:
        names = ("running", "later", "latest", "first")
        tasks = [asked.ask("wait", name, page=name, first=name == "first") for name in names]
        await asked.gate.begun("running")
        await asked.gate.open(*names)
        await statuses(*tasks)
        return asked.gate.came

    assert run(work) == ["running", "first", "later", "latest"]


def test_a_page_is_answered_by_the_worker_that_knows_it() -> None:
    async def work(asked: Asked) -> list[list[int]]:
        both = [asked.ask("wait", page, page=page) for page in "ab"]
        pids = [await asked.gate.begun(page) for page in "ab"]
        await asked.gate.open("a", "b")
        await statuses(*both)
        return [
            [pid, told(await asked.ask("tell", page=page))["pid"]]
            for pid, page in zip(pids, "ab", strict=True)
        ]

    (a, again_a), (b, again_b) = run(work, size=2)
    assert (a, b) == (again_a, again_b)
    assert a != b


def test_a_newer_question_takes_the_place_of_an_older() -> None:
    async def work(asked: Asked) -> list[int]:
        blocking = asked.ask("wait", "blocking", page="b")
        await asked.gate.begun("blocking")
        older = asked.ask("tell", asker="field")
        beside = asked.ask("tell", asker="another field")
        newer = asked.ask("tell", asker="field")
        await asked.gate.open("blocking")
        return await statuses(blocking, older, beside, newer)

    assert run(work) == [200, 409, 200, 200]


def test_a_question_whose_turn_has_just_come_can_still_be_ended() -> None:
    async def work(asked: Asked) -> tuple[list[int], list[str]]:
        async def one_after_the_other() -> Reply:
            """The second is asked in the very moment in which the first leaves its place."""
            await asked.asking("wait", "blocking", page="b")
            return await asked.asking("tell", asker="field")

        newer = asyncio.ensure_future(one_after_the_other())
        await asked.gate.begun("blocking")
        older = asked.ask("wait", "older", asker="field")
        await asyncio.sleep(0)
        await asked.gate.open("blocking")
        return await statuses(older, newer), asked.gate.came

    assert run(work) == ([409, 200], ["blocking"])


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("late", [True, False])
def test_a_slow_question_ends_when_a_newer_comes(late: bool) -> None:
    async def work(asked: Asked) -> list[int]:
        older = asked.ask("wait", "for ever", asker="field")
        await asked.gate.begun("for ever")
        while late and not asked.pool._slow:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.001)
        return await statuses(older, asked.ask("tell", asker="field"))

    assert run(work) == [409, 200]


def test_a_quick_question_is_answered_though_a_newer_waits() -> None:
    async def work(asked: Asked) -> list[int]:
        older = asked.ask("wait", "older", asker="field")
        await asked.gate.begun("older")
        newer = asked.ask("tell", asker="field")
        await asyncio.sleep(0)
        await asked.gate.open("older")
        return await statuses(older, newer)

    assert run(work) == [200, 200]


def test_too_many_questions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST_WAITING", 3)

    async def work(asked: Asked) -> list[int]:
        return await statuses(*(asked.ask("tell") for _ in range(6)))

    assert run(work) == [200, 200, 200, 200, 503, 503]


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (
            "raise SystemExit('no such library')",
            "it ended before it was ready; the terminal of `lattend serve` says why",
        ),
        ("import time; time.sleep(600)", "it took too long"),
    ],
)
def test_a_fork_server_that_cannot_start_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], ending: str, reason: str
) -> None:
    monkeypatch.setattr(fork_server, "PROGRAM", ending)
    if "took" in reason:
        monkeypatch.setattr(pool, "START", 0.1)

    async def work(asked: Asked) -> Reply:
        return await asked.ask("tell")

    reply = run(work)
    assert (reply.status, told(reply)["kind"]) == (503, "busy")
    assert told(reply)["message"] == f"no worker could be started: {reason}"
    assert ("no such library" in capfd.readouterr().err) is ("ended" in reason)


NO_SECOND = """import itertools, os
def fork(forks=itertools.count(1), real=os.fork):
    if next(forks) == 2:
        raise BlockingIOError("no more processes")
    return real()
os.fork = fork"""


@pytest.mark.usefixtures("slow")
def test_where_no_process_can_be_forked_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program(NO_SECOND, monkeypatch)

    async def work(asked: Asked) -> tuple[list[int], list[str]]:
        running = asked.ask("wait", "running", page="b")
        await asked.gate.begun("running")
        refused = await asked.ask("tell")
        after = await asked.ask("tell")
        await asked.gate.open("running")
        return [refused.status, after.status, *await statuses(running)], asked.gate.came

    assert run(work) == ([503, 200, 200], ["running"])
    assert "no worker could be started: no more processes" in capfd.readouterr().err


def test_a_fork_server_that_ended_is_started_again() -> None:
    async def work(asked: Asked) -> tuple[Reply, bool]:
        process = asked.pool._fork_server._process  # pyright: ignore[reportPrivateUsage]
        assert process is not None
        process.kill()
        process.wait()
        return await asked.ask("tell"), alive(process.pid)

    reply, still = run(work)
    assert reply.status == 200
    assert not still


def test_workers_are_replaced_when_worn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST_ANSWERS", 2)

    async def work(asked: Asked) -> list[int]:
        return [told(await asked.ask("tell"))["pid"] for _ in range(3)]

    first, second, third = run(work)
    assert first == second
    assert third != first
