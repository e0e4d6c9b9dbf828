"""What a rule says of shards: the keys that queries a … b - 1 reach, and how many pairs they have.

Both are sets with two more parameters, the ends of a shard, so their counts are closed forms of n, the rule's
letters, a and b: one form for every rank of every cut.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lattend.counts.closed import Closed, counted_points
from lattend.counts.count import Count
from lattend.counts.counting import bind, count
from lattend.errors import NoClosedForm
from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Compare, Condition, Name, Num
from lattend.rules.rule import Rule
from lattend.sets import PointSet
from lattend.sets.guard import remembered
from lattend.sets.region import Region


@dataclass(frozen=True)
class ShardReach:
    """A rule on a line, cut: what the shard of queries a … b - 1 attends to.

    >>> from lattend.rules.reader import rule
    >>> crossing(rule("k <= q and q - k <= t")).halo
    t  when t <= a < b and t >= 1
    a  when a <= t and a < b
    0  otherwise
    """

    rule: Rule  # the pairs whose queries lie in the shard
    ends: tuple[str, ...]  # the names of its first query and of the one after its last, along each axis cut
    own: Condition  # whether a key lies in it too

    @cached_property
    def pairs(self) -> Count:
        """How many pairs the shard's queries have."""
        found = count(self.rule, method="closed")
        assert isinstance(found, Count)  # a and b are open
        return found

    @cached_property
    def halo(self) -> Count:
        """How many keys beside its own the shard reaches."""
        beside = expr.negated(self.own)
        far = replace(self.rule, condition=expr.all_of(self.rule.condition, beside), values={})
        closed = remembered(_distinct_keys, far, budget=far.budget)
        return bind(Count(far, closed, budget=far.budget), replace(far, values=self.rule.values))

    @cached_property
    def reached(self) -> Region:
        """The keys that the shard reaches, its own among them, with the key's name beside a and b."""
        return remembered(_reached, self.rule.baked(), budget=self.rule.budget)


def crossing(rule: Rule, axes: int = 1) -> ShardReach:
    """The rule with its queries between two cuts, along the first axis or along the first two."""
    ends = _letters(rule, "abcdef"[: 2 * axes])
    inside: list[Condition] = []
    own: list[Condition] = []
    order: list[Condition] = []
    for axis, a, b in zip(rule.axes, map(Name, ends[::2]), map(Name, ends[1::2]), strict=False):
        inside += [Compare(">=", Name(axis.query), a), Compare("<", Name(axis.query), b)]
        own += [Compare(">=", Name(axis.key), a), Compare("<", Name(axis.key), b)]
        order += [Compare(">=", a, Num(0)), Compare("<=", a, b), Compare("<=", b, Name(axis.queries))]
    return ShardReach(_cut(rule, inside, order), ends, expr.all_of(*own))


def crossing_of_rank(rule: Rule, axes: int = 1) -> ShardReach:
    """The rule with its queries on one rank, of shards of so many positions; the last one may be shorter.

    >>> from lattend.rules.reader import rule
    >>> crossing_of_rank(rule("k <= q")).pairs.assuming("shard | n, rank < n // shard")
    shard*(2rank*shard + shard + 1)/2
    """
    if axes > 1:
        raise NoClosedForm("blocks of an image have two ranks, one along each axis; see pairs and halo")
    names = _letters(rule, ("shard", "rank"))
    length, rank = map(Name, names)
    query, key = (Arith("//", (Name(name), length)) for name in (rule.axes[0].query, rule.axes[0].key))
    inside, order = [Compare("==", query, rank)], [Compare(">=", rank, Num(0))]
    return ShardReach(_cut(rule, inside, order), names, Compare("==", key, rank))


def _cut(rule: Rule, inside: Sequence[Condition], order: Sequence[Condition]) -> Rule:
    """The rule with conditions on its queries, and on the letters of its cut."""
    condition, where = expr.all_of(rule.condition, *inside), expr.all_of(rule.where, *order)
    return replace(rule, condition=condition, where=where, about=None, source=None)


def _letters(rule: Rule, letters: Sequence[str]) -> tuple[str, ...]:
    """These letters, or where the rule has one of them, all with a mark: a_."""
    taken = {*rule.parameters, *rule.sizes}
    marks = next(i for i in itertools.count() if not {letter + "_" * i for letter in letters} & taken)
    return tuple(letter + "_" * marks for letter in letters)


def _distinct_keys(rule: Rule) -> Closed:
    """The keys of all pairs, each once."""
    gone = [axis.query for axis in rule.axes] + ([HEAD] if rule.has_heads else [])
    return counted_points(PointSet.of_rule(rule).without(gone))


def _reached(rule: Rule) -> Region:
    """The keys of at least one pair."""
    return PointSet.of_rule(rule, fixed=[axis.key for axis in rule.axes]).occupied()
