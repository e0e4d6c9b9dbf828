"""Fork server: a process that has loaded the library once and is forked into workers, in milliseconds each.

The server holds one socket to the fork server and one to every worker. When the server goes, however it ends,
the fork server reads the end of its socket and goes too, and Linux ends the workers with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from lattend.sets.guard import die_with_parent, module_path
from lattend.web.worker import load, serve

FORKS = hasattr(os, "fork") and hasattr(socket, "send_fds")
# Started as the process for set work is: with the path of this process and never the current directory
PROGRAM = """import sys; sys.path += {path!r}
from lattend.web.fork_server import run_fork_server
run_fork_server({descriptor}, {torch})"""


class ForkServer:
    """The fork server as the web server sees it. `torch` says whether its workers have torch loaded."""

    def __init__(self, torch: bool) -> None:
        self.torch = torch
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self) -> socket.socket:
        """A socket whose other end a new worker holds; it greets with its process id."""
        ours, theirs = socket.socketpair()
        with theirs:
            if not FORKS:
                self._spawn(theirs)
                return ours
            for _ in range(2):
                try:
                    socket.send_fds(self._started(), [b"."], [theirs.fileno()])
                    return ours
                except BlockingIOError:  # it still loads the library, and so many wait that nobody else may
                    ours.close()
                    raise OSError("too many are asked for; try again in a moment") from None
                except OSError:  # it is gone; a new one is tried, once
                    self.stop()
        ours.close()
        raise OSError("the process that starts workers ended; the terminal of `lattend serve` says why")

    def stop(self) -> None:
        """End the fork server, and with it its workers."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None

    def _started(self) -> socket.socket:
        if self._control is None:
            self._control, theirs = socket.socketpair()
            self._control.setblocking(False)
            descriptor = theirs.fileno()
            program = PROGRAM.format(path=module_path(), descriptor=descriptor, torch=self.torch)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", program],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(descriptor,),
                    process_group=0,  # Ctrl-C is for the server
                )
        return self._control

    def _spawn(self, theirs: socket.socket) -> None:
        """Start a worker without forking: it loads the library itself."""
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        context.Process(target=_spawned, args=(theirs, self.torch), daemon=True).start()


def _spawned(theirs: socket.socket, torch: bool) -> None:
    load(torch)
    serve(theirs)


def run_fork_server(descriptor: int, torch: bool) -> None:
    """Fork a worker for every socket that arrives."""
    die_with_parent()
    control = socket.socket(fileno=descriptor)
    load(torch)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # workers that end leave nothing behind
    gc.collect()
    gc.freeze()  # collections in the workers then leave the pages alone that all of them share
    while True:
        word, handles, _, _ = socket.recv_fds(control, 1, 1)
        if not word:
            os._exit(0)
        try:
            forked = os.fork()
        except OSError as error:  # too many processes, or no memory: the workers that are there go on
            print(f"no worker could be started: {error}", file=sys.stderr, flush=True)
            forked = -1
        if forked == 0:
            control.close()
            die_with_parent()
            _end_first()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve(socket.socket(fileno=handles[0]))
            os._exit(0)
        os.close(handles[0])


def _end_first() -> None:
    """Let Linux end a worker rather than the server when memory runs out: that costs one question."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")


async def connect(ours: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The streams of a worker's socket."""
    ours.setblocking(False)
    return await asyncio.open_connection(sock=ours)
