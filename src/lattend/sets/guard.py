"""Work on rules from outside the catalogue runs in a second process, which is stopped at a deadline.

isl can take any amount of time, holds the interpreter lock while it does, and its own operation
limit can crash the process. The worker is started once and reused; one that is stopped is replaced.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import selectors
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from lattend.errors import DeadlineError, LattendError

DEADLINE = 1.2  # seconds of work; with starting a process, an answer comes within two
START = 30.0
MEMORY = 4 << 30
HEADER = struct.Struct("<Q")
READY = b"ready"
# What the worker will need is loaded before it says READY, outside of any deadline
PROGRAM = "import lattend.counts; from lattend.sets.guard import serve; serve()"

Result = TypeVar("Result")


def guarded(function: Callable[..., Result], *args: Any, trusted: bool, deadline: float | None) -> Result:
    """`function(*args)`: here when `trusted`, otherwise in the worker within `deadline` seconds."""
    if trusted:
        return function(*args)
    return _WORKER.call(function, args, DEADLINE if deadline is None else deadline)


class _Worker:
    """The second process and the pipes to it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = threading.Lock()

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], deadline: float) -> Any:
        request = pickle.dumps((function, args))
        with self.lock:
            process = self._started()
            if process.stdin is None or process.stdout is None:
                raise LattendError("the counting process has no pipes")
            until = time.monotonic() + deadline
            try:
                process.stdin.write(HEADER.pack(len(request)) + request)
                process.stdin.flush()
                size = HEADER.unpack(_read(process.stdout.fileno(), HEADER.size, until))[0]
                answer = _read(process.stdout.fileno(), size, until)
            except TimeoutError:
                self.stop()
                raise DeadlineError(f"no answer within {deadline:g} seconds") from None
            except (BrokenPipeError, EOFError):
                self.stop()
                raise DeadlineError("the counting process ran out of memory or crashed") from None
            except BaseException:
                self.stop()
                raise
        worked, value = pickle.loads(answer)
        if worked:
            return value
        raise value

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                process_group=0,  # Ctrl-C is for the caller, who then stops the worker
            )
            if self.process.stdout is not None:
                _read(self.process.stdout.fileno(), len(READY), time.monotonic() + START)
        return self.process

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()


_WORKER = _Worker()
atexit.register(_WORKER.stop)


def _read(descriptor: int, size: int, until: float) -> bytes:
    """Exactly `size` bytes, or TimeoutError at the time `until`."""
    found = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while len(found) < size:
            if not selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError
            part = os.read(descriptor, size - len(found))
            if not part:
                raise EOFError
            found += part
    return found


def serve() -> None:
    """The worker's loop: a function and its arguments come in, the result or the error goes out."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what isl prints must not mix with answers
    sink.write(READY)
    sink.flush()
    while header := source.read(HEADER.size):
        function, args = pickle.loads(source.read(HEADER.unpack(header)[0]))
        try:
            answer = (True, function(*args))
        except MemoryError:
            answer = (False, DeadlineError("it needs too much memory"))
        except Exception as error:  # whatever it is, it belongs to the caller
            answer = (False, error)
        message = pickle.dumps(answer)
        sink.write(HEADER.pack(len(message)) + message)
        sink.flush()
