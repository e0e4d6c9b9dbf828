"""What ranks do in tests of KVCache: random steps, right and wrong, against plain lists of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from decode_oracle import HEAD_DIM, HEADS, KV_HEADS, RULES, VALUE_DIM, Texts, Token

from lattend.errors import LattendError
from lattend.parallel.kv_cache import KVCache
from lattend.parallel.layout import of_lengths
from lattend.parallel.sharding import shard

SHAPES = ((HEADS, HEAD_DIM), (KV_HEADS, HEAD_DIM), (KV_HEADS, VALUE_DIM))


def plays(group: Any, seeds: range) -> tuple[int, int]:
    """How many positions and refused steps there were; every output is compared with the texts'."""
    positions, refused = 0, 0
    for seed in seeds:
        for rule in RULES.values():
            texts, wrong = played(group, rule, seed)
            positions, refused = positions + sum(map(len, texts.rows)), refused + wrong
    return positions, refused


def played(group: Any, rule: str, seed: int) -> tuple[Texts, int]:
    """The texts after a random prompt and random steps, and how many of these were refused."""
    draw = np.random.default_rng(seed)  # the same on every rank
    texts = Texts(rule, int(draw.integers(1, 4)), seed=seed)
    cache = KVCache(rule, mesh=group, heads=HEADS)
    refused = 0
    if draw.random() < 0.7:
        _fill(group, cache, texts, draw)
    for _ in range(12):
        if texts.rows[0] and draw.random() < 0.3:
            _refused(group, cache, texts, draw)
            refused += 1
        _step(cache, texts, int(draw.choice([0, 1, 1, 1, 2, 5])))
        _check_held(group, cache, texts)
    return texts, refused


def _fill(group: Any, cache: KVCache, texts: Texts, draw: np.random.Generator) -> None:
    """A prompt, cut in a zigzag or into shards of any lengths, which may be empty."""
    lengths = draw.integers(0, 6, dist.get_world_size(group)).tolist()
    cut: Any = "zigzag" if draw.random() < 0.3 else of_lengths(lengths)
    tokens = [[texts.token() for _ in range(sum(lengths))] for _ in texts.rows]
    for row, new in zip(texts.rows, tokens, strict=True):
        row.extend(new)
    _, k, v = tensors(tokens)
    cache.fill(*(shard(x, group, cut=cut, dim=2) for x in (k, v)), cut=cut)


def _step(cache: KVCache, texts: Texts, count: int) -> None:
    tokens = [[texts.token() for _ in range(count)] for _ in texts.rows]
    for row, new in zip(texts.rows, tokens, strict=True):
        row.extend(new)
    found: Any = cache.attend(*tensors(tokens), return_lse=True)
    wanted = [texts.expected(row, count) for row in range(len(texts.rows))]
    for x, exact in zip(found, zip(*wanted, strict=True), strict=True):
        torch.testing.assert_close(x, torch.stack(exact), atol=1e-12, rtol=0)


def tensors(tokens: list[list[Token]]) -> list[torch.Tensor]:
    """q, k and v of the tokens of each row, [batch, heads, s, D]."""
    if not tokens[0]:
        return [torch.zeros(len(tokens), heads, 0, size).double() for heads, size in SHAPES]
    every = [[token[:3] for token in row] for row in tokens]
    return [torch.stack([torch.stack([x[i] for x in row], 1) for row in every]) for i in range(3)]


def _check_held(group: Any, cache: KVCache, texts: Texts) -> None:
    """Each position is held once at most, and where a query to come may reach it, it is held."""
    held: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(held, cache.places.tolist(), group=group)
    together = sorted(np.concatenate(held).astype(int).tolist())
    n, more = len(texts.rows[0]), 40
    assert len(cache) == n and len(set(together)) == len(together)
    longer = Texts(texts.rule, 1)
    longer.rows[0] = [longer.token() for _ in range(n + more)]
    reached = longer.attended(0)[..., n:, :n]
    kept = np.flatnonzero(reached.any(tuple(range(reached.ndim - 1))))
    assert {*kept.tolist()} <= {*together}


