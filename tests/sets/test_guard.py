"""The worker: budgets, crashes, errors, a start that fails, and no process that is left behind."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import lattend as lt
from lattend.budget import DEFAULT, UNLIMITED, Budget
from lattend.errors import DeadlineError, DomainError, LattendError
from lattend.sets import guard

EXPLODES = " or ".join(f"({i}*q - {i + 3}*k) % {2 * i + 5} <= t - {i}" for i in range(2, 9))
FIVE = Budget(5)
SOURCE = str(Path(lt.__file__).parents[1])


def _sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "awake"


def _die() -> None:
    os._exit(9)


def _abort() -> None:
    os.write(2, b"isl: out of memory\n")
    os.kill(os.getpid(), signal.SIGABRT)


def _swallow() -> int:
    return len(bytearray(guard.MEMORY))


def _fail() -> None:
    raise LattendError("as asked")


class _Homebound(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def _fail_oddly() -> None:
    raise _Homebound(1, 2)


def _process() -> int:
    return os.getpid()


def _nested() -> int:
    return guard.guarded(_process, budget=FIVE)


@pytest.fixture
def no_worker() -> None:
    """The next call starts one."""
    guard._WORKER.stop()  # pyright: ignore[reportPrivateUsage]


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended but was not waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(process: int) -> bool:
    """Whether it ends soon."""
    until = time.monotonic() + 20
    while alive(process) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(process)


def ran(code: str, where: Path, *, python: tuple[str, ...] = ("-c",)) -> subprocess.CompletedProcess[str]:
    """The code in a process of its own, started in a directory."""
    paths = [SOURCE, str(Path(__file__).parent)]
    return subprocess.run(
        [sys.executable, *python, textwrap.dedent(code)],
        cwd=where,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_worker_is_another_process_and_is_reused() -> None:
    first = guard.guarded(_process, budget=FIVE)
    assert first != os.getpid()
    assert guard.guarded(_process, budget=FIVE) == first
    assert guard.guarded(_process, budget=UNLIMITED) == os.getpid()


def test_what_the_worker_asks_for_it_does_itself() -> None:
    assert guard.guarded(_nested, budget=FIVE) == guard.guarded(_process, budget=FIVE)


def test_it_is_stopped_at_the_deadline_and_replaced() -> None:
    guard.guarded(_process, budget=FIVE)
    started = time.monotonic()
    with pytest.raises(DeadlineError, match=r"no answer within 0\.3 seconds"):
        guard.guarded(_sleep, 60, budget=Budget(0.3))
    assert time.monotonic() - started < 30  # it was asked to sleep for 60
    assert guard.guarded(_sleep, 0, budget=FIVE) == "awake"


def test_an_allowance_is_shared_by_several_calls() -> None:
    shared = Budget(0.5).shared()
    guard.guarded(_sleep, 0.4, budget=shared)
    with pytest.raises(DeadlineError, match=r"no answer within 0\.5 seconds"):
        guard.guarded(_sleep, 0.4, budget=shared)
    running = guard.guarded(_process, budget=FIVE)
    with pytest.raises(DeadlineError):  # nothing is left, so that nothing is tried
        guard.guarded(_sleep, 0, budget=shared)
    assert guard.guarded(_process, budget=FIVE) == running
    assert guard.guarded(_sleep, 0, budget=Budget(math.inf)) == "awake"


def _load_slowly() -> None:
    time.sleep(0.6)


def test_loading_does_not_count() -> None:
    """To load sympy takes as long as the machine is busy."""
    assert guard.guarded(_sleep, 0, budget=Budget(0.3), loading=_load_slowly) == "awake"


@pytest.mark.parametrize("seconds", [-1.0, math.nan])
def test_a_deadline_is_a_number_of_seconds(seconds: float) -> None:
    with pytest.raises(DomainError, match="a deadline is a number of seconds from 0 up, or inf; got"):
        lt.rule("k <= q").count(deadline=seconds)


def test_what_is_remembered_is_asked_once() -> None:
    guard.forget_sets()
    first = guard.remembered(time.monotonic, budget=DEFAULT)
    assert guard.remembered(time.monotonic, budget=Budget(9)) == first
    guard.forget_sets()
    assert guard.remembered(time.monotonic, budget=DEFAULT) != first


def test_a_crash_is_an_error_with_its_reason_and_not_a_hang() -> None:
    with pytest.raises(DeadlineError, match="the process that does set work died: exit code 9"):
        guard.guarded(_die, budget=FIVE)
    with pytest.raises(DeadlineError, match="died: SIGABRT, isl: out of memory"):
        guard.guarded(_abort, budget=FIVE)
    assert guard.guarded(_sleep, 0, budget=FIVE) == "awake"


def test_memory_is_bounded() -> None:
    with pytest.raises(DeadlineError, match="too much memory"):
        guard.guarded(_swallow, budget=Budget(20))


@pytest.mark.parametrize("missing", [ImportError, AttributeError, ValueError, OSError])
def test_a_platform_without_limits_of_memory_does_without(
    monkeypatch: pytest.MonkeyPatch, missing: type[Exception]
) -> None:
    class Resource:
        """macOS refuses the limit, Windows has no such module."""

        def __getattr__(self, name: str) -> object:
            raise missing(name)

    monkeypatch.setitem(sys.modules, "resource", None if missing is ImportError else Resource())  # pyright: ignore[reportArgumentType]
    guard.limit_memory()


def test_errors_come_back_as_they_are() -> None:
    with pytest.raises(LattendError, match="as asked"):
        guard.guarded(_fail, budget=FIVE)
    with pytest.raises(LattendError, match="_Homebound: 1 and 2"):  # it cannot be made again here
        guard.guarded(_fail_oddly, budget=FIVE)
    assert guard.guarded(_sleep, 0, budget=FIVE) == "awake"


@pytest.mark.usefixtures("no_worker")
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit('no isl here')", "exit code 1, no isl here"),
        ("print('hello, this is not Python')", r"answered b'hello, this is '"),
        ("import time; time.sleep(60)", "no answer within 0.5 seconds"),
    ],
)
def test_a_start_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, program: str, reason: str) -> None:
    monkeypatch.setattr(guard, "PROGRAM", program)
    monkeypatch.setattr(guard, "START", 0.5 if "sleep" in program else 30.0)
    with pytest.raises(LattendError, match="the process that does set work did not start: ") as caught:
        lt.rule("k <= q and q - k <= 77").count()
    assert reason in str(caught.value)
    monkeypatch.undo()
    assert guard.guarded(_sleep, 0, budget=FIVE) == "awake"


@pytest.mark.usefixtures("no_worker")
def test_a_python_that_cannot_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(LattendError, match=r"did not start: .*No such file.*/no/such/python"):
        lt.rule("k <= q and q - k <= 78").count()


@pytest.mark.parametrize("name", ["fractions", "pickle", "islpy", "lattend"])
def test_modules_of_the_current_directory_are_not_taken_for_others(name: str, tmp_path: Path) -> None:
    """As the command does it, this process does not look there; so the worker must not."""
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('a file of the user')\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "count.py").write_text(
        "import lattend as lt; print(lt.rule('k <= q and q - k <= t').count(n=1000, t=9))"
    )
    found = ran("bin/count.py", tmp_path, python=())
    assert (found.stdout.strip(), found.stderr) == ("9955", "")  # 1000*10 - 9*10/2


def test_no_process_is_left_after_the_end(tmp_path: Path) -> None:
    ended = ran(
        """
        import test_guard
        from lattend.sets import guard
        print(guard.guarded(test_guard._process, budget=test_guard.FIVE))
        """,
        tmp_path,
    )
    assert gone(int(ended.stdout)), ended.stderr


@pytest.mark.parametrize("main", [True, False])
def test_no_process_is_left_after_a_kill(tmp_path: Path, main: bool) -> None:
    """Idle, or at work: from the main thread Linux ends it, from another one its own deadline does."""
    call = "threading.Thread(target=work).start()" if not main else "work()"
    code = f"""
        import os, sys, threading, time
        import test_guard
        from lattend.sets import guard
        def work():
            print(guard.guarded(test_guard._process, budget=test_guard.FIVE), flush=True)
            guard.guarded(time.sleep, 600, budget=test_guard.Budget(2))
        {call}
        time.sleep(600)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, str(Path(__file__).parent)])},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    assert alive(worker)
    process.kill()
    process.wait()
    process.stdout.close()
    assert gone(worker)


