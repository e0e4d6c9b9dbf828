"""Work: what a rank does in calls of one kind, decided once by all ranks together and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lattend.parallel.cut import Cut
from lattend.parallel.edges import Block, Edge, blocks_of, edges_of, runs_on
from lattend.parallel.exchange import Routes
from lattend.parallel.local import Heads, image_rule, key_places, local_bias, local_rule, rows_of
from lattend.parallel.ranks import Ranks
from lattend.parallel.reached import Arrays, reached_keys
from lattend.parallel.runs import Run
from lattend.rules.axes import HEADS
from lattend.rules.flat import on_line
from lattend.rules.rule import Rule

KEPT_SHARDS = 2  # more keys of others than so many shards are not held at once: they come in stages


@dataclass(frozen=True)
class Question:
    """All that decides the work of a kind of call, the same on every rank but for who asks."""

    rule: Rule  # complete; of a line, an image or a volume
    queries: Cut  # along the line of ranks that exchange keys
    keys: Cut
    heads: Heads
    strategy: str  # halo, gather or ring; "" leaves it to the count
    bias: str | None  # the key of a bias
    own_rows: bool  # whether that is a table of a rank's own queries


@dataclass(frozen=True)
class LocalCall:
    """A block's arguments of the operator, as far as they are not tensors."""

    block: Block
    held: Rule  # whose key the operator is given: what it looks up lives as long as it does
    numbers: tuple[int, ...]
    term: str | None
    seed_places: tuple[int, tuple[int, int, int], tuple[int, int, int]]


@dataclass(frozen=True, eq=False)
class Stage:
    """What is exchanged together, and the blocks of each source that then can be computed."""

    routes: Routes
    blocks: tuple[tuple[int, LocalCall], ...]  # the place of the source among those that send


@dataclass(frozen=True, eq=False)
class Work:
    """What a rank does: the blocks of its own keys, then stage by stage those of others'.

    In one stage keys are kept for the backward pass; in several they come again.
    """

    strategy: str
    own: tuple[LocalCall, ...]
    stages: tuple[Stage, ...]
    coming: tuple[int, ...]  # how many keys each rank gets

    @property
    def kept(self) -> bool:
        return self.strategy != "ring"


def edges_asked(asked: Question, rank: int, arrays: Arrays) -> list[Edge]:
    """What a rank needs of the others."""
    rule = on_line(asked.rule)
    mask = (
        np.full(asked.keys.n, asked.queries.length(rank) > 0)
        if asked.strategy == "gather"
        else reached_keys(rule, asked.queries.pieces[rank], arrays)
    )
    return edges_of(mask, asked.keys, rank)


def decide(ranks: Ranks, asked: Question, edges: Sequence[Sequence[Edge]], device: torch.device) -> Work:
    """The work of this rank, from the edges to every rank of its line."""
    rank, size = ranks.along.rank, ranks.along.size
    coming = tuple(sum(edge.total for edge in some) for some in edges)
    longest = max(map(asked.keys.length, range(size)))
    strategy = asked.strategy or ("ring" if max(coming) > KEPT_SHARDS * longest else "halo")
    mine, leaving = edges[rank], [edge for some in edges for edge in some if edge.source == rank]
    distances = [*range(1, size)] if strategy == "ring" else [0][: size - 1]
    rule = on_line(asked.rule)

    def calls(keys: Sequence[Run]) -> list[LocalCall]:
        return [_local(asked, rule, block) for block in blocks_of(rule, asked.queries.pieces[rank], keys)]

    stages: list[Stage] = []
    for distance in distances:
        gets = [edge for edge in mine if distance in (0, (rank - edge.source) % size)]
        sends = [edge for edge in leaving if distance in (0, (edge.target - rank) % size)]
        routes = Routes(
            ranks,
            tuple((edge.target, _places(edge, asked.keys, rank, device)) for edge in sends),
            tuple((edge.source, edge.total) for edge in gets),
        )
        blocks = [(place, call) for place, edge in enumerate(gets) for call in calls(edge.keys)]
        stages.append(Stage(routes, tuple(blocks)))  # an empty one too: all ranks post messages in one order
    return Work(strategy, tuple(calls(runs_on(asked.keys, rank))), tuple(stages), coming)


def _places(edge: Edge, keys: Cut, rank: int, device: torch.device) -> torch.Tensor:
    """Where a rank's tensors hold the keys of an edge that leaves it."""
    found = [run.positions() - run.start + keys.place(rank, run.start) for run in edge.keys]
    return torch.from_numpy(np.concatenate(found)).to(device)


def _local(asked: Question, line: Rule, block: Block) -> LocalCall:
    heads = asked.heads
    own = None if heads.count == heads.whole else heads
    rows = None if asked.own_rows else rows_of(asked.rule, block)
    rule = local_rule(line, block, own) if rows is None else image_rule(asked.rule, block, own)
    sizes = {"n": block.queries[1] - block.queries[0], "m": block.keys.total, HEADS: heads.count}
    if rows is not None:
        sizes |= {axis.queries: asked.rule.values[axis.queries] for axis in asked.rule.axes}
        sizes[asked.rule.axes[0].queries] = rows
    term = None
    if asked.bias is not None:
        of = line if asked.own_rows else asked.rule
        term = local_bias(asked.bias, of, block, own, own_rows=asked.own_rows)
    places = block.queries[0], key_places(block), (heads.count, heads.whole, heads.first)
    return LocalCall(block, rule, tuple(sizes[name] for name in rule.sizes), term, places)
