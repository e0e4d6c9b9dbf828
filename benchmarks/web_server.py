"""A workbench server for the benchmarks of the page, its memory, and their tables."""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

START = 60.0  # seconds until the server must listen
Rows = dict[str, str]


@dataclass(frozen=True)
class Server:
    """A server that listens: when its process was started, in seconds since 1970, and how long it took."""

    pid: int
    port: int
    begun: float
    listening: float  # seconds

    @property
    def address(self) -> str:
        """Of the page, on the loopback interface."""
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def serving(*options: str) -> Iterator[Server]:
    """A server, ended afterwards; what it says goes to a file, whose end is shown where it did not start."""
    command = (sys.executable, "-m", "lattend", "serve", "--no-browser", "--port", "0", *options)
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        with said.open("w") as file:
            begun = time.time()
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            port = _listening(process, said)
            yield Server(process.pid, port, begun, time.time() - begun)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _listening(process: subprocess.Popen[bytes], said: Path) -> int:
    """The port, once a connection to it is accepted."""
    end = time.monotonic() + START
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(r"http://[^\s/]+:(\d+)/", said.read_text()):
            with suppress(OSError), socket.create_connection(("127.0.0.1", int(found[1])), 1):
                return int(found[1])
        time.sleep(0.002)
    raise RuntimeError(f"the server does not listen; it said: {said.read_text()[-2000:]}")


class Memory(NamedTuple):
    """What a server and all its descendants take at one moment."""

    megabytes: float  # the sum of their proportional set sizes: what several share is counted once
    processes: int


def memory(root: int) -> Memory:
    """Of a process and all its descendants; one that ends meanwhile is left out."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    sizes: list[int] = []
    for pid in found:
        with suppress(OSError):
            sizes += map(int, re.findall(r"(?m)^Pss:\s+(\d+) kB", _rollup(pid)))
    return Memory(sum(sizes) * 1024 / 1e6, len(sizes))


def _rollup(pid: int) -> str:
    return Path(f"/proc/{pid}/smaps_rollup").read_text()


def memory_rows(samples: Sequence[Memory], every: float) -> Rows:
    """At the start, in the middle, at the end, and the greatest of all."""
    if not samples:
        return {"memory": "not sampled"}
    most = max(samples), max(samples, key=lambda one: one.processes)
    moments = {"start": samples[0], "middle": samples[len(samples) // 2], "end": samples[-1]}
    rows = {
        f"memory, {name}": f"{one.megabytes:,.0f} MB in {one.processes} processes"
        for name, one in moments.items()
    }
    rows["memory, greatest"] = f"{most[0].megabytes:,.0f} MB; most processes {most[1].processes}"
    return rows | {"memory, sampled": f"{len(samples)} times, every {every:g} s"}


def waits_row(waits: Sequence[float], aim: str = "") -> str:
    """How seconds are spread, in milliseconds."""
    if len(waits) < 2:
        return f"{len(waits)} times: too few"
    cuts = statistics.quantiles(waits, n=100, method="inclusive")
    parts = (("median", cuts[49]), ("95 %", cuts[94]), ("99 %", cuts[98]), ("longest", max(waits)))
    spread = ", ".join(f"{name} {1000 * wait:,.0f} ms" for name, wait in parts)
    return f"{len(waits):,} times: {spread}{aim and f' (aim: {aim})'}"


def machine() -> str:
    """Where this is measured."""
    load = f"load {os.getloadavg()[0]:.1f} over the last minute"
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {load}"


def show(how: str, rows: Mapping[str, str], file: Path | None) -> None:
    """Print how it was measured and what was found; write both to a file where one is named."""
    print(how.strip(), end="\n\n")
    width = 2 + max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:<{width}}{value}")
    if file:
        file.write_text(json.dumps({"how": how.strip(), "rows": dict(rows)}, indent=1) + "\n")
