"""The process for set work as a copy of this one: the same word is kept as by one that is started anew."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from lattend.budget import Budget
from lattend.errors import DeadlineError, LattendError
from lattend.sets import guard

FIVE = Budget(5)


def _abort() -> None:
    os.write(2, b"isl: out of memory\n")
    os.kill(os.getpid(), signal.SIGABRT)


def _fail() -> None:
    raise LattendError("as asked")


@pytest.fixture(autouse=True)
def forking() -> Iterator[None]:
    """Set work is done by a copy of this process."""
    worker = guard._WORKER  # pyright: ignore[reportPrivateUsage]
    worker.stop()
    guard.fork_for_sets()
    yield
    worker.stop()
    worker.forks = False


def test_it_is_another_process_and_stays() -> None:
    first = guard.guarded(os.getpid, budget=FIVE)
    assert first != os.getpid()
    assert guard.guarded(os.getpid, budget=FIVE) == first


def test_it_is_stopped_when_its_budget_is_spent() -> None:
    first = guard.guarded(os.getpid, budget=FIVE)
    with pytest.raises(DeadlineError, match=r"no answer within 0\.1 seconds"):
        guard.guarded(time.sleep, 60, budget=Budget(0.1))
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert guard.guarded(os.getpid, budget=FIVE) != first


def test_errors_and_last_words_come_back() -> None:
    with pytest.raises(LattendError, match="as asked"):
        guard.guarded(_fail, budget=FIVE)
    with pytest.raises(DeadlineError, match="died: SIGABRT, isl: out of memory"):
        guard.guarded(_abort, budget=FIVE)


def test_it_holds_none_of_our_files() -> None:
    source, sink = os.pipe()
    guard.guarded(os.getpid, budget=FIVE)
    os.close(sink)
    assert os.read(source, 1) == b""  # the end: nobody else holds the other side
    os.close(source)
