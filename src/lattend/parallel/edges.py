"""Edges: which keys travel from which rank to which, and the blocks of pairs that each rank then computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lattend.errors import NoClosedForm, NotAffineError
from lattend.parallel.crossing import crossing
from lattend.parallel.cut import Cut, Piece
from lattend.parallel.reached import Mask, reached_keys
from lattend.parallel.runs import Run, runs_of
from lattend.rules.language import expr
from lattend.rules.rule import Rule


@dataclass(frozen=True)
class Edge:
    """Keys that `target` needs of `source`, by their positions, in order."""

    source: int
    target: int
    keys: tuple[Run, ...]

    @property
    def total(self) -> int:
        """How many keys travel."""
        return sum(run.total for run in self.keys)


@dataclass(frozen=True)
class Block:
    """Pairs of a piece of queries and a run of keys: both by their positions, and where tensors hold them."""

    queries: Piece
    query_place: int
    keys: Run
    key_place: int  # among the keys of one source


def edges_to(rule: Rule, cut: Cut, target: int, keys: Cut | None = None) -> list[Edge]:
    """What a rank needs of the others, in the order of their ranks; its own keys are not among it.

    `keys` is the cut of the keys, where it is not that of the queries.
    """
    return edges_of(reached_keys(rule, cut.pieces[target]), keys or cut, target)


def edges_of(mask: Mask, keys: Cut, target: int) -> list[Edge]:
    """The same where the keys that it reaches are known."""
    return [
        Edge(source, target, tuple(runs))
        for source in range(keys.ranks)
        if source != target and (runs := _runs_on(mask, keys, source))
    ]


def runs_on(cut: Cut, rank: int) -> tuple[Run, ...]:
    """All keys of a rank."""
    return tuple(Run(a, b - a) for a, b in cut.pieces[rank])


def _runs_on(mask: Mask, cut: Cut, source: int) -> list[Run]:
    return [run for a, b in cut.pieces[source] for run in runs_of(mask[a:b], a)]


def blocks_of(rule: Rule, pieces: Sequence[Piece], keys: Sequence[Run]) -> Iterator[Block]:
    """The blocks of these queries with keys that one tensor holds in order, as far as the set has pairs."""
    place = 0
    for a, b in pieces:
        key_place = 0
        for run in keys:
            first, end = queries_reaching(rule, (a, b), run)
            if end > first:
                yield Block((first, end), place + first - a, run, key_place)
            key_place += run.total
        place += b - a


def queries_reaching(rule: Rule, queries: Piece, keys: Run) -> Piece:
    """The shortest piece of the queries beyond which none reaches a key of the run; all where no set says."""
    if expr.arrays(rule.condition):
        return queries
    try:
        found = crossing(_transposed(rule))
        region = found.reached
    except (NotAffineError, NoClosedForm):
        return queries
    ends = dict(zip(found.ends, (keys.start, keys.end), strict=True))
    held = region.holds({**rule.values, **ends, rule.axes[0].query: np.arange(*queries)})
    there = np.flatnonzero(np.broadcast_to(held, queries[1] - queries[0]))
    if not len(there):
        return queries[0], queries[0]
    return queries[0] + int(there[0]), queries[0] + int(there[-1]) + 1


def _transposed(rule: Rule) -> Rule:
    """The same pairs with keys in the place of queries."""
    axis = rule.axes[0]
    turned = replace(axis, query=axis.key, key=axis.query, queries=axis.keys, keys=axis.queries)
    return replace(rule, axes=(turned,), about=None, source=None)
