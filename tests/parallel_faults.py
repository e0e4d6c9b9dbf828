"""What ranks do in tests of faults: each makes a call of its own, or dies."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import torch
import torch.distributed as dist

from lattend.errors import LattendError
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
