"""RankSchedule: what a rank does in calls of one kind, decided once by all ranks together and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from lattend.attend.bias import parts_of
from lattend.parallel.edges import Edge, PairBlock, blocks_of, edges_of
from lattend.parallel.exchange import Routes
from lattend.parallel.keyset import POSITIONS, Box, Keys, ListedKeys
from lattend.parallel.layout import Layout
from lattend.parallel.ranks import Ranks
from lattend.parallel.reached import Arrays, reached_keys
from lattend.parallel.strategies import KEPT_SHARDS
from lattend.rules.axes import CROSS, HEAD, HEADS, Axis
from lattend.rules.flat import flat_places, flattened
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Name, Num, Term
from lattend.rules.rule import Rule


@dataclass(frozen=True)
class ScheduleKey:
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
class RankSchedule:
    """What a rank does: the blocks of its own keys, then stage by stage those of others'.

    In one stage keys are kept for the backward pass; in several they come again.
    """

    strategy: str
    own: tuple[LocalCall, ...]
    stages: tuple[Stage, ...]

    @property
    def kept(self) -> bool:
        return self.strategy != "ring"


def edges_asked(asked: ScheduleKey, rank: int, arrays: Arrays) -> list[Edge]:
    """What a rank needs of the others."""
    mask = (
        np.full(asked.keys.sizes, bool(asked.queries.lengths[rank]))
        if asked.strategy == "gather"
        else reached_keys(asked.rule, asked.queries.boxes(rank), arrays)
    )
    divisors = _divisors(asked.rule) if asked.bias is None else None  # a bias has no list of keys
    return edges_of(mask, asked.keys, rank, divisors)


def _divisors(rule: Rule) -> set[int]:
    """The numbers by which the rule's condition divides."""
    return {
        node.args[1].value
        for node in expr.walk(rule.condition)
        if isinstance(node, Arith) and node.op in ("//", "%") and isinstance(node.args[1], Num)
    }


def decide(
    ranks: Ranks, asked: ScheduleKey, edges: Sequence[Sequence[Edge]], device: torch.device
) -> RankSchedule:
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
    return RankSchedule(strategy, tuple(own), tuple(stages))


def _places(edge: Edge, keys: Layout, rank: int, device: torch.device) -> torch.Tensor:
    """Where a rank's tensors hold the keys of an edge that leaves it."""
    found = [keys.places(rank, box) for box in edge.keys]
    return torch.from_numpy(np.concatenate(found)).to(device)


def _local(asked: ScheduleKey, block: PairBlock, device: torch.device) -> LocalCall:
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


Terms = Mapping[str, Term]


@dataclass(frozen=True)
class Heads:
    """The heads that a rank computes, of all there are."""

    first: int
    count: int
    whole: int


def local_axes(rule: Rule, block: PairBlock) -> tuple[Axis, ...]:
    """Those of an image where the block has as many rows and columns of queries as of keys; else a line's."""
    same = block.queries.sizes == block.keys.sizes
    return rule.axes if len(rule.axes) > 1 and same else CROSS


def local_rule(rule: Rule, block: PairBlock, heads: Heads | None = None) -> Rule:
    """The rule for a block: its own sizes, and positions counted from its own beginning.

    Sizes that the condition speaks of stay those of the whole.

    >>> from lattend.parallel.keyset import Box
    >>> from lattend.parallel.edges import BoxView
    >>> from lattend.rules.reader import rule
    >>> whole = rule("abs(qy - ky) <= 1 and qx == kx").at(rows=9, cols=4)
    >>> queries, row = Box.of([(3, 4), (0, 4)]), BoxView(0, (1, 4), ((0, 1), (0, 4)))
    >>> local_rule(whole, PairBlock(queries, row, Box.of([(2, 3), (0, 4)]), 0))  # row 3 with row 2
    <Rule abs(qy + 3 - (ky + 2)) <= 1 and qx == kx>
    >>> local_rule(whole, PairBlock(queries, row, Box.of([(2, 3), (1, 3)]), 0))  # with two columns of it
    <Rule abs(q // 4 + 3 - (k // 2 + 2)) <= 1 and q % 4 == k % 2 + 1>
    """
    at = {**_positions(rule, block), **_of_heads(heads)}
    whole = replace(rule.baked(), axes=local_axes(rule, block), values={})
    if isinstance(block.keys, ListedKeys):
        whole = replace(whole, data={**whole.data, POSITIONS: block.keys.listed})
    return replace(whole, condition=expr.substituted(whole.condition, at), where=expr.Truth(True))


def whole_bias(key: str, rule: Rule, *, on_line: bool) -> str:
    """The key of a bias with the numbers of the rule; `on_line` reads its image row by row."""
    names, term = parts_of(key)
    at: dict[str, Term] = {name: Num(rule.values[name]) for name in rule.parameters}
    if on_line and len(rule.axes) > 1:
        at |= {axis.queries: Num(rule.values[axis.queries]) for axis in rule.axes}
        at |= flat_places(rule.axes, rule.values)
    return _key(names, term, at)


def local_bias(key: str, rule: Rule, block: PairBlock, heads: Heads | None = None) -> str:
    """The key of a bias for a block."""
    names, term = parts_of(key)
    return _key(names, term, {**_positions(rule, block), **_of_heads(heads)})


def local_table(key: str, rule: Rule, block: PairBlock) -> str:
    """The same of a table that has the rows of this rank's queries alone, and a column for every key."""
    names, term = parts_of(key)
    (_, queries), (_, keys) = _numbers(rule, block)
    rows = [moved(at, a) for at, (a, _) in zip(queries, block.part.inside, strict=True)]
    row = moved(flattened(rows, block.part.shape), block.part.start)
    whole = [rule.values[axis.keys] for axis in rule.axes]
    return _key(names, term, {"q": row, "k": flattened(block.keys.positions(keys), whole)})


def _positions(rule: Rule, block: PairBlock) -> Terms:
    """What positions and sizes of the whole are in a block."""
    found: dict[str, Term] = {}
    for axis in rule.axes:
        found |= {size: Num(rule.values[size]) for size in (axis.queries, axis.keys)}
    for box, (names, numbers) in zip((block.queries, block.keys), _numbers(rule, block), strict=True):
        found |= dict(zip(names, box.positions(numbers), strict=True))
    return found


def _numbers(rule: Rule, block: PairBlock) -> list[tuple[list[str], Sequence[Term]]]:
    """For queries and keys, the names of the whole's positions, and the numbers of rows and columns."""
    queries, keys = [axis.query for axis in rule.axes], [axis.key for axis in rule.axes]
    if local_axes(rule, block) == rule.axes:
        return [(queries, [*map(Name, queries)]), (keys, [*map(Name, keys)])]
    line = CROSS[0]
    return [(queries, block.queries.numbers(line.query)), (keys, block.keys.numbers(line.key))]


def _key(names: list[str], term: Term, at: Terms) -> str:
    """The key of a bias, its names replaced by terms."""
    return f"{' '.join(names)}\n{expr.term_text(expr.replaced(term, lambda name: at.get(name.name, name)))}"


def _of_heads(heads: Heads | None) -> Terms:
    """What `head` and `heads` stand for on a rank."""
    return {} if heads is None else {HEAD: moved(Name(HEAD), heads.first), HEADS: Num(heads.whole)}


def moved(at: Term, by: int) -> Term:
    """A position that is counted from another beginning."""
    return at if by == 0 else Arith("+", (at, Num(by)))
