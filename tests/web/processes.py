"""Which processes are there, for tests that nothing is left behind."""

from __future__ import annotations

import subprocess
import time


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


def gone(pids: set[int], seconds: float = 30.0) -> set[int]:
    """Those of the processes that are still there after so long at most."""
    end = time.monotonic() + seconds
    while (left := {pid for pid in pids if alive(pid)}) and time.monotonic() < end:
        time.sleep(0.02)
    return left
