"""Fifty people type rules into one workbench at once: how long each keystroke waits, and what memory does.

python benchmarks/web_load.py [--people 50] [--seconds 60] [--warm-up 10] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from web_server import Memory, Rows, Server, machine, memory, memory_rows, serving, show, waits_row

HOW = """
A closed loop over the loopback address. Each person has a page and an address (127.0.0.x) of their own and
types rules to their end, key by key. After a key they wait until the meaning of the text and its formula are
there, or the message that it is no rule; then they pause: log-normal, median 0.35 s, 2 s more after a whole
rule. A keystroke asks what the page asks: `read` and `count` first; 200 ms after these are there all other
panels of the rule page, also in one request to /api/batch; what of these is still open 120 ms after the next
key is given up. What the server is too busy for (429, 503) is asked again after 0.3 s and 1 s; that counts as
waiting. A keystroke without an answer is a failure and has no time. Nothing is counted before every panel has
answered once and the warm-up is over. Numbers differ from rule to rule, so that few texts were asked before.
Memory is the sum of the proportional set sizes of the server and all its descendants. People and server share
the machine; no browser runs.
"""
RULES = (
    *("k <= q and q - k <= {a}", "k <= q", "(q - k) % {b} == 0 and k <= q", "q // {b} == k // {b}"),
    *("k <= q and (q - k <= {a} or k < {b})", "k <= q and q // {b} == k // {b}", "abs(q - k) <= {a}"),
    *("k <= q and q - k <= t + {a}", "k <= q and (k < {b} or (q - k) % {a} == 0)", "k < {a} or k == q"),
    *("strided({a})", "windowed({b})", "sliding_window(window={a})", "causal"),
)
# What the page's state, as it begins, adds to each question
CALL = {
    "numbers": {},
    **{
        "device": "cpu",
        "dtype": "float32",
        "head_dim": 64,
        "heads": 8,
        "kv_heads": 0,
        "batch": 1,
        "kernel": "",
    },
}
Questions = dict[str, dict[str, Any]]  # of each panel, beside the rule
FIRST: Questions = {"read": {}, "count": {"numbers": {}}}
REST: Questions = {
    "draw": {"other": "", "numbers": {}, "pixel": [], "flat": False},
    "growth": {},
    **{panel: {"numbers": {}} for panel in ("code", "keys", "reach", "cache", "rules")},
    "field": {"numbers": {}, "layers": 2},
    "first_layers": {"numbers": {}, "pixel": []},
    "explain": CALL,
    "tile_map": {**CALL, "tiles_view": []},
    "rule_cost": {"numbers": {}, "heads": 8, "kv_heads": 0, "head_dim": 64},
}
PAUSE, SPREAD, THINKING = 0.35, 0.4, 2.0  # seconds: the median pause, its spread in logarithms, after a rule
SETTLED = 0.2  # seconds after the first answers before the page asks the rest
GIVEN_UP = 0.12  # seconds that a question may go on while a newer one waits
RETRIES = (0.3, 1.0)  # seconds
CROWDED = (429, 503)
LONGEST = 30.0  # seconds for one request; no panel takes longer
READY = 120.0  # seconds until every panel must have answered once
EVERY = 2.0  # seconds between samples of memory


@dataclass
class Seen:
    """What happened to all people together, once it is counted."""

    waits: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})  # of rules or not
    failures: Counter[str] = field(default_factory=Counter)  # of keystrokes, by what there was in place of it
    rest: Counter[str] = field(default_factory=Counter)  # what became of the other panels' questions
    since: float = math.inf  # what began before is not counted

    def key(self, statuses: dict[str, int], begun: float, seconds: float) -> None:
        """What came of a key: the statuses of its first panels, after so many seconds."""
        if begun < self.since:
            return
        if statuses["read"] == 422 or set(statuses.values()) == {200}:
            self.waits[statuses["read"] == 200].append(seconds)
        else:
            wrong = (
                f"{panel}: {status or 'no reply'}" for panel, status in statuses.items() if status != 200
            )
            self.failures[", ".join(wrong)] += 1

    def others(self, statuses: dict[str, int], begun: float, without: str) -> None:
        """What came of the other panels' questions, and of those without an answer."""
        if begun >= self.since:
            self.rest.update(str(status or without) for status in statuses.values())


