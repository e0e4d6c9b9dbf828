"""Which keys the queries of a shard reach: from the set, from arrays of the rule, or pair by pair."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import prod

import numpy as np
from numpy.typing import NDArray

from lattend.counts.closed import Closed, counted_points
from lattend.counts.count import Count
from lattend.counts.counting import bind, count
from lattend.errors import NoClosedForm, NotAffineError
from lattend.parallel.keyset import Mask, Piece, Pieces
from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate_term
from lattend.rules.language.expr import Arith, Compare, Condition, Name, Num, Term
from lattend.rules.rule import Rule
from lattend.sets import PointSet
from lattend.sets.guard import remembered
from lattend.sets.region import Region

CHUNK = 1 << 22  # keys, or pairs, that are looked at together
Arrays = Sequence[
    Mapping[str, NDArray[np.int64]]
]  # of each element of the batch, those that the rule leaves open


def reached_keys(rule: Rule, boxes: Sequence[Pieces], arrays: Arrays = ()) -> Mask:
    """Which keys the queries of these boxes reach, in some head and some element of the batch.

    The mask has an axis for each of the rule's.

    >>> from lattend.rules.reader import rule
    >>> np.flatnonzero(reached_keys(rule("k <= q and q - k <= 2").at(n=12), [((6, 9),)])).tolist()
    [4, 5, 6, 7, 8]
    """
    mask = np.zeros(_key_sizes(rule), bool)
    looks_up = bool(expr.arrays(rule.condition))
    for box in boxes:
        if all(b > a for a, b in box):
            for keys in _by_data(rule, box, arrays) if looks_up else [_by_set(rule, box)]:
                mask |= keys
    return mask


def reached_by_pairs(rule: Rule, boxes: Sequence[Pieces]) -> Mask:
    """Which keys the queries of these boxes reach, from the pairs themselves."""
    mask = np.zeros(_key_sizes(rule), bool)
    for box in boxes:
        mask |= _by_pairs(rule, box, {})
    return mask


def _key_sizes(rule: Rule) -> list[int]:
    return [rule.values[axis.keys] for axis in rule.axes]


def _by_set(rule: Rule, box: Pieces) -> Mask:
    try:
        return _held(crossing(rule, len(rule.axes)), box)
    except (NotAffineError, NoClosedForm):  # no set, or one that takes too long
        return _by_pairs(rule, box, {})


def _held(reach: ShardReach, box: Pieces) -> Mask:
    """The keys in the set of those that are reached, some at a time."""
    rule, region = reach.rule, reach.reached
    known = {**rule.values, **dict(zip(reach.ends, chain(*box), strict=True))}
    sizes, names = _key_sizes(rule), [axis.key for axis in rule.axes]
    mask = np.zeros(sizes, bool)
    for part in _chunks([(0, size) for size in sizes], CHUNK):
        at = dict(zip(names, np.ix_(*(np.arange(*piece) for piece in part)), strict=True))
        mask[tuple(slice(*piece) for piece in part)] = region.holds({**known, **at})
    return mask


def _chunks(box: Sequence[Piece], most: int) -> Iterator[Pieces]:
    """The box in parts of at most `most` positions."""
    sizes = [b - a for a, b in box]
    if prod(sizes) <= max(1, most):
        yield tuple(box)
        return
    axis = sizes.index(max(sizes))
    a, b = box[axis]
    for half in ((a, (a + b) // 2), ((a + b) // 2, b)):
        yield from _chunks([*box[:axis], half, *box[axis + 1 :]], most)


# Arrays


def _by_data(rule: Rule, box: Pieces, arrays: Arrays) -> Iterator[Mask]:
    """What is reached in each element of the batch."""
    same = _documents(rule) if len(box) == 1 else None
    for own in arrays or [{}]:
        data = {**rule.data, **own}
        keys = None if same is None else _by_documents(rule, *same, box[0], data)
        yield _by_pairs(rule, box, data) if keys is None else keys


def _documents(rule: Rule) -> tuple[Term, Term, Rule] | None:
    """A rule "same document, and more": what is equal of a query and of a key, and the rest as a rule."""
    axis, parts = rule.axes[0], expr.conjuncts(rule.condition)
    for part in parts:
        if not (isinstance(part, Compare) and part.op == "=="):
            continue
        sides = {frozenset(_positions(side)): side for side in (part.left, part.right)}
        query, key = sides.get(frozenset({axis.query})), sides.get(frozenset({axis.key}))
        rest = expr.all_of(*(other for other in parts if other is not part))
        if query is not None and key is not None and not expr.arrays(rest):
            return query, key, replace(rule, condition=rest, data={}, open=(), about=None, source=None)
    return None


def _positions(term: Term) -> list[str]:
    return [name for name in expr.names(term) if name in ("q", "k", HEAD)]


def _by_documents(
    rule: Rule, query: Term, key: Term, rest: Rule, piece: Piece, data: Mapping[str, NDArray[np.int64]]
) -> Mask | None:
    """Keys of the queries' documents: each stretch of queries reaches what the rest says of it."""
    try:
        reach = crossing(rest)
        region = reach.reached
    except (NotAffineError, NoClosedForm):
        return None
    axis, keys = rule.axes[0], rule.values[rule.axes[0].keys]
    of_query, of_key = (
        np.broadcast_to(evaluate_term(term, {**rule.values, name: places}, data), places.shape)
        for term, name, places in ((query, axis.query, np.arange(*piece)), (key, axis.key, np.arange(keys)))
    )
    ends = np.flatnonzero(np.diff(of_query, prepend=of_query[0] - 1, append=of_query[-1] - 1))
    starts, stops, documents = ends[:-1], ends[1:], of_query[ends[:-1]]
    order = np.argsort(documents, kind="stable")  # stretches of one document after each other
    starts, stops, documents = starts[order] + piece[0], stops[order] + piece[0], documents[order]
    mask = np.zeros(keys, bool)
    place = np.searchsorted(documents, of_key, "left")
    last = np.searchsorted(documents, of_key, "right")
    left = np.flatnonzero(place < last)
    while len(left):  # once for each stretch of the document that has most
        at = {reach.ends[0]: starts[place[left]], reach.ends[1]: stops[place[left]], axis.key: left}
        mask[left] |= np.broadcast_to(region.holds({**rest.values, **at}), left.shape)
        place[left] += 1
        left = left[place[left] < last[left]]
    return mask


def _by_pairs(rule: Rule, box: Pieces, data: Mapping[str, NDArray[np.int64]]) -> Mask:
    """The keys of pairs, looked at one by one."""
    given, sizes = replace(rule, data={**rule.data, **data}, open=()), _key_sizes(rule)
    mask = np.zeros(sizes, bool)
    for part in _chunks(box, CHUNK // max(1, prod(sizes))):
        ranges = {name: np.arange(length) for name, length in given.lengths.items()}
        ranges |= {axis.query: np.arange(*piece) for axis, piece in zip(rule.axes, part, strict=True)}
        found = given.mask_at(ranges)
        mask |= found.any(tuple(range(found.ndim - len(sizes))))
    return mask


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
    """The rule with its queries on one rank of equal shards; the last shard may be shorter.

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
