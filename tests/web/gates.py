"""Gates: a question waits at its own until the test opens it, so that no test guesses how long it takes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path


class Gates:
    """Who came to a gate, in this order, with their process; and which gates are open."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.came: list[str] = []
        self.pids: dict[str, int] = {}
        self._open: set[str] = set()
        self._ended = False
        self._there: set[asyncio.Task[None] | None] = set()
        self._changed = asyncio.Condition()

    async def begun(self, name: str, times: int = 1) -> int:
        """Wait until a question has come to its gate so many times; the process that is there."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.came.count(name) >= times)
        return self.pids[name]

    async def open(self, *names: str) -> None:
        """Let these through, now or when they come."""
        async with self._changed:
            self._open.update(names)
            self._changed.notify_all()

    async def come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """What happens at a gate."""
        self._there.add(asyncio.current_task())
        pid, _, name = (await reader.readline()).decode().strip().partition(" ")
        async with self._changed:
            self.came.append(name)
            self.pids[name] = int(pid)
            self._changed.notify_all()
            await self._changed.wait_for(lambda: self._ended or name in self._open)
        writer.close()
        with contextlib.suppress(ConnectionError):  # the process was ended while it waited
            await writer.wait_closed()

    async def end(self) -> None:
        """Let all through that are still there."""
        self._ended = True
        await self.open()
        await asyncio.gather(*(task for task in self._there if task is not None))


@contextlib.asynccontextmanager
async def gates(folder: Path) -> AsyncIterator[Gates]:
    """Gates at a socket in this folder."""
    found = Gates(str(folder / "gate"))
    server = await asyncio.start_unix_server(found.come, found.place)
    try:
        yield found
    finally:
        server.close()
        await found.end()