def _refused(group: Any, cache: KVCache, texts: Texts, draw: np.random.Generator) -> None:
    """A step that does not fit what is held, on all ranks or one: an error on each, and nothing changes."""
    name = list(WRONG)[int(draw.integers(len(WRONG)))]
    who = int(draw.integers(-1, dist.get_world_size(group)))
    tokens = [[texts.token()] for _ in texts.rows]
    q, k, v = tensors(tokens)
    if who in (-1, dist.get_rank(group)):
        q, k, v = WRONG[name](q, k, v)
    before = (cache.places.tolist(), [*cache.counts], cache.length)
    said = error_of(cache, q, k, v)
    assert said, name
    assert before == (cache.places.tolist(), cache.counts, cache.length), name
    every: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(every, said, group=group)
    assert len(set(every)) == 1 or all(every[who] in one for one in every), every


WRONG: dict[str, Any] = {
    "one kv head": lambda q, k, v: (q, k[:, :1], v[:, :1]),
    "four kv heads": lambda q, k, v: (q, k.repeat(1, 2, 1, 1), v.repeat(1, 2, 1, 1)),
    "a larger batch": lambda *x: (one.repeat(2, 1, 1, 1) for one in x),
    "no batch": lambda *x: (one[:0] for one in x),
    "a wider head": lambda q, k, v: (q.repeat(1, 1, 1, 2), k.repeat(1, 1, 1, 2), v),
    "wider values": lambda q, k, v: (q, k, v.repeat(1, 1, 1, 2)),
    "more heads": lambda q, k, v: (q.repeat(1, 2, 1, 1), k, v),
    "float32": lambda *x: (one.float() for one in x),
    "bfloat16": lambda *x: (one.bfloat16() for one in x),
    "mixed": lambda q, k, v: (q, k, v.float()),
    "gradients": lambda q, k, v: (q, k.requires_grad_(), v),
    "more queries": lambda q, k, v: (q.repeat(1, 1, 2, 1), k, v),
    "no tensor": lambda q, k, v: (q, k.tolist(), v),
}


def error_of(cache: KVCache, *step: Any) -> str:
    """The error of a step; nothing where it is taken."""
    try:
        cache.attend(*step)
    except LattendError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def messages(group: Any) -> dict[str, str]:
    """The error of each wrong step after a prompt of two positions, then those of a fill and of a length."""
    texts = Texts("k <= q", 1)
    found: dict[str, str] = {}
    for name, wrong in WRONG.items():
        cache = KVCache("k <= q", mesh=group, heads=HEADS)
        _step(cache, texts := Texts("k <= q", 1), 2)
        found[name] = error_of(cache, *wrong(*tensors([[texts.token()]])))
        _step(cache, texts, 1)
    cache = KVCache("k <= q", mesh=group, heads=HEADS, n=3)
    _step(cache, texts := Texts("k <= q", 1), 2)
    found["length"] = error_of(cache, *tensors([[texts.token(), texts.token()]]))
    _step(cache, texts, 1)
    _, k, v = tensors([[texts.token()]])
    fills = {"heads": (k[:, [0, 0, 0]], v[:, [0, 0, 0]]), "dtypes": (k, v.float()), "axes": (k[0], v[0])}
    for name, (keys, values) in fills.items():
        cache = KVCache("k <= q", mesh=group, heads=HEADS)
        try:
            cache.fill(keys, values)
        except LattendError as error:
            found[f"fill: {name}"] = f"{type(error).__name__}: {error}"
        _step(cache, Texts("k <= q", 1), 1)
    return found


def under_autocast(group: Any) -> tuple[torch.dtype, str]:
    """The dtype in which a cache holds steps under autocast, where inference mode begins and ends too."""
    cache = KVCache("k <= q", mesh=group, heads=HEADS)
    q, k, v = (x.float() for x in tensors([[Texts("k <= q", 1).token()]]))
    with torch.autocast("cpu", torch.bfloat16), torch.inference_mode():
        cache.attend(q, k, v)
    with torch.autocast("cpu", torch.bfloat16):
        out: Any = cache.attend(q, k, v)
    return out.dtype, error_of(cache, q, k, v)
