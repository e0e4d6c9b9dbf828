"""ForkedProcess: a copy of this process that runs one function, with the interface of subprocess.Popen."""

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
    """A copy of this process with pipes `stdin` and `stdout`; its errors go to a file."""

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
        """Returns its exit code as subprocess does; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits until it has ended and returns its exit code."""
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise TimeoutExpired("set work", timeout or 0)
            time.sleep(NAP)
        return code

    def kill(self) -> None:
        """Kills it."""
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