def test_a_forked_process_has_a_worker_of_its_own(tmp_path: Path) -> None:
    found = ran(
        """
        import os, sys, warnings
        import test_guard
        from lattend.sets import guard
        warnings.simplefilter("error")
        ask = lambda: guard.guarded(test_guard._process, budget=test_guard.FIVE)
        first = ask()
        descriptor = guard._WORKER.process.stdin.fileno()
        child = os.fork()
        if child == 0:
            try:
                os.fstat(descriptor)
                open_still = True
            except OSError:
                open_still = False
            own = ask()
            guard._WORKER.stop()
            os._exit(0 if own != first and not open_still else 1)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), ask() == first)
        """,
        tmp_path,
    )
    assert (found.stdout.split(), found.stderr) == (["0", "True"], "")


def test_two_threads_take_turns() -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(guard.guarded(_sleep, 0.05, budget=FIVE)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["awake"] * 4


def test_a_count_that_explodes_says_what_to_fix_and_what_still_works() -> None:
    two_letters = lt.rule("k <= q and (q - k <= t or k < g or (q - k) % s == 0)")
    with pytest.raises(
        DeadlineError, match=r"give s a number, as in count\(s=…\), or more time: count\(dead"
    ):
        two_letters.count(deadline=0)
    with pytest.raises(DeadlineError, match=r"give g a number, as in count\(g=…\), or more"):
        two_letters.at(s=4, t=3).count(deadline=0)
    with pytest.raises(DeadlineError, match=r"counting at given numbers still works: count\(n=…, t=…\)"):
        lt.rule(EXPLODES).count()
    rule = lt.rule(EXPLODES)
    assert rule.count(n=40, t=6) == rule.mask(n=40, t=6).sum()
