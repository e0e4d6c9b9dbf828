"""Counts at given numbers: pair by pair, in the tiles of a grid, and where a rule looks up data.

The pairs of a box follow from F(a, b), the number of pairs with q < a and k < b, at its four corners: F is
the count of the same rule with its sizes renamed. A lookup such as doc[q] is constant on runs of positions,
so the data part is constant on boxes (run of queries × run of keys); inside a box the affine part is counted
by its closed form.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.closed import Closed, raw_form
from lattend.errors import DeadlineError, DomainError, EngineMissing, NoClosedForm, NotAffineError, TooLarge
from lattend.rules.axes import POSITIONS, Axis
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate, evaluate_term
from lattend.rules.language.expr import Compare, Condition, Lookup, Name, Num, Term, Truth
from lattend.rules.rule import Rule, check_integer
from lattend.sets.guard import remembered

TOP, LEFT = "_queries_above", "_keys_before"  # a and b; no text can hold these names
WHOLE = {"n": "_all_queries", "m": "_all_keys"}  # what a condition means when it speaks of n and m itself
CORNER = (Axis("q", "k", TOP, LEFT),)
MAX_PAIRS = 1 << 28  # seconds
CHUNK = 1 << 22  # pairs looked at in one go
MAX_SIZE = 1 << 60  # sums of a few positions stay within 64 bits
HELD = 1 << 22  # pairs in memory at once
MAX_ATOMS = 4


def corner_counts(rule: Rule, condition: Condition, top: NDArray[Any], left: NDArray[Any]) -> NDArray[Any]:
    """F(a, b) at arrays of a and b, for a part of a complete rule's condition."""
    closed = _corner_form(rule, condition)
    a, b = np.broadcast_arrays(np.asarray(top, np.int64), np.asarray(left, np.int64))
    values = {WHOLE.get(name, name): value for name, value in rule.values.items()}
    return closed.values_at({**values, TOP: a, LEFT: b}, a.shape)


def _corner_form(rule: Rule, condition: Condition) -> Closed:
    """F for this condition with its parameters put in; moduli stay symbols, if that can be counted."""
    try:
        return _form(rule, condition, keep=rule.moduli)
    except (DeadlineError, EngineMissing):
        raise
    except (NoClosedForm, NotAffineError):
        if not rule.moduli:
            raise
        return _form(rule, condition, keep=[])


def _form(rule: Rule, condition: Condition, keep: list[str]) -> Closed:
    axis = rule.axes[0]
    tied = {"m": Name(WHOLE["n"])} if axis.keys == "n" else {}
    numbers = {name: Num(rule.values[name]) for name in rule.parameters if name not in keep}
    all_positions: dict[str, Term] = {**{name: Name(new) for name, new in WHOLE.items()}, **tied, **numbers}
    named = [size for size in (axis.queries, axis.keys) if size in expr.names(condition)]
    limits = [
        Compare("<=", Name(corner), all_positions[size])
        for corner, size in ((TOP, axis.queries), (LEFT, axis.keys))
        if size in named
    ]
    domain = expr.all_of(expr.substituted(rule.where, all_positions), *limits)
    box = Rule(expr.substituted(condition, all_positions), CORNER, where=domain)
    return remembered(raw_form, box, budget=rule.budget)