@dataclass
class Person:
    """One page, which holds a connection for what comes first and one for the rest."""

    number: int
    port: int
    seen: Seen
    _open: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=dict)
    _rest: asyncio.Task[None] | None = None
    _rest_begun: float = 0.0

    async def type_until(self, end: float) -> None:
        """Type one rule after another; each is typed to its end, unless the time is over."""
        chance = random.Random(self.number)
        await asyncio.sleep(chance.uniform(0, 1))
        while time.monotonic() < end:
            rule = chance.choice(RULES).format(a=chance.randint(2, 900), b=chance.randint(2, 90))
            for length in range(1, len(rule) + 1):
                if time.monotonic() >= end:
                    break
                await self.key(rule[:length])
                await asyncio.sleep(chance.lognormvariate(0, SPREAD) * PAUSE)
            else:
                await asyncio.sleep(THINKING)
        self._give_up()
        for connection in [*self._open]:
            self._close(connection)

    async def key(self, text: str) -> None:
        """Type one: wait for what is shown first, and let the page ask the rest."""
        begun = time.monotonic()
        if self._rest is not None and not self._rest.done():
            left = GIVEN_UP - (begun - self._rest_begun)
            asyncio.get_running_loop().call_later(max(0.0, left), self._give_up, self._rest)
        statuses = dict.fromkeys(FIRST, 0)
        await self.ask("first", FIRST, text, statuses)
        self.seen.key(statuses, begun, time.monotonic() - begun)
        if statuses["read"] == 200:
            self._give_up()
            self._rest_begun = time.monotonic()
            self._rest = asyncio.ensure_future(self.others(text))

    async def others(self, text: str) -> None:
        """Ask the other panels."""
        await asyncio.sleep(SETTLED)
        begun, found = time.monotonic(), dict.fromkeys(REST, 0)
        try:
            await self.ask("rest", REST, text, found)
        except asyncio.CancelledError:
            self._close("rest")
            self.seen.others(found, begun, "given up")
            raise
        self.seen.others(found, begun, "no reply")

    def _give_up(self, task: asyncio.Task[None] | None = None) -> None:
        if self._rest is not None and task in (None, self._rest):
            self._rest.cancel()
            self._rest = None

    async def ask(self, connection: str, panels: Questions, text: str, found: dict[str, int]) -> None:
        """Ask these panels; the statuses of the answers go into `found`, which has 0 for each."""
        for wait in (*RETRIES, None):
            left = [panel for panel in panels if found[panel] in (0, *CROWDED)]
            asked = [[panel, panel, {"rule": text, **panels[panel]}] for panel in left]
            try:
                async with asyncio.timeout(LONGEST):
                    await self._exchange(connection, asked, found)
            except (OSError, EOFError, ValueError, LookupError):  # a TimeoutError is an OSError
                self._close(connection)
            if wait is None or all(found[panel] not in (0, *CROWDED) for panel in panels):
                return
            await asyncio.sleep(wait)

    async def _exchange(self, connection: str, asked: list[list[Any]], found: dict[str, int]) -> None:
        """Send one request over HTTP/1.1, and note the statuses as they come."""
        body = json.dumps(asked).encode()
        if connection not in self._open:
            own = (f"127.0.0.{2 + self.number % 250}", 0) if sys.platform == "linux" else None
            self._open[connection] = await asyncio.open_connection(
                "127.0.0.1", self.port, limit=1 << 22, local_addr=own
            )
        reader, writer = self._open[connection]
        head = (
            f"POST /api/batch HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"X-Lattend-Page: person{self.number}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status = int(answer.split()[1])
        panels = [panel for panel, *_ in asked]
        if status != 200:
            await reader.readexactly(int(re.findall(r"(?i)content-length: (\d+)", answer)[0]))
            found.update(dict.fromkeys(panels, status))
            return
        text = b""
        while size := int(await reader.readline(), 16):  # chunks
            text += (await reader.readexactly(size + 2))[:-2]
            *lines, text = text.split(b"\n")
            for line in lines:
                place, one, _ = line[1:].split(b",", 2)
                found[panels[int(place)]] = int(one)
        await reader.readline()

    def _close(self, connection: str) -> None:
        if connection in self._open:
            self._open.pop(connection)[1].close()


async def ready(server: Server) -> None:
    """Wait until workers of both kinds answer: those with torch take seconds to load."""
    async with asyncio.timeout(READY):
        found = dict.fromkeys(REST, 0)
        while set(found.values()) != {200}:
            found = dict.fromkeys(REST, 0)
            await Person(0, server.port, Seen()).ask("first", REST, "causal", found)


async def load(server: Server, people: int, warm_up: float, seconds: float) -> tuple[Seen, list[Memory]]:
    """Let them type for so long, and no longer; memory from the end of the warm-up on."""
    seen, samples = Seen(), list[Memory]()
    await ready(server)
    end = time.monotonic() + warm_up + seconds
    crowd = [Person(number, server.port, seen) for number in range(people)]
    async with asyncio.timeout(warm_up + seconds + 2 * LONGEST), asyncio.TaskGroup() as group:
        for person in crowd:
            group.create_task(person.type_until(end))
        await asyncio.sleep(warm_up)
        seen.since = time.monotonic()
        while time.monotonic() < end:
            samples.append(await asyncio.to_thread(memory, server.pid))
            await asyncio.sleep(min(EVERY, max(0.0, end - time.monotonic())))
    return seen, samples


def rows_of(seen: Seen, samples: Sequence[Memory], people: int, warm_up: float, seconds: float) -> Rows:
    """What is printed."""
    keys = sum(map(len, seen.waits.values()))
    total = keys + seen.failures.total()
    failed = "".join(f"; {number:,} × {what}" for what, number in seen.failures.most_common())
    rest = ", ".join(f"{what}: {number:,}" for what, number in sorted(seen.rest.items()))
    return {
        "machine": machine(),
        "people, seconds": f"{people}, {seconds:g} after a warm-up of {warm_up:g}",
        "keystrokes": f"{total:,} ({total / seconds:.1f} a second)",
        "key to formula, text is a rule": waits_row(seen.waits[True], "median under 300"),
        "key to message, not yet a rule": waits_row(seen.waits[False]),
        "failed keystrokes": f"{seen.failures.total():,}{failed} (aim: none)",
        "other panels, questions by status": rest or "none",
        **memory_rows(samples, EVERY),
    }


def main() -> None:
    """Measure, and print what was found."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--people", type=int, default=50)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--warm-up", type=float, default=10)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    with serving() as server:
        seen, samples = asyncio.run(load(server, given.people, given.warm_up, given.seconds))
    show(HOW, rows_of(seen, samples, given.people, given.warm_up, given.seconds), given.json)


if __name__ == "__main__":
    main()
