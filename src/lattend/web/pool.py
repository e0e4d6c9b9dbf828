"""Pool: processes that answer, so that one hard question never delays another person.

Quick questions share `size` places. A question that has run for SLOW seconds leaves its place to the next
and goes on beside, in the slow lane; where the lane is full, the one there that has run longest, of the page
that has most, is ended, once it had LEAST_RUN. So a place is free within SLOW seconds, or LEAST_RUN where all
are slow. Of those in the queue, the page with the fewest running is next, after all that a keystroke waits
for; of what one asker asks only the newest counts.

`concurrent.futures` cannot promise this: its process pool cannot end a call that runs, and breaks as a whole
when one worker dies, as one without memory does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import time
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lattend.web.fork_server import ForkServer, connect
from lattend.web.panel import Problem
from lattend.web.worker import HEADER, packed

START = 60.0  # seconds until a worker is ready, for all that one question needs
SLOW = 0.3  # seconds after which a question leaves its place to the next
SLOW_PER_PLACE = 3  # questions in the slow lane
RUNNING_PER_PLACE = SLOW_PER_PLACE + 2  # those that are new in a full lane too, and the quick ones
LEAST_RUN = 1.0  # seconds that each may run however full it is: on a busy machine all are slow
MOST_WAITING = 2000  # questions in the queue
MOST_ANSWERS = 2000  # answers after which a worker is replaced by a fresh one
KEPT = (
    200,
    422,
)  # after others, out of memory or too late, it is replaced: it may hold what it could not end


Message = tuple[str, str, bytes]  # panel, format, question as JSON


class Reply(NamedTuple):
    """The HTTP reply to a question."""

    status: int
    media: str
    body: bytes


class Asking(NamedTuple):
    """Who asks: a page and a part of it. A newer question replaces the older one; `first` ones go ahead."""

    page: Hashable
    asker: Hashable
    first: bool = False


@dataclass(eq=False)
class Worker:
    """One process, which answers one question at a time."""

    pid: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    answered: int = 0
    page: Hashable = None  # which asked last: what was found for it is still known here

    @classmethod
    async def start(cls, fork_server: ForkServer, latest: float) -> Worker:
        """A worker that is ready, by this time of the loop; OSError says why there is none."""
        reader, writer = await connect(fork_server.fork())
        try:
            async with asyncio.timeout_at(latest):
                return cls(await _received(reader), reader, writer)
        except BaseException as error:
            writer.close()
            if isinstance(error, TimeoutError):
                raise OSError("it took too long") from None
            if isinstance(error, EOFError | ConnectionError):
                raise OSError(
                    "it ended before it was ready; the terminal of `lattend serve` says why"
                ) from None
            raise

    async def ask(self, message: Message) -> Reply:
        """The reply; EOFError or ConnectionError where the process died over it."""
        self.writer.write(packed(message))
        result = Reply(*await _received(self.reader))
        self.answered += 1
        return result

    def end(self) -> None:
        """End the process, whatever it is doing; what it started ends with it."""
        self.writer.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, getattr(signal, "SIGKILL", signal.SIGTERM))


@dataclass(eq=False)
class QueuedQuestion:
    """A question from its place in the queue to its answer: who asks, and since when it runs."""

    asking: Asking
    admitted: asyncio.Future[None]
    task: asyncio.Task[Reply] | None = None  # waits until it is admitted, then for the answer
    begun: float = 0.0
    superseded: bool = False
    reason: Reply | None = None  # why it was ended

    def end(self, reason: Reply) -> None:
        """Cancel the question, queued or running."""
        self.reason = reason
        self.admitted.cancel()
        if self.task is not None:
            self.task.cancel()


@dataclass
class Pool:
    """A pool of workers with a limited number of questions at a time."""

    size: int
    torch: bool = False
    _free: list[Worker] = field(default_factory=list)
    _waiting: list[QueuedQuestion] = field(default_factory=list)
    _quick: set[QueuedQuestion] = field(default_factory=set)
    _slow: list[QueuedQuestion] = field(default_factory=list)
    _starting: set[asyncio.Task[None]] = field(default_factory=set)
    _stopped: bool = False

    def __post_init__(self) -> None:
        self._fork_server = ForkServer(self.torch)

    async def ready(self) -> None:
        """Start the workers, and wait for them."""
        await asyncio.gather(*(self._refill() for _ in range(self.size)))

    def stop(self) -> None:
        """End all workers."""
        self._stopped = True
        for task in self._starting:
            task.cancel()
        for worker in self._free:
            worker.end()
        self._fork_server.stop()

    async def ask(self, message: Message, asking: Asking, seconds: float) -> Reply:
        """The answer to (panel, format, question). An older question of the same asker makes way."""
        if len(self._waiting) >= MOST_WAITING:
            return problem(503, "busy", "too many questions are waiting; try again in a moment")
        queued = QueuedQuestion(asking, asyncio.get_running_loop().create_future())
        queued.task = asyncio.ensure_future(self._answer(queued, message, seconds))
        self._supersede(queued)
        self._waiting.append(queued)
        self._admit()
        try:
            return await queued.task
        except asyncio.CancelledError:
            if queued.reason is None:  # whoever asked is gone, or the server stops
                raise
            return queued.reason
        finally:
            self._leave(queued)

    def _supersede(self, newer: QueuedQuestion) -> None:
        """Cancel older questions of the same asker that wait or are slow."""
        now = time.monotonic()
        for older in (*self._waiting, *self._quick, *self._slow):
            if older.asking == newer.asking:
                older.superseded = True
                if not older.begun or now - older.begun >= SLOW:
                    older.end(SUPERSEDED)

    def _admit(self) -> None:
        """Give free places to those who wait, the page with the fewest running first."""
        self._waiting = [queued for queued in self._waiting if not queued.admitted.done()]
        most = self.size * RUNNING_PER_PLACE - len(self._slow)
        while self._waiting and len(self._quick) < min(self.size, most):
            running = Counter(queued.asking.page for queued in (*self._quick, *self._slow))
            queued = min(self._waiting, key=lambda one: (not one.asking.first, running[one.asking.page]))
            self._waiting.remove(queued)
            self._quick.add(queued)
            queued.admitted.set_result(None)

    def _to_slow_lane(self, queued: QueuedQuestion) -> None:
        if queued not in self._quick:
            return
        if queued.superseded:
            queued.end(SUPERSEDED)
            return
        self._quick.discard(queued)
        self._slow.append(queued)
        self._thin_out()
        self._admit()

    def _thin_out(self) -> None:
        """Cancel the longest slow question of the page with the most, if the slow lane is full."""
        going_on = [one for one in self._slow if one.reason is None]  # those ended leave only later
        if len(going_on) <= self.size * SLOW_PER_PLACE:
            return
        pages = Counter(one.asking.page for one in going_on)
        longest = max(going_on, key=lambda one: (pages[one.asking.page], -one.begun))
        left = LEAST_RUN - (time.monotonic() - longest.begun)
        if left <= 0:
            longest.end(CROWDED)
        else:
            asyncio.get_running_loop().call_later(left, self._thin_out)

    def _leave(self, queued: QueuedQuestion) -> None:
        self._quick.discard(queued)
        for line in (self._waiting, self._slow):
            if queued in line:
                line.remove(queued)
        self._admit()

    async def _answer(self, queued: QueuedQuestion, message: Message, seconds: float) -> Reply:
        """The reply to an admitted question. It is asked once more if its worker died."""
        await queued.admitted
        loop = asyncio.get_running_loop()
        latest = loop.time() + START
        for _ in range(2):
            try:
                worker = self._take(queued.asking.page) or await Worker.start(self._fork_server, latest)
            except OSError as error:
                return problem(503, "busy", f"no worker could be started: {error}")
            kept = False
            queued.begun = time.monotonic()
            leaving = loop.call_later(SLOW, self._to_slow_lane, queued)
            try:
                async with asyncio.timeout(seconds):
                    result = await worker.ask(message)
                    kept = result.status in KEPT
                    return result
            except TimeoutError:
                late = f"no answer within {seconds:g} seconds; a simpler rule or smaller numbers may help"
                return problem(504, "no answer", late)
            except (OSError, EOFError):
                continue
            finally:
                leaving.cancel()
                self._give_back(worker, kept)
        return problem(504, "no answer", "the process that worked on this died, twice")

    def _take(self, page: Hashable) -> Worker | None:
        """A free worker, if possible the one that last answered this page."""
        if not self._free:
            return None
        chosen = next((worker for worker in self._free if worker.page == page), self._free[-1])
        self._free.remove(chosen)
        chosen.page = page
        return chosen

    def _give_back(self, worker: Worker, kept: bool) -> None:
        if kept and not self._stopped and worker.answered < MOST_ANSWERS and len(self._free) < self.size:
            self._free.append(worker)
            return
        worker.end()
        if len(self._free) < self.size and not self._stopped:
            task = asyncio.ensure_future(self._refill())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _refill(self) -> None:
        """One more free worker; a start that fails is tried again by the next question, which says so."""
        with contextlib.suppress(OSError):
            worker = await Worker.start(self._fork_server, asyncio.get_running_loop().time() + START)
            if len(self._free) < self.size and not self._stopped:
                self._free.append(worker)
            else:
                worker.end()


def problem(status: int, kind: str, message: str) -> Reply:
    """The reply that says why there is no answer."""
    described = Problem.model_validate({"kind": kind, "message": message})
    return Reply(status, "application/json", described.model_dump_json().encode())


SUPERSEDED = problem(409, "busy", "a newer question took the place of this one")
CROWDED = problem(503, "busy", "too many hard questions at once; this one was ended after it ran longest")


async def _received(reader: asyncio.StreamReader) -> Any:
    (size,) = HEADER.unpack(await reader.readexactly(HEADER.size))
    return pickle.loads(await reader.readexactly(size))
