"""Pool: processes that answer, so that one hard question never delays another person.

A worker that takes too long is killed and replaced; one that dies is replaced and its question asked again,
once. Of the questions that a page asks of one panel only the newest waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import threading
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from lattend.web.panel import Problem
from lattend.web.worker import serve

START = 60.0  # seconds until a worker is ready
WAITING = 400  # questions in line
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


class Reply(NamedTuple):
    """What goes to the page."""

    status: int
    media: str
    body: bytes


class _Worker:
    """One process, replaced when it is gone; used by one thread at a time."""

    def __init__(self, torch: bool) -> None:
        self.torch = torch
        self.process: BaseProcess | None = None
        self.pipe: Connection | None = None

    def start(self) -> None:
        """Start the process and wait until it is ready."""
        context: Any = multiprocessing.get_context(METHOD)
        if METHOD == "forkserver":
            context.set_forkserver_preload(["lattend.web.worker", "lattend.counts", "sympy"])
        ours, theirs = context.Pipe()
        self.pipe = ours
        process = self.process = context.Process(target=serve, args=(theirs, self.torch), daemon=True)
        process.start()
        theirs.close()
        if not ours.poll(START):
            self.stop()
            raise TimeoutError(f"a worker did not start within {START:g} seconds")
        ours.recv()

    def ask(self, message: tuple[str, str, bytes], seconds: float) -> Reply | None:
        """The reply; None where the process died over it."""
        if self.process is None or not self.process.is_alive():
            self.stop()
            self.start()
        assert self.pipe is not None
        try:
            self.pipe.send(message)
            if self.pipe.poll(seconds):
                return Reply(*self.pipe.recv())
        except (EOFError, OSError):
            self.stop()
            return None
        self.stop()
        return _problem(
            503,
            "no answer",
            f"no answer within {seconds:g} seconds; a simpler rule or smaller numbers may help",
        )

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        process, pipe = self.process, self.pipe
        self.process = self.pipe = None
        if pipe is not None:
            pipe.close()
        if process is not None:
            process.kill()
            process.join()


def _answer(worker: _Worker, message: tuple[str, str, bytes], seconds: float) -> Reply:
    """The reply, asked for again where the worker died over it."""
    found = worker.ask(message, seconds) or worker.ask(message, seconds)
    return found or _problem(503, "no answer", "the process that worked on this died, twice")


def _problem(status: int, kind: str, message: str) -> Reply:
    problem = Problem.model_validate({"kind": kind, "message": message})
    return Reply(status, "application/json", problem.model_dump_json().encode())


@dataclass
class Pool:
    """So many workers, each with a thread that waits for it."""

    size: int
    torch: bool = False
    _idle: asyncio.LifoQueue[_Worker] = field(default_factory=asyncio.LifoQueue)
    _workers: list[_Worker] = field(default_factory=list)
    _waiting: dict[Hashable, asyncio.Event] = field(default_factory=dict)
    _line: int = 0

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(self.size, f"lattend-pool-{self.size}")
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start all workers; questions wait until the first is ready."""
        self._workers = [_Worker(self.torch) for _ in range(self.size)]
        loop = asyncio.get_running_loop()
        for worker in self._workers:
            future = loop.run_in_executor(self._threads, worker.start)
            future.add_done_callback(lambda _, worker=worker: self._idle.put_nowait(worker))

    def stop(self) -> None:
        """End all workers."""
        self._stopping.set()
        for worker in self._workers:
            worker.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def ask(self, panel: str, form: str, question: bytes, *, owner: Hashable, seconds: float) -> Reply:
        """The answer of a panel; `owner` is the page that asks, whose older question makes way."""
        if self._line >= WAITING:
            return _problem(503, "busy", "too many questions are waiting; try again in a moment")
        worker = await self._next((owner, panel, form))
        if worker is None:
            return _problem(409, "busy", "a newer question took the place of this one")
        loop = asyncio.get_running_loop()
        answering = loop.run_in_executor(self._threads, _answer, worker, (panel, form, question), seconds)
        # Given back when its thread is done with it, also where nobody waits any more
        answering.add_done_callback(lambda _: self._idle.put_nowait(worker))
        return await asyncio.shield(answering)

    async def _next(self, owner: Hashable) -> _Worker | None:
        """An idle worker; None where a newer question of the same owner came while this one waited."""
        with contextlib.suppress(asyncio.QueueEmpty):
            return self._idle.get_nowait()
        before = self._waiting.get(owner)
        if before is not None:
            before.set()
        superseded = self._waiting[owner] = asyncio.Event()
        self._line += 1
        getting, giving_up = asyncio.ensure_future(self._idle.get()), asyncio.ensure_future(superseded.wait())
        try:
            await asyncio.wait((getting, giving_up), return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                return getting.result()
            return None
        finally:
            self._line -= 1
            giving_up.cancel()
            if not getting.done():
                getting.cancel()
            if self._waiting.get(owner) is superseded:
                del self._waiting[owner]
