"""Fifty people type rules into one workbench at once: how long each keystroke waits, and what memory does.

    python benchmarks/web_load.py [--people 50] [--seconds 60] [--json FILE]

A closed loop over the loopback address. Each person types a rule key by key; after a key they wait for what
the page shows first (what the text means, and the formula), then pause: log-normal, half of them shorter
than 0.35 s, and 2 s after a finished rule. In the pause the page asks its other panels, and whatever of them
is not there at the next key makes way, as on the page. The numbers in the rules differ from person to person
and from rule to rule, so that what was answered before is of little use. The server and the people share the
machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RULES = (
    *("k <= q and q - k <= {a}", "k <= q", "(q - k) % {b} == 0 and k <= q", "q // {b} == k // {b}"),
    *("k <= q and (q - k <= {a} or k < {b})", "k <= q and q // {b} == k // {b}", "abs(q - k) <= {a}"),
    *("k <= q and q - k <= t + {a}", "k <= q and (k < {b} or (q - k) % {a} == 0)", "k < {a} or k == q"),
)
FIRST = ("read", "count")
REST = ("draw", "code", "growth", "keys", "reach", "cache", "rules", "explain", "rule_cost")
PAUSE, SPREAD, THINKING = 0.35, 0.4, 2.0  # seconds: the median pause, its spread in logarithms, after a rule
SETTLED = 0.08  # seconds after a key before the page asks its other panels
FINE = (200, 409, 422)  # answered, superseded, and texts that are no rule yet


@dataclass
class Seen:
    """What happened to all people together."""

    waits: list[float] = field(default_factory=list)  # seconds from a key to the formula
    statuses: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


@dataclass
class Person:
    """One page, which holds a connection for what comes first and one for the rest."""

    name: str
    port: int
    seen: Seen
    _open: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=dict)

    async def type_until(self, end: float, chance: random.Random) -> None:
        """Type one rule after another."""
        await asyncio.sleep(chance.uniform(0, 1))
        while time.monotonic() < end:
            rule = chance.choice(RULES).format(a=chance.randint(2, 900), b=chance.randint(2, 90))
            for length in range(1, len(rule) + 1):
                begun = time.monotonic()
                if begun > end:
                    break
                found = await self.ask("first", FIRST, rule[:length])
                self.seen.waits.append(time.monotonic() - begun)
                pause = chance.lognormvariate(0, SPREAD) * PAUSE + (THINKING if length == len(rule) else 0)
                await self.pause(pause, rule[:length] if set(found) == {200} else "")
        for _, writer in self._open.values():
            writer.close()

    async def pause(self, seconds: float, rule: str) -> None:
        """Do nothing, while the page asks the rest."""
        await asyncio.sleep(min(seconds, SETTLED))
        rest = asyncio.ensure_future(self.ask("rest", REST, rule)) if rule and seconds > SETTLED else None
        await asyncio.sleep(max(0.0, seconds - SETTLED))
        if rest is not None and not rest.done():
            rest.cancel()
            self._open.pop("rest")[1].close()

    async def ask(self, connection: str, panels: tuple[str, ...], rule: str) -> list[int]:
        """The statuses of the answers of these panels."""
        asked = [[panel, f"{panel}", {"rule": rule}] for panel in panels]
        try:
            statuses = await self._post(connection, json.dumps(asked).encode())
        except (OSError, EOFError, ValueError) as error:
            self.seen.failures[type(error).__name__] += 1
            return []
        self.seen.statuses.update(statuses)
        return statuses

    async def _post(self, connection: str, body: bytes) -> list[int]:
        if connection not in self._open:
            self._open[connection] = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        reader, writer = self._open[connection]
        head = (
            f"POST /api/ask HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"X-Lattend-Page: {self.name}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status = int(answer.split()[1])
        if status != 200:
            await reader.readexactly(int(re.findall(r"(?i)content-length: (\d+)", answer)[0]))
            return [status]
        text = b""
        while size := int(await reader.readline(), 16):  # chunks
            text += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
        return [int(line.split(b",", 2)[1]) for line in text.splitlines()]


def memory(root: int) -> float:
    """Megabytes of the server and all its processes; pages that several share are counted once."""
    lines = subprocess.run(("ps", "-eo", "pid=,ppid="), capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in lines.splitlines())}
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    total = 0
    for pid in found:
        with suppress(OSError, IndexError):
            total += int(re.findall(r"(?m)^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text())[0])
    return total / 1000


async def load(port: int, server: int, people: int, seconds: float) -> tuple[Seen, list[float]]:
    """Let them type; memory at the start, in the middle and at the end."""
    seen, end = Seen(), time.monotonic() + seconds
    crowd = [Person(f"person{number}", port, seen) for number in range(people)]
    typing = [asyncio.ensure_future(one.type_until(end, random.Random(n))) for n, one in enumerate(crowd)]
    measured: list[float] = []
    for moment in (5.0, seconds / 2, seconds - 2):
        await asyncio.sleep(max(0.0, moment - (seconds - (end - time.monotonic()))))
        measured.append(await asyncio.to_thread(memory, server))
    await asyncio.gather(*typing)
    return seen, measured


def serve(*options: str) -> tuple[subprocess.Popen[str], int, float]:
    """A server, its port, and the seconds until it listened."""
    begun = time.monotonic()
    command = (sys.executable, "-m", "lattend", "serve", "--no-browser", "--port", "0", *options)
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    return server, int(re.findall(r":(\d+)/", server.stderr.readline())[0]), time.monotonic() - begun


async def first_answers(port: int) -> dict[str, float]:
    """Seconds until the first answer of a panel, and of one that needs torch."""
    begun, person = time.monotonic(), Person("first", port, Seen())
    found: dict[str, float] = {}
    for panel in ("count", "explain"):
        await person.ask("first", (panel,), "causal")
        found[panel] = time.monotonic() - begun
    return found


def main() -> None:
    """Measure, and print what was found."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--people", type=int, default=50)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    server, port, listening = serve()
    try:
        cold = asyncio.run(first_answers(port))
        seen, megabytes = asyncio.run(load(port, server.pid, given.people, given.seconds))
    finally:
        server.terminate()
        server.wait()
    wrong = {status: number for status, number in seen.statuses.items() if status not in FINE}
    waits = statistics.quantiles([1000 * wait for wait in seen.waits], n=100)
    rows: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end",
        "listening after": f"{listening:.2f} s",
        "first count": f"{listening + cold['count']:.2f} s",
        "first explain": f"{listening + cold['explain']:.2f} s",
        "people, seconds": f"{given.people}, {given.seconds:g}",
        "keystrokes": f"{len(seen.waits):,} ({len(seen.waits) / given.seconds:.0f} a second)",
        "key to formula, median": f"{waits[49]:.0f} ms (aim: under 300)",
        "key to formula, 95th percentile": f"{waits[94]:.0f} ms",
        "answers by status": ", ".join(f"{status}: {n:,}" for status, n in sorted(seen.statuses.items())),
        "errors": f"{sum(wrong.values()) + seen.failures.total()} {dict(wrong) | dict(seen.failures) or ''}",
        "memory at the start, middle, end": ", ".join(f"{one:.0f}" for one in megabytes) + " MB",
    }
    for name, value in rows.items():
        print(f"{name:<34} {value}")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
