"""plan(rule, n=…, ranks=8): who sends what to whom, each rank's pairs and bytes, and what is quickest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.budget import Budget
from lattend.counts.count import Count
from lattend.counts.tiles import MAX_SIZE
from lattend.draw.grid.titles import name as name_of
from lattend.errors import DomainError, NamingError, NoClosedForm, NotAffineError, TooLarge
from lattend.parallel.cluster import Cluster, cluster_of
from lattend.parallel.edges import Edge
from lattend.parallel.layout import Cut, Layout, balanced, contiguous, of_lengths, zigzag
from lattend.parallel.reached import ShardReach, crossing, crossing_of_rank
from lattend.parallel.strategies import (
    ITEM,
    Share,
    Strategy,
    Tensors,
    block_meshes,
    elsewhere,
    halo_strategy,
    head_groups,
    heads_strategy,
    quickest_of,
    staged_strategy,
)
from lattend.parallel.tally import tally_of
from lattend.report.report import Printed, Report
from lattend.rules.reader import RuleLike, read_rule
from lattend.rules.rule import Rule, check_integer
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.draw import Picture

CUTS = ("contiguous", "zigzag", "balanced")
MOST_RANKS = 1 << 16
FORMULA = Budget(2.5)  # for a closed form in the rule's letters
NUMBERS = Budget(1.2)  # with their numbers put in, which is quicker where there is one at all


@dataclass(frozen=True, eq=False)
class ShardPlan(Printed):
    """A rule over ranks: what each has to do and gets, by every cut and strategy, and which is chosen.

    `pairs` and `halo` are closed forms in the rule's letters and a shard's ends a and b, `rank_pairs` and
    `rank_halo` in the length `shard` of equal shards and the `rank`.
    """

    rule: Rule
    tensors: Tensors
    dtype: str
    cluster: Cluster
    shares: Mapping[str, Share]  # by the name of their cut
    strategies: tuple[Strategy, ...]
    chosen: Strategy
    left_out: tuple[str, ...] = ()
    groups: int = field(default=1)  # ranks that share heads, in the strategy that is chosen

    @property
    def ranks(self) -> int:
        return self.share.layout.ranks

    @cached_property
    def share(self) -> Share:
        """Pairs and keys of each rank, by the cut that is chosen; of shared heads, by the quickest."""
        if self.groups == 1:
            return self.shares[self.chosen.cut]
        return self.shares[
            min((one for one in self.strategies if one.name == "halo"), key=lambda one: one.time).cut
        ]

    @property
    def layout(self) -> Layout:
        """Which positions each rank has."""
        return self.share.layout

    # Closed forms

    @cached_property
    def crossing(self) -> ShardReach:
        """The rule with a shard's ends as letters."""
        return crossing(replace(self.rule, values={}), axes=len(self.layout.cuts))

    @cached_property
    def pairs(self) -> Count:
        """How many pairs the queries a … b - 1 have."""
        return self._form(lambda reach: reach.pairs, crossing)

    @cached_property
    def halo(self) -> Count:
        """How many keys beside its own they reach."""
        return self._form(lambda reach: reach.halo, crossing)

    @cached_property
    def rank_pairs(self) -> Count:
        """How many pairs a rank of equal shards has: a formula of their length `shard` and the `rank`."""
        return self._form(lambda reach: reach.pairs, crossing_of_rank)

    @cached_property
    def rank_halo(self) -> Count:
        """How many keys a rank of equal shards gets: a formula of their length `shard` and the `rank`."""
        return self._form(lambda reach: reach.halo, crossing_of_rank)

    def _form(self, count: Any, cut: Any) -> Count:
        """In the rule's letters, or with their numbers where that is not found in time."""
        axes = len(self.layout.cuts)
        plain = replace(self.rule, values={}, budget=FORMULA)
        try:
            return count(cut(plain, axes=axes))
        except (NoClosedForm, NotAffineError):
            if not self.rule.parameters:
                raise
        return count(cut(replace(self.rule.baked(), values={}, budget=NUMBERS), axes=axes))

    # Edges

    def edges(self, rank: int) -> list[Edge]:
        """What a rank gets from each other rank: boxes of keys, by their positions."""
        check_integer("rank", rank)
        if not 0 <= rank < self.ranks:
            raise DomainError(f"rank = {rank} lies outside 0 … {self.ranks - 1}")
        keys = self.share.reached
        return [Edge(source, rank, keys.boxes(rank, source)) for source in self.keys_from(rank)]

    def keys_from(self, rank: int) -> dict[int, int]:
        """How many keys a rank gets of each other rank that it gets any of."""
        (counts,) = self.share.reached.table([rank]).tolist()
        return {source: keys for source, keys in enumerate(counts) if keys and source != rank}

    # What it says

    @property
    def title(self) -> str:
        return f"{name_of(self.rule)} on {self.ranks:,} {'rank' if self.ranks == 1 else 'ranks'}"

    def report(self) -> Report:
        from lattend.parallel.text import plan_report

        return plan_report(self)

    def json(self) -> dict[str, Any]:
        from lattend.parallel.text import plan_json

        return plan_json(self)

    def draw(self) -> Picture:
        """The shards on the grid of pairs, what crosses their borders, and the load of each rank."""
        from lattend.parallel.picture import shards_picture

        return shards_picture(self)

    def chart(self) -> Picture:
        """Bytes and predicted time of every strategy, as bars."""
        from lattend.parallel.picture import strategies_picture

        return strategies_picture(self)

    def _repr_svg_(self) -> str:
        return self.draw().svg()


