"""Set work runs in a second process, which is stopped when its budget is spent.

isl can take any amount of time, holds the interpreter lock while it does, and its own operation
limit can crash the process. The worker is started once and reused; one that is stopped is replaced.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import IO, Any, TypeVar

from lattend.budget import Budget
from lattend.errors import DeadlineError, LattendError
from lattend.recent import Recent

HANDLES = 1024  # open files that a copy closes: the sockets of this process are not its own
NAP = 0.005  # seconds between looks at a process that ends
START = 30.0
MEMORY = 4 << 30
FOREVER = 1e6  # more seconds than that are no limit
GRACE = 5.0  # a worker whose caller is gone ends itself so long after its deadline
REMEMBERED = 1024
HEADER = struct.Struct("<Q")
READY, BEGUN = b"lattend worker\n", b"."
# Started with -I -S: its path is that of this process, the standard library before all else. What it will
# need is loaded before it greets, outside of any deadline
PROGRAM = """import sys; sys.path += {path!r}
import lattend.counts
from lattend.sets.guard import serve
serve({tied!r})"""
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
Result = TypeVar("Result")
_KNOWN: Recent[tuple[Any, ...], Any] = Recent(REMEMBERED)


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


def guarded(
    function: Callable[..., Result],
    *args: Any,
    budget: Budget,
    loading: Callable[[], object] | None = None,
    optional: bool = False,
) -> Result:
    """Returns `function(*args)`, run in the worker within the budget, or in this process without a limit.

    `loading` is called before, outside of the budget: to load a library takes as long as the machine is busy.
    What is `optional` has another way behind it, so that being late with it misses nothing.
    """
    if budget.seconds is None or _WORKER.is_here:
        return function(*args)
    try:
        return _WORKER.call(function, args, budget, loading)
    except DeadlineError:
        _WORKER.missed += not optional
        raise


def deadlines_missed() -> int:
    """Returns how often set work of this process ended without a result, which a later call may have."""
    return _WORKER.missed


def remembered(function: Callable[..., Result], *args: Any, budget: Budget, optional: bool = False) -> Result:
    """The same, asked once for the same arguments, whatever the budget."""
    return _KNOWN.find((function, args), lambda: guarded(function, *args, budget=budget, optional=optional))


def forget_sets() -> None:
    """Empty the memory of `remembered`; for measuring."""
    _KNOWN.clear()


class _Worker:
    """The second process and the pipes to it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self.stderr: IO[bytes] | None = None
        self.lock = threading.Lock()
        self.is_here = False  # this process is the worker
        self.missed = 0  # calls that ended without a result
        self.forks = False  # a worker is a copy of this process, which has loaded all and runs one thread

    def call(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        budget: Budget,
        loading: Callable[[], object] | None,
    ) -> Any:
        purse = budget.left if budget.left is not None else [budget.seconds or 0.0]
        late = DeadlineError(f"no answer within {budget.seconds:g} seconds")
        if purse[0] <= 0:
            raise late
        request = pickle.dumps((function, args))
        with self.lock:
            process = self._started()
            begun = time.monotonic()
            try:
                _within(START, _sent, process, pickle.dumps((purse[0], loading)), request)
                begun = time.monotonic()
                answer = _within(purse[0], _received, process.stdout)
            except TimeoutError:
                self.stop()
                raise late from None
            except (OSError, EOFError):
                raise DeadlineError(f"the process that does set work died: {self._last_words()}") from None
            except BaseException:
                self.stop()
                raise
            finally:
                purse[0] -= time.monotonic() - begun
        worked, value = pickle.loads(answer)
        if worked:
            return value
        raise value

    def _started(self) -> subprocess.Popen[bytes] | ForkedProcess:
        if self.process is not None and self.process.poll() is None:
            return self.process
        self.stop()
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the process)
        # Linux ends a child with the thread that started it, so only the main one may tie it to itself
        tied = threading.current_thread() is threading.main_thread()
        try:
            if self.forks:
                self.process = ForkedProcess(lambda: serve(tied), self.stderr)
            else:
                self.process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", PROGRAM.format(path=module_path(), tied=tied)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self.stderr,
                    bufsize=0,
                    process_group=0,  # Ctrl-C is for the caller, who then stops the worker
                )
            greeting = _within(START, _receive, self.process.stdout, len(READY))
        except (OSError, EOFError) as error:  # a TimeoutError is an OSError
            late = isinstance(error, TimeoutError)
            reason = f"no answer within {START:g} seconds" if late else self._last_words() or str(error)
            self.stop()
            raise DeadlineError(f"the process that does set work did not start: {reason}") from None
        except BaseException:
            self.stop()
            raise
        if greeting != READY:
            self.stop()
            raise DeadlineError(
                f"the process that does set work did not start: {sys.executable} answered {greeting!r}"
            )
        return self.process

    def _last_words(self) -> str:
        """Returns how a dead process ended, and its last line of errors."""
        process, stderr = self.process, self.stderr
        if process is None or stderr is None:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
        stderr.seek(0)
        lines = stderr.read().decode(errors="replace").strip().splitlines()
        self.stop()
        code = process.returncode or 0
        end = signal.Signals(-code).name if -code in signal.valid_signals() else f"exit code {code}"
        return f"{end}, {lines[-1]}" if lines else end

    def stop(self) -> None:
        """Kills the process."""
        process, stderr = self.process, self.stderr
        self.process = self.stderr = None
        if process is not None:
            process.kill()
            process.wait()
            _close(process.stdin, process.stdout)
        _close(stderr)

    def leave(self) -> None:
        """In a forked child: the worker stays the parent's, and no copy of its pipes is kept open."""
        process, stderr = self.process, self.stderr
        self.process = self.stderr = None
        self.lock = threading.Lock()  # another thread may have held it
        if process is not None:
            process.returncode = 0  # it is no child of this process, so there is nothing to wait for
            _close(process.stdin, process.stdout)
        _close(stderr)


