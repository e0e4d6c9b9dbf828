"""Strategies: what attention moves and how long it takes, as a halo, a ring, all-gather, Ulysses, or both."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import NoClosedForm, NotAffineError, TooLarge
from lattend.parallel.cluster import Cluster
from lattend.parallel.keyset import KeySet
from lattend.parallel.layout import Ints, Layout, contiguous
from lattend.parallel.tally import DataTally, PairTally, tally_of
from lattend.rules.flat import on_line
from lattend.rules.rule import Rule

BACK = 2.5  # operations of the backward pass for one of the forward pass: five products for two
SEEN = 1.01  # times that differ by less are one
WHOLE = 64  # ranks up to which every edge is counted
KEPT_SHARDS = 2  # more keys of others than so many shards are not held at once: they come in stages
ITEM = {"bfloat16": 2, "float16": 2, "float32": 4, "float64": 8, "fp8": 1}


@dataclass(frozen=True)
class Tensors:
    """Heads and widths of q, k and v, and the bytes of a number."""

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    item: int
    batch: int = 1

    @property
    def row(self) -> int:
        """Bytes of a key and its value, over all heads: what an edge carries for each key."""
        return self.batch * self.kv_heads * (self.head_dim + self.value_dim) * self.item

    @property
    def query(self) -> int:
        """Bytes of a query and its output, over all heads."""
        return self.batch * self.heads * (self.head_dim + self.value_dim) * self.item

    def flops(self, pairs: Any, grids: int) -> Any:
        """Operations of the forward pass for these pairs, which are counted over `grids` heads."""
        return 2.0 * (self.head_dim + self.value_dim) * self.batch * (self.heads / grids) * pairs

    def of_heads(self, groups: int) -> Tensors:
        """Those of one of several groups of heads; keys and values are repeated where they are fewer."""
        kv_heads = max(1, self.kv_heads // groups)
        return Tensors(self.heads // groups, kv_heads, self.head_dim, self.value_dim, self.item, self.batch)


@dataclass(frozen=True)
class Strategy:
    """What a strategy moves and takes: the most bytes that a rank gets, and the slowest rank's seconds."""

    name: str
    cut: str
    forward: int
    backward: int
    messages: int
    held: int  # bytes of others' keys and values that a rank holds at once
    balance: float
    times: tuple[float, float]  # seconds forward and backward
    ours: bool = True

    @property
    def time(self) -> float:
        """Seconds forward and backward together."""
        return sum(self.times)

    def fits(self, cluster: Cluster) -> bool:
        """Whether a GPU has room for what is held at once."""
        return cluster.machine.memory is None or self.held <= cluster.machine.memory

    @property
    def label(self) -> str:
        return f"{self.name}, {self.cut}" if self.cut else self.name


def quickest_of(some: Sequence[Strategy], cluster: Cluster, trains: bool = True) -> Strategy:
    """The quickest of those that a GPU has room for; of those within 1% of it, that of fewest bytes.

    Where a call does not train, the backward pass does not count.
    """
    some = [one for one in some if one.fits(cluster)] or some
    time = {id(one): one.time if trains else one.times[0] for one in some}
    least = min(time.values())
    near = [one for one in some if time[id(one)] <= least * SEEN]
    return min(near, key=lambda one: one.forward + one.backward * trains)