def plan(
    rule: RuleLike,
    /,
    *,
    ranks: int,
    heads: int = 1,
    kv_heads: int | None = None,
    head_dim: int = 64,
    value_dim: int | None = None,
    batch: int = 1,
    dtype: str = "bfloat16",
    cut: str | Cut | tuple[int, ...] | None = None,
    cluster: str | Cluster | None = None,
    **values: Any,
) -> ShardPlan:
    """What attention over `ranks` devices would send and take; nothing runs, and torch is not needed.

    `cut` is "contiguous", "zigzag", "balanced", a Cut, or a mesh of blocks of an image, (4, 2); left out, the
    quickest is chosen. `cluster` describes the machines: "machine=H100,node=8,infiniband=50GB/s"; what
    it leaves out is as in `Cluster()`.

    >>> found = plan("strided(4095)", n=2**20, ranks=8, heads=32, kv_heads=8, head_dim=128)
    >>> found.share.halo.max(), found.tensors.row  # t keys, each of 8 heads * 2 * 128 numbers * 2 bytes
    (np.int64(4095), 4096)
    """
    tensors = _tensors(heads, kv_heads, head_dim, value_dim, batch, dtype)
    check_integer("ranks", ranks)
    if not 1 <= ranks <= MOST_RANKS:
        raise DomainError(f"ranks = {ranks} is not one of 1 … {MOST_RANKS:,}")
    read = read_rule(rule)
    if read.has_heads and "heads" not in read.values:
        values["heads"] = heads
    bound = read.complete(**values)
    if bound.has_heads and bound.values["heads"] != heads:
        raise DomainError(
            f"the rule has {bound.values['heads']} heads, and heads={heads} is given; give the same number"
        )
    for axis in bound.axes:
        if bound.values[axis.queries] != bound.values[axis.keys]:
            raise DomainError(
                f"shards need as many keys as queries, got {axis.queries} = {bound.values[axis.queries]} and "
                f"{axis.keys} = {bound.values[axis.keys]}"
            )
        if bound.values[axis.queries] > MAX_SIZE:
            raise TooLarge(f"shards are counted on axes of at most {MAX_SIZE:,} positions")
    return _planned(bound, ranks, tensors, dtype, cut, cluster_of(cluster))


def _tensors(
    heads: int, kv_heads: int | None, head_dim: int, value_dim: int | None, batch: int, dtype: str
) -> Tensors:
    given = {
        "heads": heads,
        "kv_heads": heads if kv_heads is None else kv_heads,
        "head_dim": head_dim,
        "value_dim": head_dim if value_dim is None else value_dim,
        "batch": batch,
    }
    for name, value in given.items():
        check_integer(name, value)
        if value < 1:
            raise DomainError(f"{name} must be at least 1, got {value}")
    if heads % given["kv_heads"]:
        raise DomainError(f"heads = {heads} is no multiple of kv_heads = {given['kv_heads']}")
    if dtype not in ITEM:
        raise NamingError(f"dtype is one of {', '.join(ITEM)}, not {dtype!r}")
    return Tensors(item=ITEM[dtype], **given)


