"""Which keys the queries of a shard reach: from the set, from arrays of the rule, or pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lattend.errors import NoClosedForm, NotAffineError
from lattend.parallel.crossing import Crossing, crossing
from lattend.parallel.cut import Piece
from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate_term
from lattend.rules.language.expr import Compare, Term
from lattend.rules.rule import Rule

CHUNK = 1 << 22  # keys, or pairs, that are looked at together
Mask = NDArray[np.bool_]
Arrays = Sequence[
    Mapping[str, NDArray[np.int64]]
]  # of each element of the batch, those that the rule leaves open


def reached_keys(rule: Rule, pieces: Sequence[Piece], arrays: Arrays = ()) -> Mask:
    """Which keys of a line the queries of these pieces reach, in some head and some element of the batch.

    >>> from lattend.rules.reader import rule
    >>> np.flatnonzero(reached_keys(rule("k <= q and q - k <= 2").at(n=12), [(6, 9)])).tolist()
    [4, 5, 6, 7, 8]
    """
    mask = np.zeros(rule.values[rule.axes[0].keys], bool)
    looks_up = bool(expr.arrays(rule.condition))
    for piece in pieces:
        if piece[1] > piece[0]:
            for found in _by_data(rule, piece, arrays) if looks_up else [_by_set(rule, piece)]:
                mask |= found
    return mask


def _by_set(rule: Rule, piece: Piece) -> Mask:
    try:
        return _held(crossing(rule), piece)
    except (NotAffineError, NoClosedForm):  # no set, or one that takes too long
        return _by_pairs(rule, piece, {})


def _held(found: Crossing, piece: Piece) -> Mask:
    """The keys in the set of those that are reached, some at a time."""
    rule, region = found.rule, found.reached
    ends = dict(zip(found.ends, piece, strict=True))
    keys, name = rule.values[rule.axes[0].keys], rule.axes[0].key
    parts = [np.arange(first, min(keys, first + CHUNK)) for first in range(0, keys, CHUNK)]
    held = [np.broadcast_to(region.holds({**rule.values, **ends, name: part}), part.shape) for part in parts]
    return np.concatenate(held) if held else np.zeros(0, bool)


# Arrays


def _by_data(rule: Rule, piece: Piece, arrays: Arrays) -> Iterator[Mask]:
    """What is reached in each element of the batch."""
    same = _documents(rule)
    for own in arrays or [{}]:
        data = {**rule.data, **own}
        found = None if same is None else _by_documents(rule, *same, piece, data)
        yield _by_pairs(rule, piece, data) if found is None else found


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
        found = crossing(rest)
        region = found.reached
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
        at = {found.ends[0]: starts[place[left]], found.ends[1]: stops[place[left]], axis.key: left}
        mask[left] |= np.broadcast_to(region.holds({**rest.values, **at}), left.shape)
        place[left] += 1
        left = left[place[left] < last[left]]
    return mask


def _by_pairs(rule: Rule, piece: Piece, data: Mapping[str, NDArray[np.int64]]) -> Mask:
    """The keys of pairs, looked at one by one."""
    keys, axis = rule.values[rule.axes[0].keys], rule.axes[0]
    given = replace(rule, data={**rule.data, **data}, open=())
    mask = np.zeros(keys, bool)
    rows = max(1, CHUNK // max(1, keys))
    for first in range(*piece, rows):
        ranges = {name: np.arange(length) for name, length in given.lengths.items()}
        ranges[axis.query] = np.arange(first, min(piece[1], first + rows))
        found = given.mask_at(ranges)
        mask |= found.any(tuple(range(found.ndim - 1)))
    return mask
