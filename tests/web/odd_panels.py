"""Panels for the tests of the pool: they wait at a gate, die, fail, or take all memory there is.

A worker that is to know them calls `register`; the process of the tests never does.
"""

from __future__ import annotations

import os
import signal
import socket

from pydantic import BaseModel

from lattend.web.panel import Panel, Question
from lattend.web.panels import PANELS


class Odd(Question):
    """The gate at which to wait, a Unix socket, and the name to say there."""

    gate: str
    name: str


class Told(BaseModel):
    """The worker."""

    pid: int


def _wait_at(gate: str, name: str) -> None:
    """Say at the gate who is here, and wait until it opens."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(gate)
        asked.sendall(f"{os.getpid()} {name}\n".encode())
        asked.recv(1)


def wait(question: Odd) -> Told:
    _wait_at(question.gate, question.name)
    return Told(pid=os.getpid())


def wait_in_sets(question: Odd) -> Told:
    """The same as set work, which the library does in a second process."""
    from lattend.budget import Budget
    from lattend.sets.guard import guarded

    guarded(_wait_at, question.gate, question.name, budget=Budget(600))
    return Told(pid=os.getpid())


def tell(question: Odd) -> Told:
    return Told(pid=os.getpid())


def die(question: Odd) -> Told:
    os.kill(os.getpid(), signal.SIGKILL)
    return Told(pid=0)


def swallow(question: Odd) -> Told:
    return Told(pid=len(bytearray(10**12)))


def fail(question: Odd) -> Told:
    raise ZeroDivisionError("one / zero")


def register() -> None:
    """Add these to the panels of this process."""
    for answer in (wait, wait_in_sets, tell, die, swallow, fail):
        PANELS[answer.__name__] = Panel(answer.__name__, "", answer)
