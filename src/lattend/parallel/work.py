"""Work: what a rank does in calls of one kind, decided once by all ranks together and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lattend.parallel.edges import Edge, Listed, PairBlock, blocks_of, edges_of
from lattend.parallel.exchange import Routes
from lattend.parallel.keyset import Box, Keys
from lattend.parallel.layout import Layout
from lattend.parallel.local import Heads, local_axes, local_bias, local_rule, local_table
from lattend.parallel.ranks import Ranks
from lattend.parallel.reached import Arrays, reached_keys
from lattend.parallel.strategies import KEPT_SHARDS
from lattend.rules.axes import HEADS
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Num
from lattend.rules.rule import Rule

MOST_BOXES = 4  # of one rank's keys, each a call


@dataclass(frozen=True)
class WorkKey:
    """All that decides the work of a kind of call, the same on every rank but for who asks."""

    rule: Rule  # complete, on the axes of the layouts
    queries: Layout  # of the ranks that exchange keys
    keys: Layout
    heads: Heads
    strategy: str  # halo, gather or ring; "" leaves it to the count
    bias: str | None  # the key of a bias
    own_rows: bool  # whether that is a table of a rank's own queries
    placed: bool  # whether it matters where in the whole a pair stands: with dropout, or lengths of padding


@dataclass(frozen=True)
class LocalCall:
    """A block's arguments of the operator, as far as they are the same in every call."""

    block: PairBlock
    held: Rule  # whose key the operator is given: what it looks up lives as long as it does
    numbers: tuple[int, ...]
    term: str | None
    heads: tuple[int, int, int]  # of the block, of the whole, and the first of the block
    places: tuple[torch.Tensor, torch.Tensor] | None  # of queries and keys in the whole, read row by row


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

    @property
    def kept(self) -> bool:
        return self.strategy != "ring"


def edges_asked(asked: WorkKey, rank: int, arrays: Arrays) -> list[Edge]:
    """What a rank needs of the others."""
    mask = (
        np.full(asked.keys.sizes, bool(asked.queries.lengths[rank]))
        if asked.strategy == "gather"
        else reached_keys(asked.rule, asked.queries.boxes(rank), arrays)
    )
    return edges_of(mask, asked.keys, rank, _listed(asked.rule) if asked.bias is None else None)


def _listed(rule: Rule) -> Listed:
    """Says which boxes of keys become a list that is looked up.

    Many boxes are many calls, and where pieces follow each other at a distance that does not go with the
    rule's own divisors, their plan would take seconds. A bias has no such list.
    """
    by = {
        node.args[1].value
        for node in expr.walk(rule.condition)
        if isinstance(node, Arith) and node.op in ("//", "%") and isinstance(node.args[1], Num)
    }

    def is_listed(boxes: Sequence[Box]) -> bool:
        periods = {run.period for box in boxes for run in box.along if run.count > 1}
        return len(boxes) > MOST_BOXES or any(a % b and b % a for a in periods for b in by)

    return is_listed


def decide(ranks: Ranks, asked: WorkKey, edges: Sequence[Sequence[Edge]], device: torch.device) -> Work:
    """The work of this rank, from the edges to every rank of its line."""
    rank, size = ranks.along.rank, ranks.along.size
    coming = [sum(edge.total for edge in some) for some in edges]
    longest = int(max(asked.keys.lengths))
    strategy = asked.strategy or ("ring" if max(coming) > KEPT_SHARDS * longest else "halo")
    mine, leaving = edges[rank], [edge for some in edges for edge in some if edge.source == rank]
    distances = [*range(1, size)] if strategy == "ring" else [0][: size - 1]
    queries = asked.queries.boxes(rank)

    def calls(keys: Sequence[Keys]) -> list[LocalCall]:
        return [_local(asked, block, device) for block in blocks_of(asked.rule, queries, keys)]

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
    own = calls([Box.of(pieces) for pieces in asked.keys.boxes(rank)])
    return Work(strategy, tuple(own), tuple(stages))


def _places(edge: Edge, keys: Layout, rank: int, device: torch.device) -> torch.Tensor:
    """Where a rank's tensors hold the keys of an edge that leaves it."""
    found = [keys.places(rank, box) for box in edge.keys]
    return torch.from_numpy(np.concatenate(found)).to(device)


def _local(asked: WorkKey, block: PairBlock, device: torch.device) -> LocalCall:
    heads, whole = asked.heads, asked.rule
    own = None if heads.count == heads.whole else heads
    rule = local_rule(whole, block, own)
    sizes = {"n": block.n, "m": block.m, HEADS: heads.count}
    for axis, size in zip(local_axes(whole, block), block.queries.sizes, strict=False):
        sizes.setdefault(axis.queries, size)
    term = None
    if asked.bias is not None:
        term = (
            local_table(asked.bias, whole, block)
            if asked.own_rows
            else local_bias(asked.bias, whole, block, own)
        )
    places = None
    if asked.placed:
        both = block.queries.flat(asked.queries.sizes), block.keys.flat(asked.keys.sizes)
        queries, keys = (torch.from_numpy(some).to(device) for some in both)
        places = queries, keys
    numbers = tuple(sizes[name] for name in rule.sizes)
    return LocalCall(block, rule, numbers, term, (heads.count, heads.whole, heads.first), places)
