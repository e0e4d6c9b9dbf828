"""One step of decoding, as its caller waits for it: a KV cache of lattend, and SDPA on the same keys.

    python benchmarks/decode.py                     # on the CPU, one thread
    python benchmarks/decode.py --device cuda       # on the GPU, bf16: some 20 s
    python benchmarks/decode.py --only causal --profile

Host time is that of a call without a wait for the device; wall time is a step with its share of such a wait,
in a row of steps. SDPA's keys and values are there: it puts none into a cache. Each number is the least of
many short rows, in which lattend and SDPA take turns, since the machine may be shared.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

import lattend as lt
from lattend.rules import causal, strided

BATCH, HEADS, KV_HEADS, D = 1, 4, 2, 64
PROMPT, WINDOW, CAPACITY = 100, 63, 1280
ROWS, STEPS = 40, 25  # so many, and STEPS more, fit into CAPACITY - PROMPT

Step = Callable[[], Any]


# The contenders


def cached(rule: Any, kind: dict[str, Any], **options: Any) -> Step:
    """A step with a cache that has read a prompt."""
    cache = lt.KVCache(rule, batch=BATCH, heads=HEADS, kv_heads=KV_HEADS, head_dim=D, **options, **kind)
    lt.attention(*tokens(PROMPT, kind), rule, cache=cache)
    return partial(lt.attention, *tokens(1, kind), rule, cache=cache)


def model_layer(kind: dict[str, Any]) -> Step:
    """What a layer of a Hugging Face model calls at a step, its own cache aside."""
    from lattend.integrations.model_mask import ModelMask
    from lattend.integrations.transformers import attention_forward

    (q, _, _), (_, k, v) = tokens(1, kind), tokens(PROMPT, kind)
    layer = torch.nn.Module()
    return lambda: attention_forward(layer, q, k, v, ModelMask("k <= q", first_query=PROMPT - 1))


def on_keys(size: int, kind: dict[str, Any]) -> Step:
    """SDPA of one query on keys that are there."""
    (q, _, _), (_, k, v) = tokens(1, kind), tokens(size, kind)
    return partial(scaled_dot_product_attention, q, k, v, enable_gqa=True)


def tokens(size: int, kind: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q, k, v = (torch.randn(BATCH, heads, size, D, **kind) for heads in (HEADS, KV_HEADS, KV_HEADS))
    return q, k, v


def contenders(kind: dict[str, Any]) -> dict[str, tuple[Callable[[], Step], int]]:
    """What is measured, and how many keys SDPA has beside it."""
    rule = strided(WINDOW)
    found: dict[str, tuple[Callable[[], Step], int]] = {}
    found["causal, dynamic"] = partial(cached, causal(), kind), PROMPT
    found["causal, static"] = partial(cached, causal(), kind, static=True, capacity=CAPACITY), CAPACITY
    found["sliding window, dynamic"] = partial(cached, rule, kind), WINDOW + 1
    found["sliding window, static"] = partial(cached, rule, kind, static=True), WINDOW + 1
    found["Hugging Face layer"] = partial(model_layer, kind), PROMPT
    return found


# Time


def least(steps: list[Step], device: str) -> list[tuple[float, float]]:
    """Host and wall time of each, in µs: the least of all rows of steps."""
    found = [(float("inf"), float("inf"))] * len(steps)
    for _ in range(ROWS):
        for i, step in enumerate(steps):
            begin = time.perf_counter()
            for _ in range(STEPS):
                step()
            host = time.perf_counter()
            if device == "cuda":
                torch.cuda.synchronize()
            wall = time.perf_counter()
            times = (host - begin) / STEPS * 1e6, (wall - begin) / STEPS * 1e6
            found[i] = min(found[i][0], times[0]), min(found[i][1], times[1])
    return found


def show_profile(step: Step) -> None:
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(STEPS):
        step()
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", default="", help="measure what has this in its name")
    parser.add_argument("--profile", action="store_true", help="also where the host's time goes")
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch finds no GPU here; leave it out for the CPU")
    torch.set_num_threads(1)
    dtype = torch.bfloat16 if given.device == "cuda" else torch.float32
    kind = {"device": given.device, "dtype": dtype}
    print(f"{'':24}{'host µs':>10}{'wall µs':>10}{'SDPA host':>11}{'wall':>8}{'wall ratio':>12}")
    with torch.no_grad():
        for name, (make, keys) in contenders(kind).items():
            if given.only not in name:
                continue
            step = make()
            for warm in (step, on_keys(keys, kind)):
                for _ in range(STEPS):
                    warm()
            (host, wall), (other, beside) = least([step, on_keys(keys, kind)], given.device)
            print(f"{name:24}{host:10.1f}{wall:10.1f}{other:11.1f}{beside:8.1f}{wall / beside:12.2f}")
            if given.profile:
                show_profile(step)


if __name__ == "__main__":
    main()
