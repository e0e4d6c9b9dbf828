"""The worker: deadlines, crashes, errors, and that the catalogue does not need it."""

from __future__ import annotations

import os
import time

import pytest

import lattend as lt
from lattend.errors import DeadlineError, LattendError
from lattend.sets import guard

EXPLODES = " or ".join(f"({i}*q - {i + 3}*k) % {2 * i + 5} <= t - {i}" for i in range(2, 9))


def _sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "awake"


def _die() -> None:
    os._exit(9)


def _swallow() -> int:
    return len(bytearray(guard.MEMORY))


def _fail() -> None:
    raise LattendError("as asked")


def _process() -> int:
    return os.getpid()


def test_the_worker_is_another_process_and_is_reused() -> None:
    first = guard.guarded(_process, trusted=False, deadline=5)
    assert first != os.getpid()
    assert guard.guarded(_process, trusted=False, deadline=5) == first
    assert guard.guarded(_process, trusted=True, deadline=5) == os.getpid()


def test_it_is_stopped_at_the_deadline_and_replaced() -> None:
    guard.guarded(_process, trusted=False, deadline=5)
    started = time.monotonic()
    with pytest.raises(DeadlineError, match=r"no answer within 0\.3 seconds"):
        guard.guarded(_sleep, 60, trusted=False, deadline=0.3)
    assert time.monotonic() - started < 30  # it was asked to sleep for 60
    assert guard.guarded(_sleep, 0, trusted=False, deadline=5) == "awake"


def test_a_crash_is_an_error_not_a_hang() -> None:
    with pytest.raises(DeadlineError, match="crashed"):
        guard.guarded(_die, trusted=False, deadline=5)
    assert guard.guarded(_sleep, 0, trusted=False, deadline=5) == "awake"


def test_memory_is_bounded() -> None:
    with pytest.raises(DeadlineError, match="too much memory"):
        guard.guarded(_swallow, trusted=False, deadline=20)


def test_errors_come_back_as_they_are() -> None:
    with pytest.raises(LattendError, match="as asked"):
        guard.guarded(_fail, trusted=False, deadline=5)


def test_a_count_that_explodes_says_what_still_works() -> None:
    with pytest.raises(DeadlineError, match=r"counting at given numbers still works: count\(n=…, t=…\)"):
        lt.rule(EXPLODES).count()
    rule = lt.rule(EXPLODES)
    assert rule.count(n=40, t=6) == rule.mask(n=40, t=6).sum()