def enumerated(rule: Rule) -> int:
    """Returns the number of attended pairs of a complete rule by enumeration, a few rows at a time."""
    lengths, pairs = rule.lengths, rule.dense
    _check(pairs)
    if not pairs:
        return 0
    first, rows = next(iter(lengths.items()))
    step = max(1, CHUNK // (pairs // rows))
    ranges = {name: np.arange(length) for name, length in lengths.items()}
    blocks = (ranges | {first: np.arange(at, min(at + step, rows))} for at in range(0, rows, step))
    return sum(int(rule.mask_at(block).sum()) for block in blocks)


def enumerated_per(rule: Rule, positions: Mapping[str, int], first: int = 0) -> int:
    """Returns the number of attended pairs of a complete rule at these positions, counted from `first`."""
    for name, position in positions.items():
        check_integer(name, position)
        if not first <= position < rule.lengths[name] + first:
            raise DomainError(f"{name} = {position} lies outside {first} … {rule.lengths[name] - 1 + first}")
    positions = {name: position - first for name, position in positions.items()}
    ranges = {name: np.arange(length) for name, length in rule.lengths.items() if name not in positions}
    _check(prod(len(r) for r in ranges.values()))
    ranges |= {name: np.array([position]) for name, position in positions.items()}
    return int(rule.mask_at({name: ranges[name] for name in rule.positions}).sum())


def _check(pairs: int) -> None:
    if pairs > MAX_PAIRS:
        raise TooLarge(f"{pairs:,} pairs are too many to enumerate; the limit is {MAX_PAIRS:,}")


def tile_counts(rule: Rule, query_edges: Sequence[int], key_edges: Sequence[int]) -> NDArray[Any]:
    """The exact number of attended pairs in each box between edges, for a complete rule on a line.

    Without a closed form, and only up to a stated size, from the pairs themselves.
    """
    if max(query_edges[-1], key_edges[-1]) > MAX_SIZE:
        raise TooLarge(f"tiles are counted on lines of at most {MAX_SIZE:,} positions")
    rows, cols = np.asarray(query_edges, np.int64), np.asarray(key_edges, np.int64)
    try:
        if expr.arrays(rule.condition):
            return data_tiles(rule, rows, cols)
        corners = corner_counts(rule, rule.condition, rows[:, None], cols[None, :])
    except (NoClosedForm, NotAffineError) as reason:
        pairs = int(rows[-1] - rows[0]) * int(cols[-1] - cols[0])
        if pairs > MAX_PAIRS:
            raise TooLarge(f"{pairs:,} pairs are too many to look at one by one: {reason}") from None
        return _from_mask(rule, rows, cols)
    return corners[1:, 1:] - corners[:-1, 1:] - corners[1:, :-1] + corners[:-1, :-1]


def _from_mask(rule: Rule, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> NDArray[Any]:
    """Returns the same by enumeration, a few rows at a time, if there is no closed form."""
    counts = np.zeros((len(rows) - 1, len(cols) - 1), np.int64)
    keys = np.arange(int(cols[0]), int(cols[-1]))
    at_once = max(1, HELD // max(1, len(keys)))
    for i, (first, last) in enumerate(itertools.pairwise(rows.tolist())):
        for start in range(first, last, at_once):
            mask = rule.mask_at({"q": np.arange(start, min(start + at_once, last)), "k": keys})
            before = np.concatenate(([0], np.cumsum(mask.sum(axis=0))))  # pairs left of each key
            counts[i] += np.diff(before[cols - cols[0]])
    return counts


def counted_from_data(rule: Rule, enumerate_below: int = MAX_PAIRS // 256) -> int:
    """The exact number of attended pairs of a complete rule, on a line in time that follows its runs.

    Grids of fewer pairs than `enumerate_below` are simply enumerated.
    """
    if len(rule.axes) > 1 or rule.has_heads or rule.dense < enumerate_below:
        return enumerated(rule)
    rows, cols = (np.array([0, length]) for length in rule.lengths.values())
    try:
        return int(data_tiles(rule, rows, cols)[0, 0])
    except NoClosedForm:
        return enumerated(rule)


def data_tiles(rule: Rule, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> NDArray[Any]:
    """The exact number of attended pairs in each tile between edges, for a complete rule on a line."""
    tops, lefts, picks = _data_picks(rule, rows, cols)
    total = np.zeros((len(rows) - 1, len(cols) - 1), object)
    for residual, some in picks:
        picked, sign = some, 1
        if picked.mean() > 0.5:  # fewer boxes to look at: all tiles, less the boxes not picked
            everywhere = np.ones(total.shape, bool)
            total += _in_boxes(rule, residual, rows, cols, everywhere)[2].reshape(total.shape)
            picked, sign = ~picked, -1
        i, j, counts = _in_boxes(rule, residual, tops, lefts, picked)
        np.add.at(
            total,
            (np.searchsorted(rows, tops[i], "right") - 1, np.searchsorted(cols, lefts[j], "right") - 1),
            sign * counts,
        )
    return total


def data_boxes(
    rule: Rule, rows: NDArray[np.int64], cols: NDArray[np.int64]
) -> Iterator[tuple[Condition, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """Yields boxes on which the data is constant, by the affine condition left inside them.

    Each condition comes with the tops, bottoms, lefts and rights of its boxes.
    """
    tops, lefts, picks = _data_picks(rule, rows, cols)
    for residual, picked in picks:
        i, j = np.nonzero(picked)
        yield residual, tops[i], tops[i + 1], lefts[j], lefts[j + 1]


def _data_picks(
    rule: Rule, rows: NDArray[np.int64], cols: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[tuple[Condition, NDArray[np.bool_]]]]:
    """Edges of boxes along which the data stays the same, and which boxes have which affine condition."""
    atoms = expr.data_comparisons(rule.condition)
    if len(atoms) > MAX_ATOMS:
        raise NoClosedForm(f"it looks up data in more than {MAX_ATOMS} conditions")
    mixed = [atom for atom in atoms if _speaks_of_positions(atom)]
    if mixed:
        raise NoClosedForm(f"{expr.text(mixed[0])} compares data with a position")
    axis = rule.axes[0]
    tops = _run_edges(atoms, axis.query, rows, rule)
    lefts = _run_edges(atoms, axis.key, cols, rule)
    if len(tops) * len(lefts) > MAX_PAIRS:
        raise NoClosedForm(f"its data has {len(tops):,} and {len(lefts):,} runs, too many pairs")
    corners = {axis.query: tops[:-1, None], axis.key: lefts[None, :-1]}
    truth: dict[Condition, NDArray[np.bool_]] = {
        atom: np.broadcast_to(
            np.asarray(evaluate(atom, {**rule.values, **corners}, rule.data)), (len(tops) - 1, len(lefts) - 1)
        )
        for atom in atoms
    }
    picks = [
        (residual, np.logical_and.reduce([truth[atom] == holds for atom, holds in chosen.items()]))
        for chosen, residual in expr.choices(rule.condition, atoms)
        if residual != Truth(False)
    ]
    return tops, lefts, picks


def _in_boxes(
    rule: Rule,
    residual: Condition,
    tops: NDArray[np.int64],
    lefts: NDArray[np.int64],
    picked: NDArray[np.bool_],
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[Any]]:
    """Returns the picked boxes by row and column, and the number of pairs of the affine rest in each."""
    i, j = np.nonzero(picked)
    a, b, c, d = tops[i], tops[i + 1], lefts[j], lefts[j + 1]
    if residual == Truth(True):
        return i, j, (b - a).astype(object) * (d - c).astype(object)
    bottom_right, top_right, bottom_left, top_left = (
        corner_counts(rule, residual, row, col) for row, col in ((b, d), (a, d), (b, c), (a, c))
    )
    return i, j, bottom_right - top_right - bottom_left + top_left


def _speaks_of_positions(atom: Condition) -> bool:
    """Returns whether a comparison with data also has a position outside its lookups."""
    stack: list[expr.Node] = [atom]
    while stack:
        node = stack.pop()
        if isinstance(node, expr.Name) and node.name in POSITIONS:
            return True
        if not isinstance(node, Lookup):
            stack.extend(expr.children(node))
    return False


def _run_edges(
    atoms: list[Compare],
    position: str,
    edges: NDArray[np.int64],
    rule: Rule,
) -> NDArray[np.int64]:
    """Returns the edges, and where runs begin along which every lookup is constant."""
    size = int(edges[-1])
    positions = np.arange(size)
    changes = np.zeros(max(0, size - 1), bool)
    lookups = [node for atom in atoms for node in expr.walk(atom) if isinstance(node, Lookup)]
    for lookup in lookups:
        for term in [lookup] if _only(lookup, position) else lookup.indices:
            if position not in expr.names(term):
                continue
            if not _only(term, position):
                raise NoClosedForm(f"{expr.term_text(lookup)} is indexed by the query and the key at once")
            values = evaluate_term(term, {**rule.values, position: positions}, rule.data)
            along = np.broadcast_to(values, positions.shape)
            changes |= along[1:] != along[:-1]
    return np.union1d(edges, np.nonzero(changes)[0] + 1).astype(np.int64)


def _only(node: expr.Term, position: str) -> bool:
    other = {"q": "k", "k": "q"}[position]
    return position in expr.names(node) and other not in expr.names(node)
