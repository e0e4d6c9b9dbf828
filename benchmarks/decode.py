"""One step of decoding, as its caller waits for it: a KV cache of lattend, and SDPA on the same keys.

    python benchmarks/decode.py                     # on the CPU, one thread
    python benchmarks/decode.py --device cuda       # on the GPU, bf16: some 20 s
    python benchmarks/decode.py --only causal --profile
    python benchmarks/decode.py --device cuda --prompt 16384 --heads 32 --kv-heads 8 --head-dim 128

Host time is that of a call without a wait for the device; wall time is a step with its share of such a wait,
in a row of steps. SDPA's keys and values are there, and the table of a bias too: it puts none into a cache.
Each number is the least of many short rows, in which lattend and SDPA take turns, since the machine may be
shared. With its log-sum-exp, a causal step on a GPU is not left to torch's FlashAttention.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention

import lattend as lt
from lattend.rules import causal, strided

WINDOW = 63
ROWS, STEPS = 40, 25  # so many, and STEPS more, fit into ROOM
ROOM = 1180

Step = Callable[[], Any]


class Sizes(NamedTuple):
    """What is decoded; `kind` is its dtype and device."""

    prompt: int
    batch: int
    heads: int
    kv_heads: int
    head_dim: int
    kind: dict[str, Any]

    def tokens(self, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        heads = (self.heads, self.kv_heads, self.kv_heads)
        q, k, v = (torch.randn(self.batch, h, size, self.head_dim, **self.kind) for h in heads)
        return q, k, v


# The contenders


def cached(sizes: Sizes, rule: Any, how: dict[str, Any] | None = None, **options: Any) -> Step:
    """A step with a cache that has read a prompt."""
    prompt, batch, heads, kv_heads, head_dim, kind = sizes
    made: dict[str, Any] = {**options, **kind}
    cache = lt.KVCache(rule, batch=batch, heads=heads, kv_heads=kv_heads, head_dim=head_dim, **made)
    given: dict[str, Any] = how or {}
    lt.attention(*sizes.tokens(prompt), rule, cache=cache, **given)
    return partial(lt.attention, *sizes.tokens(1), rule, cache=cache, **given)


def model_layer(sizes: Sizes) -> Step:
    """What a layer of a Hugging Face model calls at a step, its own cache aside, and the mask of the step."""
    from lattend.integrations.model_mask import ModelMask
    from lattend.integrations.transformers import attention_forward

    (q, _, _), (_, k, v) = sizes.tokens(1), sizes.tokens(sizes.prompt)
    layer = torch.nn.Module()
    return lambda: attention_forward(layer, q, k, v, ModelMask("k <= q", first_query=sizes.prompt - 1))


def on_keys(sizes: Sizes, size: int, biased: bool) -> Step:
    """SDPA of one query on keys that are there, and with the table of a bias that is."""
    (q, _, _), (_, k, v) = sizes.tokens(1), sizes.tokens(size)
    table = torch.randn(sizes.batch, sizes.heads, 1, size, **sizes.kind) if biased else None
    return partial(scaled_dot_product_attention, q, k, v, attn_mask=table, enable_gqa=True)


def contenders(sizes: Sizes) -> dict[str, tuple[Callable[[], Step], int]]:
    """What is measured, and how many keys SDPA has beside it."""
    rule, text, room = strided(WINDOW), causal(), sizes.prompt + ROOM
    alibi = {"bias": lt.Bias.alibi(sizes.heads, device=sizes.kind["device"])}
    static: dict[str, Any] = {"static": True, "capacity": room}
    found: dict[str, tuple[Callable[[], Step], int]] = {}
    found["causal, dynamic"] = partial(cached, sizes, text), sizes.prompt
    found["causal, its log-sum-exp"] = partial(cached, sizes, text, {"return_lse": True}), sizes.prompt
    found["causal, ALiBi"] = partial(cached, sizes, text, alibi), sizes.prompt
    found["causal, static"] = partial(cached, sizes, text, **static), room
    found["causal, static, ALiBi"] = partial(cached, sizes, text, alibi, **static), room
    found["sliding window, dynamic"] = partial(cached, sizes, rule), WINDOW + 1
    found["sliding window, ALiBi"] = partial(cached, sizes, rule, alibi), WINDOW + 1
    found["sliding window, static"] = partial(cached, sizes, rule, static=True), WINDOW + 1
    found["Hugging Face layer"] = partial(model_layer, sizes), sizes.prompt
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
    for name, size in (("prompt", 100), ("batch", 1), ("heads", 4), ("kv-heads", 2), ("head-dim", 64)):
        parser.add_argument(f"--{name}", type=int, default=size)
    given = parser.parse_args()
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch finds no GPU here; leave it out for the CPU")
    torch.set_num_threads(1)
    dtype = torch.bfloat16 if given.device == "cuda" else torch.float32
    kind = {"device": given.device, "dtype": dtype}
    sizes = Sizes(given.prompt, given.batch, given.heads, given.kv_heads, given.head_dim, kind)
    print(f"{'':25}{'host µs':>10}{'wall µs':>10}{'SDPA host':>11}{'wall':>8}{'wall ratio':>12}")
    with torch.no_grad():
        for name, (make, keys) in contenders(sizes).items():
            if given.only not in name:
                continue
            steps = [make(), on_keys(sizes, keys, "ALiBi" in name)]
            for warm in steps:
                for _ in range(STEPS):
                    warm()
            (host, wall), (other, beside) = least(steps, given.device)
            print(f"{name:25}{host:10.1f}{wall:10.1f}{other:11.1f}{beside:8.1f}{wall / beside:12.2f}")
            if given.profile:
                show_profile(steps[0])


if __name__ == "__main__":
    main()
