"""What ranks do in tests of faults: each makes a call of its own, or dies."""

from __future__ import annotations

import os
import signal
import time
import weakref
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from lattend.errors import LattendError
from lattend.nn.grid.over_ranks import grid_rnn
from lattend.nn.grid.rnn import GridRNN
from lattend.parallel.exchange import Exchange
from lattend.parallel.kv_cache import KVCache
from lattend.parallel.sharded_attention import attention


def different(group: Any, calls: dict[int, dict[str, Any]], plain: dict[str, Any]) -> str:
    """The error of a call in which some ranks ask for something else; a plain call works afterwards."""
    rank = dist.get_rank(group)
    try:
        _call(group, **{**plain, **calls.get(rank, {})})
        found = "nothing"
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    _call(group)
    return found


def _call(
    group: Any,
    rule: Any = "k <= q",
    *,
    length: int = 5,
    heads: int = 2,
    width: int = 3,
    dtype: torch.dtype = torch.float32,
    gradients: bool = True,
    **how: Any,
) -> torch.Tensor:
    q = torch.ones(2, heads, length, width, dtype=dtype, requires_grad=gradients)
    return attention(q, q, q, rule, mesh=group, **how)


def dies(group: Any, who: int, when: str) -> tuple[str, float]:
    """The error where one rank is killed: in the forward or the backward exchange, or before a call."""
    torch.set_num_threads(1)
    _call(group).sum().backward()
    begin, count = Exchange.begin, [0]

    def killed(*args: Any) -> Exchange:
        count[0] += 1
        if dist.get_rank(group) == who and count[0] == {"forward": 1, "backward": 2}.get(when, 0):
            os.kill(os.getpid(), signal.SIGKILL)
        return begin(*args)

    Exchange.begin = staticmethod(killed)  # pyright: ignore[reportAttributeAccessIssue]
    if when == "before" and dist.get_rank(group) == who:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    try:
        _call(group, "full", strategy="halo").sum().backward()
        _call(group)
    except Exception as error:
        return f"{type(error).__name__}: {error}", time.monotonic() - began
    return "nothing", 0.0


def is_slow(group: Any, who: int, seconds: float) -> tuple[str, float]:
    """The error where one rank comes to a call too late."""
    _call(group)
    if dist.get_rank(group) == who:
        time.sleep(seconds)
    began = time.monotonic()
    try:
        _call(group)
    except Exception as error:
        return f"{type(error).__name__}: {error}", time.monotonic() - began
    return "nothing", 0.0


def filled(group: Any, wrong: str) -> str:
    """What is said where one rank fills a cache by another cut, or with fewer values than keys."""
    last = dist.get_rank(group) == 1
    k = torch.ones(1, 1, 4, 2)
    v = k[:, :, :3] if last and wrong == "values" else k
    cache = KVCache("k <= q", mesh=group, heads=1)
    try:
        cache.fill(k, v, cut="zigzag" if last and wrong == "cut" else None)
    except LattendError as error:
        return str(error)
    return ""


def destroyed(_: Any) -> tuple[bool, bool, int, str]:
    """Whether a destroyed group and its backend on CPUs are gone, its threads left, and a cache's error."""
    threads = _threads()
    own: Any = dist.new_group()
    reference, x = weakref.ref(own), torch.ones(1, 1, 1, 2)
    cache = KVCache("k <= q", mesh=own, heads=1)
    cache.attend(x, x, x)
    _call(own).sum().backward()
    grid_rnn(GridRNN(2, 2), torch.ones(1, 2, 3, 2), mesh=own).sum().backward()
    backend = cache.ranks.control
    assert backend is not None and backend() is not None
    dist.destroy_process_group(own)
    del own
    try:
        cache.attend(x, x, x)
    except LattendError as error:
        said = f"{type(error).__name__}: {error}"
    else:
        said = ""
    return reference() is None, backend() is None, _threads() - threads, said


def _threads() -> int:
    """The threads of this process; 0 where the system does not list them."""
    path = Path("/proc/self/task")
    return len([*path.iterdir()]) if path.exists() else 0


def begun_again(_: Any, port: int) -> list[float]:
    """What calls over an equal mesh give in one world, and in one that follows it."""
    rank, size, found = dist.get_rank(), dist.get_world_size(), list[float]()
    for world in range(2):
        dist.destroy_process_group()
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{port + world}", rank=rank, world_size=size)
        mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("sequence",))
        found.append(float(_call(mesh).detach().sum()))
    return found