class Share:
    """What each rank of a layout has to do and gets."""

    def __init__(self, tally: PairTally | DataTally, layout: Layout) -> None:
        self.tally, self.layout = tally, layout

    @cached_property
    def pairs(self) -> NDArray[Any]:
        return self.tally.pairs(self.layout)

    @cached_property
    def own(self) -> NDArray[Any]:
        """Pairs of each rank with its own keys."""
        return self.tally.own_pairs(self.layout)

    @cached_property
    def reached(self) -> KeySet:
        return self.tally.reached(self.layout)

    @property
    def halo(self) -> Ints:
        """Keys that each rank gets."""
        return self.reached.halo

    @cached_property
    def balance(self) -> float:
        """The most pairs of a rank over the mean."""
        total = int(sum(self.pairs))
        return float(max(self.pairs)) * self.layout.ranks / total if total else 1.0

    @cached_property
    def looked_at(self) -> list[int]:
        """Ranks with edges counted one by one: all, or the first, a middle, the last and the fullest."""
        ranks = self.layout.ranks
        if ranks <= WHOLE:
            return [*range(ranks)]
        return sorted({0, ranks // 2, ranks - 1, int(np.argmax(self.halo))})

    @cached_property
    def table(self) -> Ints:
        """Keys that every rank, or of many the one that gets most, reaches on each rank; its own left out."""
        rows = self.looked_at if self.layout.ranks <= WHOLE else [int(np.argmax(self.halo))]
        counts = self.reached.table(rows)
        counts[np.arange(len(rows)), rows] = 0
        return counts

    @cached_property
    def sent(self) -> dict[int, int]:
        """Keys of each rank looked at that others get, once for each of them."""
        if self.layout.ranks <= WHOLE:
            return dict(enumerate(self.table.sum(0).tolist()))
        counts: dict[int, int] = {}
        for rank in self.looked_at:
            to = self.reached.to_each(rank)
            counts[rank] = int(to.sum() - to[rank])
        return counts

    @cached_property
    def peers(self) -> int:
        """The most ranks that one gets keys of."""
        return int((self.table > 0).sum(1).max(initial=0))


def _compute(share: Share, tensors: Tensors, cluster: Cluster, grids: int, moved: Any) -> list[Any]:
    """Seconds of each rank's pairs, forward and backward; `moved` are the bytes of the forward pass."""
    flops = tensors.flops(share.pairs.astype(float), grids)
    return [cluster.compute(flops, moved), cluster.compute(BACK * flops, BACK * moved, backward=True)]


def halo_strategy(share: Share, tensors: Tensors, cluster: Cluster, grids: int) -> Strategy:
    """Each rank gets the keys it reaches, all at once, while it computes the pairs of its own."""
    row, layout = tensors.row, share.layout
    halo, lengths = share.halo.astype(float), layout.lengths.astype(float)  # bytes may pass 64 bits
    near = np.minimum(share.reached.inside(cluster.node) - share.reached.own, share.halo).astype(float)
    coming = cluster.transfer(row * near, row * (halo - near), share.peers * (halo > 0))
    leaving = np.zeros(layout.ranks)
    for rank, keys in share.sent.items():
        leaving[rank] = keys * row / cluster.neighbour(layout.ranks)
    pairs = np.maximum(share.pairs, 1).astype(float)
    far = np.minimum(1.0, halo * lengths * grids / pairs)  # at most so much is of others' keys
    whole = _compute(share, tensors, cluster, grids, lengths * (tensors.query + row) + halo * row)
    times = _hidden(share, far, coming, whole[0]), _hidden(share, far, np.maximum(coming, leaving), whole[1])
    gets, home = int(share.halo.max(initial=0)) * row, max(share.sent.values(), default=0) * row
    return Strategy("halo", layout.name, gets, home, share.peers, gets, share.balance, times)


def _hidden(share: Share, far: Any, wire: Any, work: Any) -> float:
    """Seconds of the slowest rank, whose own pairs hide what is sent meanwhile, to 1%.

    `far` is the most that pairs of others' keys can be of its work. How much they are is counted where that
    may make a rank the slowest.
    """
    best = float(np.max(work, initial=0.0))
    left = np.flatnonzero((wire + far * work > SEEN * best) & (wire > (SEEN - 1) * work))
    if not len(left):
        return best
    rest = far[left]
    with suppress(NoClosedForm, TooLarge):
        pairs = share.pairs[left]
        rest = (pairs - share.own[left]).astype(float) / np.maximum(pairs, 1)
    return max(best, float(np.max(wire[left] + rest * work[left])))


def staged_strategy(share: Share, tensors: Tensors, cluster: Cluster, grids: int) -> Strategy:
    """The same edges, those of one distance between ranks at a time: a ring of the keys that are needed."""
    row, layout = tensors.row, share.layout
    stages = max(1, share.peers)
    halo, lengths = share.halo.astype(float), layout.lengths.astype(float)
    wire = row * halo / cluster.neighbour(layout.ranks) + stages * cluster.latency * (halo > 0)
    whole = _compute(share, tensors, cluster, grids, lengths * (tensors.query + row))
    # Backward, keys come again and gradients go home
    times = _overlapped(whole[0], wire, stages), _overlapped(whole[1], 2 * wire, stages)
    gets, held = int(share.halo.max(initial=0)) * row, 2 * row * int(layout.lengths.max(initial=0))
    back = max((int(share.halo[rank]) + keys for rank, keys in share.sent.items()), default=0) * row
    held = min(held, gets)
    return Strategy("halo, staged", layout.name, gets, back, share.peers, held, share.balance, times)


def _overlapped(work: Any, wire: Any, stages: int) -> float:
    """Seconds of the slowest rank where each stage is sent while the one before is computed."""
    seconds = np.maximum(work, wire) + np.minimum(work, wire) / (stages + 1)
    return float(np.max(seconds, initial=0.0))


def elsewhere(share: Share, tensors: Tensors, cluster: Cluster, grids: int) -> list[Strategy]:
    """A ring and an all-gather as others have them: every rank gets all keys.

    Backward a ring brings keys again, and gradients that go all the way round, home too; after an all-gather
    each rank gets the gradients of its keys from every other. Their kernels are taken to skip the pairs that
    are not attended, as ours do.
    """
    ranks, row, lengths, cut = share.layout.ranks, tensors.row, share.layout.lengths, share.layout.name
    n = int(lengths.sum())
    gets, shard = row * (n - int(lengths.min(initial=n))), row * int(lengths.max(initial=0))
    whole = _compute(share, tensors, cluster, grids, lengths.astype(float) * tensors.query + float(n * row))
    ring = gets / cluster.neighbour(ranks) + (ranks - 1) * cluster.latency
    gather = gets / cluster.collective(ranks) + cluster.latency * (ranks > 1)
    back, home = (2 * gets + shard, (ranks - 1) * shard) if ranks > 1 else (0, 0)
    ring_times = (
        _overlapped(whole[0], ring, ranks - 1),
        _overlapped(whole[1], ring * back / max(1, gets), ranks - 1),
    )
    times = float(whole[0].max() + gather), float(whole[1].max() + gather)
    messages, balance = ranks - 1, share.balance
    return [
        Strategy("ring", cut, gets, back, messages, min(2 * shard, gets), balance, ring_times, ours=False),
        Strategy("all-gather", cut, gets, home, messages, gets, balance, times, ours=False),
    ]


def heads_strategy(share: Share, tensors: Tensors, cluster: Cluster, grids: int, groups: int) -> Strategy:
    """Heads over `groups` ranks by an all-to-all, and the positions over the others by a halo.

    `share` is that of the positions cut over ranks / groups.
    """
    some = tensors.of_heads(groups)
    each = int(share.layout.lengths.max(initial=0)) / groups  # positions of one rank
    # A rank gets others' positions of its heads of q, k and v, then its positions of others' heads of out
    width = some.heads * some.head_dim + some.kv_heads * (some.head_dim + some.value_dim)
    numbers = width * each * (groups - 1) + (tensors.heads - some.heads) * some.value_dim * each
    swapped = round(some.batch * some.item * numbers)
    wire = swapped / (cluster.inside if groups <= cluster.node else cluster.between) + 2 * cluster.latency
    if share.layout.ranks == 1:
        moved = float(share.layout.lengths.sum()) * (some.query + some.row)
        forward, backward = (float(x.max()) for x in _compute(share, some, cluster, grids, moved))
        times = forward + wire, backward + wire
        return Strategy("Ulysses", "", swapped, swapped, groups - 1, swapped, 1.0, times)
    spread = replace(cluster, node=max(1, cluster.node // groups))
    inner = halo_strategy(share, some, spread, grids)
    if not inner.fits(cluster):
        inner = staged_strategy(share, some, spread, grids)
    return replace(
        inner,
        name=f"Ulysses {groups} × {inner.name.removeprefix('halo, ')} {share.layout.ranks}",
        forward=inner.forward + swapped,
        backward=inner.backward + swapped,
        messages=inner.messages + groups - 1,
        held=inner.held + swapped,
        times=(inner.times[0] + wire, inner.times[1] + wire),
    )


def head_groups(tensors: Tensors, cluster: Cluster, ranks: int) -> list[int]:
    """Over how many ranks heads are tried: all, and groups inside a node; of many ranks the largest such."""
    inside = [
        d for d in range(2, min(cluster.node, ranks - 1) + 1) if ranks % d == 0 and heads_divide(tensors, d)
    ]
    every = [ranks] if ranks > 1 and heads_divide(tensors, ranks) else []
    return (inside if ranks <= WHOLE else inside[-1:]) + every


def heads_divide(tensors: Tensors, groups: int) -> bool:
    """Whether `groups` ranks can share the heads, those of keys and values too, or repeated."""
    kv = tensors.kv_heads
    return tensors.heads % groups == 0 and (kv % groups == 0 or groups % kv == 0)


def block_meshes(ranks: int, axes: int) -> list[tuple[int, ...]]:
    """The two meshes of blocks nearest to a square, on an image or a volume.

    >>> block_meshes(8, 2), block_meshes(7, 2)
    ([(4, 2), (2, 4)], [])
    """
    if axes < 2:
        return []
    side = next(d for d in range(int(ranks**0.5), 0, -1) if ranks % d == 0)
    if side == 1:
        return []
    return [*dict.fromkeys([(ranks // side, side), (side, ranks // side)])]


# The strategy of a call


def choose_strategy(
    rule: Rule, layout: Layout, tensors: Tensors, cluster: Cluster, *, trains: bool, by_heads: bool
) -> str | None:
    """The name of the strategy that is over first, its backward pass too where the call trains.

    Heads are shared only if they can be, `by_heads`, and keys do not come at once where these are too many
    to hold. None where the pairs of these shards are not counted, and where heads differ, of which some
    ranks would have more work than others.

    >>> from lattend.rules.reader import rule
    >>> tensors, window = Tensors(8, 8, 64, 64, 2), rule("strided(63)").at(n=4096)
    >>> choose_strategy(
    ...     window, Layout.on_line(contiguous(4096, 4)), tensors, Cluster(), trains=True, by_heads=True
    ... )
    'halo'
    """
    if rule.has_heads:
        return None
    line = on_line(rule) if len(layout.sizes) == 1 else rule  # a line of pixels may be cut inside a row
    try:
        strategies = _strategies(line, layout, tensors, cluster, by_heads)
    except (NoClosedForm, NotAffineError, TooLarge):
        return None
    best = quickest_of([*strategies.values()], cluster, trains)
    return next(name for name, one in strategies.items() if one is best)


def _strategies(
    rule: Rule, layout: Layout, tensors: Tensors, cluster: Cluster, by_heads: bool
) -> dict[str, Strategy]:
    """What is predicted of each, by the names that they have where they run."""
    tally = tally_of(rule)
    if tally.sizes != layout.sizes:  # an image that is read row by row
        rows, *others = layout.cuts
        if others:
            raise NoClosedForm("blocks of an image whose axes do not part are not counted")
        layout = Layout((rows.times(tally.unit),), tally.sizes)
    share = Share(tally, layout)
    strategies = {"ring": staged_strategy(share, tensors, cluster, grids=1)}
    if share.halo.max(initial=0) <= KEPT_SHARDS * layout.lengths.max(initial=0):
        strategies["halo"] = halo_strategy(share, tensors, cluster, grids=1)
    if by_heads:
        whole = Share(tally, Layout((contiguous(tally.sizes[0], 1),), tally.sizes))
        strategies["ulysses"] = heads_strategy(whole, tensors, cluster, grids=1, groups=layout.ranks)
    return strategies