_WORKER = _Worker()
atexit.register(_WORKER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKER.leave)


def fork_for_sets() -> None:
    """Makes the worker a copy of this process from now on: it starts in milliseconds, not in a second.

    For a process that runs one thread and has loaded the library; where the platform cannot fork, nothing
    changes.
    """
    _WORKER.forks = hasattr(os, "fork")


def stop_sets() -> None:
    """Ends the worker; the next set work starts another one."""
    _WORKER.stop()


def module_path() -> list[str]:
    """Where this process finds its modules; never the current directory, which may hold a fractions.py."""
    home = str(Path(__file__).parents[2])  # lattend itself, also where an import hook finds it
    return [home, *(path for path in sys.path if path and Path(path).is_absolute() and path != home)]


def _within(seconds: float, function: Callable[..., bytes], *args: Any) -> bytes:
    """Returns what the function returns, or raises TimeoutError; not every platform can poll pipes."""
    results: list[bytes] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function(*args))
        except (OSError, EOFError, ValueError) as error:
            failed.append(error)

    waiting = threading.Thread(target=run, daemon=True)
    waiting.start()
    waiting.join(seconds if seconds < FOREVER else None)
    if waiting.is_alive():
        raise TimeoutError
    if failed:
        raise failed[0]
    return results[0]


def _sent(process: subprocess.Popen[bytes] | ForkedProcess, *messages: bytes) -> bytes:
    """Sends messages and waits until the worker begins."""
    left = memoryview(b"".join(HEADER.pack(len(message)) + message for message in messages))
    while left and process.stdin is not None:
        left = left[process.stdin.write(left) or 0 :]
    return _receive(process.stdout, len(BEGUN))


def _received(pipe: IO[bytes] | None) -> bytes:
    """The next message."""
    return _receive(pipe, HEADER.unpack(_receive(pipe, HEADER.size))[0])


def _receive(pipe: IO[bytes] | None, size: int) -> bytes:
    """Reads exactly `size` bytes."""
    received = b""
    while pipe is not None and len(received) < size:
        part = pipe.read(size - len(received))
        if not part:
            raise EOFError
        received += part
    return received


def _close(*pipes: IO[bytes] | None) -> None:
    for pipe in pipes:
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


# In the worker


def serve(tied: bool) -> None:
    """The worker's loop: a function and its arguments come in, the result or the error goes out."""
    _WORKER.is_here = True
    if tied:
        die_with_parent()
    limit_memory()
    source, sink = open(0, "rb", closefd=False), os.fdopen(os.dup(1), "wb")  # noqa: SIM115  (until it ends)
    os.dup2(2, 1)  # what isl prints must not mix with answers
    sink.write(READY)
    sink.flush()
    with contextlib.suppress(EOFError):  # the other process is gone
        while True:
            seconds, loading = pickle.loads(_received(source))
            request = _received(source)
            if loading is not None:
                loading()
            sink.write(BEGUN)
            sink.flush()
            message = _answered(request, seconds)
            sink.write(HEADER.pack(len(message)) + message)
            sink.flush()


def _answered(request: bytes, seconds: float) -> bytes:
    if seconds < FOREVER:
        faulthandler.dump_traceback_later(seconds + GRACE, exit=True)
    try:
        function, args = pickle.loads(request)
        return pickle.dumps((True, function(*args)))
    except MemoryError:
        return pickle.dumps((False, DeadlineError("it needs too much memory")))
    except Exception as error:  # whatever it is, it belongs to the caller
        return _packed_error(error)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _packed_error(error: Exception) -> bytes:
    """Pickles an error, or its text if the error cannot be pickled."""
    try:
        message = pickle.dumps((False, error))
        pickle.loads(message)
    except Exception:  # errors of other libraries, which may hold anything
        return pickle.dumps((False, LattendError(f"{type(error).__name__}: {error}")))
    return message


def limit_memory(most: int = MEMORY) -> None:
    """Limits the memory of this process, where the platform allows it: not on Windows and macOS."""
    try:
        import resource

        _, allowed = resource.getrlimit(resource.RLIMIT_AS)
        limit = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    except (ImportError, AttributeError, ValueError, OSError):
        return


def die_with_parent() -> None:
    """Linux ends this process when its parent does; elsewhere the pipe closes, or its own deadline comes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
