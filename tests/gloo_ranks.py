"""Processes that are ranks of a gloo group: started once, each runs the functions it is given.

    with Crew(4) as crew:
        answers = crew.run(3, over_ranks, case)     # on the first three: over_ranks(group, case)

Functions must be importable, so they live in files of tests/ that are no tests. What process groups move is
counted: `counted()` inside a rank.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["numpy", "torch", "torch.distributed", "lattend.attend.attention"])
RECEIVED: Counter[str] = Counter()  # bytes by kind of message, on this rank


class Failed(Exception):
    """A function that raised on some rank; `errors` has the type and text by rank."""

    def __init__(self, errors: dict[int, tuple[str, str]], details: str) -> None:
        super().__init__(details)
        self.errors = errors


class Crew:
    """So many processes, ranks of one world; each has one thread, and all share a GPU if they use one."""

    def __init__(self, size: int, *, timeout: float = 60, backend: str = "gloo") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        pairs = [_CONTEXT.Pipe() for _ in range(size)]
        self.pipes = [mine for mine, _ in pairs]
        self.processes = [
            _CONTEXT.Process(target=_serve, args=(theirs, rank, size, port, timeout, backend), daemon=True)
            for rank, (_, theirs) in enumerate(pairs)
        ]
        for process in self.processes:
            process.start()

    def start(self, ranks: int, function: Callable[..., Any], *args: Any) -> None:
        """Has the first so many run a function, and does not wait."""
        for pipe in self.pipes[:ranks]:
            pipe.send((ranks, function, args))

    def answer(self, rank: int) -> tuple[str, Any]:
        """What a rank answers: ("gave", value), ("raised", (type, text, traceback)) or ("died", None)."""
        try:
            return self.pipes[rank].recv()
        except EOFError:
            return "died", None

    def run(self, ranks: int, function: Callable[..., Any], *args: Any) -> list[Any]:
        """What a function gives on each of the first so many ranks; raises Failed where it raises on one."""
        self.start(ranks, function, *args)
        answers = [self.answer(rank) for rank in range(ranks)]
        bad = {rank: found for rank, (kind, found) in enumerate(answers) if kind != "gave"}
        if bad:
            details = "\n".join(f"rank {rank}: {found and found[2]}" for rank, found in bad.items())
            raise Failed({rank: (found or ("died", ""))[:2] for rank, found in bad.items()}, details)
        return [found for _, found in answers]

    def kill(self, rank: int) -> None:
        """Ends a rank at once, as a machine that fails does."""
        pid = self.processes[rank].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *raised: object) -> None:
        for pipe in self.pipes:
            with contextlib.suppress(OSError):
                pipe.send(None)
        for process in self.processes:
            process.join(2)
            if process.is_alive():
                process.kill()


def _serve(pipe: Any, rank: int, size: int, port: int, timeout: float, backend: str) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    dist.init_process_group(backend, rank=rank, world_size=size, timeout=timedelta(seconds=timeout))
    limit = timedelta(seconds=timeout)
    groups = {ranks: dist.new_group([*range(ranks)], timeout=limit) for ranks in range(1, min(size, 5))}
    groups[size] = dist.group.WORLD
    _count(dist)
    while (asked := pipe.recv()) is not None:
        ranks, function, args = asked
        try:
            pipe.send(("gave", function(groups[ranks], *args)))
        except BaseException as error:
            pipe.send(("raised", (type(error).__name__, str(error), traceback.format_exc())))
    os._exit(0)  # a group whose ranks are gone would wait for them


def _count(dist: Any) -> None:
    """Counts what arrives at this process, at the groups themselves: messages, and what is agreed on."""
    receive, gather = dist.ProcessGroup.recv, dist.ProcessGroupGloo.allgather

    def counted_receive(self: Any, tensors: Any, *args: Any) -> Any:
        RECEIVED["messages"] += sum(x.nbytes for x in tensors)
        return receive(self, tensors, *args)

    def counted_gather(self: Any, outputs: Any, inputs: Any, *args: Any) -> Any:
        RECEIVED["agreement"] += sum(x.nbytes for some in outputs for x in some)
        return gather(self, outputs, inputs, *args)

    dist.ProcessGroup.recv, dist.ProcessGroupGloo.allgather = counted_receive, counted_gather


@contextlib.contextmanager
def counted() -> Iterator[Counter[str]]:
    """What arrives while it is open."""
    before, found = Counter(RECEIVED), Counter[str]()
    yield found
    found.update(RECEIVED)
    found.subtract(before)
