"""What ranks do in tests of repeated calls, of memory, and of tensors that are given in parts."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.reductions import StorageWeakRef

import lattend as lt
from lattend.parallel import edges, rank_schedule, reached
from lattend.parallel.exchange import Exchange
from lattend.parallel.ranks import ranks_of
from lattend.parallel.sharded_attention import attention
from lattend.parallel.sharding import shard


def looks_at_sets(group: Any) -> list[int]:
    """How often a first call and later ones ask a set, or decide anything."""
    asked = [0]

    def counting(function: Any) -> Any:
        def called(*args: Any, **named: Any) -> Any:
            asked[0] += 1
            return function(*args, **named)

        return called

    for module, name in (
        (reached, "crossing"),
        (edges, "crossing"),
        (rank_schedule, "edges_of"),
        (rank_schedule, "local_rule"),
    ):
        setattr(module, name, counting(getattr(module, name)))
    found: list[int] = []
    for length in (6, 6, 6, 5):
        before = asked[0]
        x = torch.randn(1, 2, length, 4, requires_grad=True)
        attention(x, x, x, "k <= q and q - k <= t", t=7, mesh=group).sum().backward()
        found.append(asked[0] - before)
    return found


def remembered(group: Any) -> int:
    """How many works are kept after calls of many kinds."""
    x = torch.randn(1, 2, 3, 4)
    for t in range(70):
        attention(x, x, x, "k <= q and q - k <= t", t=t, mesh=group, strategy="gather")
    return len(ranks_of(group).executions)


def keys_alive(group: Any, strategy: str, length: int) -> tuple[int, int]:
    """The most keys of others that are alive at once, and those between the forward and backward passes."""
    alive: list[tuple[StorageWeakRef, int]] = []
    most, width = [0], 2 * (4 + 4)  # numbers of a key and its value, of two heads
    begin, wait = Exchange.begin, Exchange.wait

    def now() -> int:
        return sum(keys for storage, keys in alive if not storage.expired())

    def watched_begin(*args: Any) -> Any:
        found = begin(*args)
        if args[2] == "keys":
            alive.extend((StorageWeakRef(x.untyped_storage()), x.numel() // width) for x in found.coming)
        most[0] = max(most[0], now())
        return found

    def watched_wait(self: Any) -> Any:
        found = wait(self)
        self.coming = []
        most[0] = max(most[0], now())
        return found

    Exchange.begin, Exchange.wait = staticmethod(watched_begin), watched_wait  # pyright: ignore
    try:
        x = torch.randn(1, 2, length, 4, requires_grad=True)
        out = attention(x, x, x, "full", mesh=group, strategy=strategy)
        between = now()
        out.sum().backward()
    finally:
        Exchange.begin, Exchange.wait = staticmethod(begin), wait  # pyright: ignore
    return most[0], between


def arrays_in_parts(group: Any) -> float:
    """How far documents that each rank gives for its own positions are from those of one process."""
    torch.manual_seed(0)
    doc = torch.randint(0, 4, (2, 17)).sort(-1).values
    q = torch.randn(2, 2, 17, 4, dtype=torch.float64)
    worst = 0.0
    for ids in (doc, doc[0]):
        for cut in (None, "zigzag"):
            wanted = shard(lt.attention(q, q, q, "doc[q] == doc[k]", doc=ids), group, cut=cut)
            mine, own = shard(q, group, cut=cut), shard(ids, group, cut=cut, dim=-1)
            found = attention(mine, mine, mine, "doc[q] == doc[k]", mesh=group, cut=cut, doc=own)
            worst = max(worst, float((found - wanted).abs().max()))
    return worst


def keys_of_another_length(group: Any) -> float:
    """How far cross-attention, with fewer keys than queries, is from that of one process."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 2, 17, 4, dtype=torch.float64), torch.randn(2, 2, 7, 4, dtype=torch.float64)
    rule, worst = "abs(q - 2*k) <= 3", 0.0
    for strategy in (None, "halo", "ring"):
        wanted = shard(lt.attention(q, k, k, rule, m=7), group)
        mine, keys = shard(q, group), shard(k, group)
        found = attention(mine, keys, keys, rule, mesh=group, m=7, strategy=strategy)
        worst = max(worst, float((found - wanted).abs().max()))
    return worst


def masks_on_some(group: Any) -> float:
    """How far a mask that only one rank has is from the same in one process."""
    torch.manual_seed(0)
    q = torch.randn(2, 2, 12, 4, dtype=torch.float64)
    mask = torch.ones(2, 12, dtype=torch.bool)
    mask[0, -2:] = False
    wanted = shard(lt.attention(q, q, q, "full", padding=mask), group)
    mine, last = shard(q, group), dist.get_rank(group) == group.size() - 1
    found = attention(
        mine, mine, mine, "full", mesh=group, padding=shard(mask, group, dim=1) if last else None
    )
    return float((found - wanted).abs().max())


def same_bits(group: Any) -> bool:
    """Whether gradients have the same bits on every run."""
    torch.manual_seed(0)
    mine = [shard(torch.randn(1, 2, 64, 8), group).requires_grad_() for _ in range(3)]
    found: list[list[Any]] = []
    for _ in range(3):
        run: Any = attention
        out = run(*mine, "abs(q - k) <= 40", mesh=group, strategy="halo")
        found.append([*torch.autograd.grad(out.square().sum(), mine)])
    return all(torch.equal(x, y) for some in found for x, y in zip(some, found[0], strict=True))


def decoded(
    group: Any, rule: str, heads: int, widths: tuple[int, int] = (4, 3), **kind: Any
) -> tuple[float, int, int]:
    """How far decoding with keys over ranks is from one process; keys held at the end, bytes of a step.

    `kind` is a dtype and a device; errors are relative to float64 on the same device.
    """
    import gloo_ranks

    torch.manual_seed(0)
    kind = {"dtype": torch.float64, "device": "cpu"} | kind
    shapes = (heads, widths[0]), (2, widths[0]), (2, widths[1])
    q, k, v = (torch.randn(2, h, 23, d, dtype=torch.float64).to(**kind) for h, d in shapes)
    sinks = torch.randn(heads, dtype=torch.float64).to(**kind)
    wanted = lt.attention(
        q.double(), k.double(), v.double(), rule, sinks=sinks.double(), softcap=2.0, kernel="dense"
    )

    def away(found: torch.Tensor, exact: torch.Tensor) -> float:
        return float((found.double() - exact).norm() / exact.norm())

    cache = lt.parallel.KVCache(rule, mesh=group, heads=heads)
    prompt = [shard(x[:, :, :11], group, cut="zigzag") for x in (q, k, v)]
    how: Any = {"cut": "zigzag", "sinks": sinks, "softcap": 2.0}
    out = lt.parallel.attention(prompt[0], prompt[1], prompt[2], rule, mesh=group, **how)
    worst = away(out, shard(wanted[:, :, :11], group, cut="zigzag"))
    cache.fill(prompt[1], prompt[2], cut="zigzag")
    first, moved = 11, 0
    for count in (1, 1, 4, 1, 1, 3, 1):
        new = slice(first, first + count)
        with gloo_ranks.counted() as came:
            found: Any = cache.attend(q[:, :, new], k[:, :, new], v[:, :, new], sinks=sinks, softcap=2.0)
        moved = came["messages"] // count
        worst = max(worst, away(found, wanted[:, :, new]))
        assert found.is_contiguous()
        first += count
    assert len(cache) == 23
    return worst, len(cache.places), moved