def _planned(
    rule: Rule,
    ranks: int,
    tensors: Tensors,
    dtype: str,
    cut: str | Cut | tuple[int, ...] | None,
    cluster: Cluster,
) -> ShardPlan:
    tally = tally_of(rule)
    left_out: list[str] = []
    grids = rule.values.get("heads", 1)
    shares: dict[str, Share] = {}
    strategies: list[tuple[Strategy, int]] = []
    for layout in _layouts(tally, ranks, cut):
        share = Share(tally, layout)
        try:
            strategies.append((halo_strategy(share, tensors, cluster, grids), 1))
        except NoClosedForm as reason:
            left_out.append(f"{layout.name}: {reason}")
            continue
        shares[layout.name] = share
        strategies.append((staged_strategy(share, tensors, cluster, grids), 1))
    if not shares:
        raise NoClosedForm(f'rule "{rule.text}" has no cut whose keys are counted: {"; ".join(left_out)}')
    best = min((one for one, _ in strategies), key=lambda one: one.time).cut
    equal = [share for name, share in shares.items() if name in CUTS[:2]] or [*shares.values()]
    others = elsewhere(min(equal, key=lambda share: share.balance), tensors, cluster, grids)
    for groups in [] if rule.has_heads else head_groups(tensors, cluster, ranks):
        if cut is None or groups == ranks:
            if best == "balanced":
                inner = joined(shares[best].layout, groups)
            else:
                (inner,) = _layouts(tally, ranks // groups, best if best in CUTS else "contiguous")
            strategies.append((heads_strategy(Share(tally, inner), tensors, cluster, grids, groups), groups))
    if not any(one.name == "Ulysses" for one, _ in strategies) and ranks > 1:
        left_out.append(_why_no_heads(tensors, ranks, rule.has_heads))
    chosen = quickest_of([one for one, _ in strategies], cluster)
    groups = next(groups for one, groups in strategies if one is chosen)
    listed = tuple(one for one, _ in strategies) + tuple(others)
    return ShardPlan(rule, tensors, dtype, cluster, shares, listed, chosen, tuple(left_out), groups)


def _why_no_heads(tensors: Tensors, ranks: int, per_head: bool) -> str:
    if per_head:
        return "Ulysses: the rule differs between heads, so ranks with other heads would have other work"
    heads = f"{many(tensors.heads, 'head')} on {tensors.kv_heads} of keys and values"
    return f"Ulysses: {ranks:,} ranks do not share {heads}"


def _layouts(tally: Any, ranks: int, cut: str | Cut | tuple[int, ...] | None) -> list[Layout]:
    """The cuts that are looked at; the equal one first."""
    rows = tally.sizes[0] // tally.unit

    def along(rows_cut: Cut) -> Layout:
        return Layout((rows_cut.times(tally.unit),), tally.sizes)

    if isinstance(cut, Cut):
        if cut.ranks != ranks or cut.n != rows:
            raise DomainError(
                f"the cut is one of {cut.n:,} positions over {cut.ranks} ranks, not {rows:,} over {ranks}"
            )
        return [along(cut.checked())]
    if isinstance(cut, (tuple, list)):
        return [_mesh(tally, ranks, tuple(cut))]
    if cut is not None and cut not in CUTS:
        raise NamingError(f"cut is one of {', '.join(CUTS)}, a mesh such as (4, 2), or a Cut, not {cut!r}")
    makes = {
        "contiguous": lambda: contiguous(rows, ranks),
        "zigzag": lambda: zigzag(rows, ranks),
        "balanced": lambda: balanced(lambda tops: tally.upto(tops * tally.unit), rows, ranks),
    }
    if cut is not None:
        return [along(makes[cut]())]
    layouts = [along(make()) for make in makes.values()] if ranks > 1 else [along(makes["contiguous"]())]
    meshes = block_meshes(ranks, len(tally.sizes))
    return layouts + [Layout.of_mesh(tally.sizes, mesh) for mesh in meshes]


def joined(layout: Layout, groups: int) -> Layout:
    """The layout with each group of consecutive shards joined; a balanced cut stays balanced."""
    (cut,) = layout.cuts
    lengths = np.zeros(cut.ranks, np.int64) + sum(end - first for first, end in cut.ends)
    return Layout((of_lengths(lengths.reshape(-1, groups).sum(1).tolist(), cut.name),), layout.sizes)


def _mesh(tally: Any, ranks: int, mesh: tuple[int, ...]) -> Layout:
    for side in mesh:
        check_integer("a side of the mesh", side)
    shown = " × ".join(map(str, mesh))
    total = prod(mesh)
    if total != ranks or min(mesh) < 1:
        raise DomainError(f"a mesh of {shown} has {total} ranks, and there are {ranks}")
    if len(mesh) > len(tally.sizes):
        raise DomainError(
            f"a mesh of {shown} needs a rule on {len(mesh)} axes whose conditions hold along each alone"
        )
    return Layout.of_mesh(tally.sizes, mesh)
