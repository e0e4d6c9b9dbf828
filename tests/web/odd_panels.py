"""Panels for the tests of the pool: they sleep, die, fail, or take all memory there is."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from pydantic import BaseModel

from lattend.web.panel import Panel, Question
from lattend.web.panels import PANELS


class Amount(Question):
    """How much: seconds, bytes, or nothing."""

    amount: float = 0


class Told(BaseModel):
    """The worker, and what it started."""

    pid: int
    child: int = 0


def sleep(question: Amount) -> Told:
    time.sleep(question.amount)
    return Told(pid=os.getpid())


def die(question: Amount) -> Told:
    os.kill(os.getpid(), signal.SIGKILL)
    return Told(pid=0)


def swallow(question: Amount) -> Told:
    return Told(pid=len(bytearray(int(question.amount))))


def fail(question: Amount) -> Told:
    raise ZeroDivisionError("one / zero")


def sets(question: Amount) -> Told:
    """Set work that takes so long, in the library's own second process."""
    from lattend.budget import Budget
    from lattend.sets.guard import guarded

    child = guarded(os.getpid, budget=Budget(5))
    guarded(time.sleep, question.amount, budget=Budget(60))
    return Told(pid=os.getpid(), child=child)


def processes_of(root: int) -> set[int]:
    """A process and all that it started, and those started."""
    lines = subprocess.run(("ps", "-eo", "pid=,ppid="), capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in lines.splitlines())}
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def alive(pid: int) -> bool:
    """Whether the process is there and not only its exit code."""
    listed = ("ps", "-o", "stat=", "-p", str(pid))
    state = subprocess.run(listed, capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def gone(pids: set[int], seconds: float = 5.0) -> set[int]:
    """Those of the processes that are still there after so long at most."""
    end = time.monotonic() + seconds
    while (left := {pid for pid in pids if alive(pid)}) and time.monotonic() < end:
        time.sleep(0.02)
    return left


PANELS.update({f.__name__: Panel(f.__name__, "", Amount, Told, f) for f in (sleep, die, swallow, fail, sets)})
