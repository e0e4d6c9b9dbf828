"""Counting rules that look up data: documents, random blocks.

A lookup such as doc[q] is constant on runs of positions, so the data part of a rule is constant on
boxes (run of queries × run of keys), and the rest of it is affine. Inside a box the affine part is
counted by its closed form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.corners import corner_counts
from lattend.counts.enumeration import MAX_PAIRS, enumerated
from lattend.errors import NoClosedForm
from lattend.rules.axes import POSITIONS
from lattend.rules.language import expr
from lattend.rules.language.evaluation import evaluate, evaluate_term
from lattend.rules.language.expr import Compare, Condition, Lookup, Truth
from lattend.rules.rule import Rule

MAX_ATOMS = 4


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
    tops = _edges(atoms, axis.query, rows, rule)
    lefts = _edges(atoms, axis.key, cols, rule)
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


def _edges(
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
