"""ForkedProcess: a copy of this process that runs one function, held as subprocess holds a program."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from subprocess import TimeoutExpired
from typing import IO

HANDLES = 1024  # open files that a copy closes: the sockets of this process are not its own
NAP = 0.005  # seconds between looks at a process that ends


class ForkedProcess:
    """The copy reads what is written to `stdin`, and writes to `stdout`; errors go to the file given."""

    def __init__(self, run: Callable[[], None], stderr: IO[bytes]) -> None:
        self.returncode: int | None = None
        source, stdin = os.pipe()
        stdout, sink = os.pipe()
        errors = os.dup(stderr.fileno())
        self.pid = os.fork()
        if self.pid == 0:
            _become(run, (source, sink, errors))
        for handle in (source, sink, errors):
            os.close(handle)
        self.stdin: IO[bytes] = os.fdopen(stdin, "wb", buffering=0)
        self.stdout: IO[bytes] = os.fdopen(stdout, "rb", buffering=0)

    def poll(self) -> int | None:
        """How it ended, as subprocess says it; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended."""
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise TimeoutExpired("set work", timeout or 0)
            time.sleep(NAP)
        return code

    def kill(self) -> None:
        """End it, whatever it is doing."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


def _become(run: Callable[[], None], handles: tuple[int, int, int]) -> None:
    """In the copy: take the pipes as the standard files, run, and never return."""
    code = 1
    try:
        for descriptor, handle in enumerate(handles):
            os.dup2(handle, descriptor)
        os.closerange(3, HANDLES)
        run()
        code = 0
    finally:
        os._exit(code)
