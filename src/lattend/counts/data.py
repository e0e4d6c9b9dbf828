"""Counting rules that look up data: documents, random blocks.

A lookup such as doc[q] is constant on runs of positions, so the data part of a rule is constant on
boxes (run of queries × run of keys), and the rest of it is affine. Inside a box the affine part is
counted by its closed form.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from lattend.counts.enumeration import MAX_SQUARES, enumerated
from lattend.counts.tiles import corner_counts
from lattend.errors import LattendError
from lattend.rules import expr
from lattend.rules.evaluate import evaluate, evaluate_term
from lattend.rules.expr import Compare, Condition, Lookup, Truth
from lattend.rules.rule import Rule

MAX_ATOMS = 4


def counted_from_data(rule: Rule, values: Mapping[str, int]) -> int:
    """The exact number of marked squares of a rule on a line, in time that follows its runs."""
    atoms = _data_atoms(rule.condition)
    if len(rule.axes) != 1 or rule.has_heads or len(atoms) > MAX_ATOMS:
        return enumerated(rule, values)
    axis = rule.axes[0]
    if values[axis.queries] * values[axis.keys] <= MAX_SQUARES // 256:
        return enumerated(rule, values)
    query_edges = _edges(atoms, axis.query, values[axis.queries], values, rule)
    key_edges = _edges(atoms, axis.key, values[axis.keys], values, rule)
    total = 0
    for choice in product((True, False), repeat=len(atoms)):
        chosen = dict(zip(atoms, choice, strict=True))
        residual = expr.resolved(rule.condition, chosen)
        if residual == Truth(False):
            continue
        places = {
            axis.query: query_edges[:-1, None],
            axis.key: key_edges[None, :-1],
        }
        picked = np.ones((len(query_edges) - 1, len(key_edges) - 1), bool)
        for atom, value in chosen.items():
            picked &= np.asarray(evaluate(atom, {**values, **places}, rule.data)) == value
        total += _in_boxes(rule, residual, values, query_edges, key_edges, picked)
    return total


def _in_boxes(
    rule: Rule,
    residual: Condition,
    values: Mapping[str, int],
    query_edges: NDArray[np.int64],
    key_edges: NDArray[np.int64],
    picked: NDArray[np.bool_],
) -> int:
    rows, cols = np.nonzero(picked)
    top, bottom = query_edges[rows], query_edges[rows + 1]
    left, right = key_edges[cols], key_edges[cols + 1]
    if residual == Truth(True):
        return int(((bottom - top).astype(object) * (right - left).astype(object)).sum())
    corners = [
        corner_counts(rule, residual, values, a, b)
        for a, b in ((bottom, right), (top, right), (bottom, left), (top, left))
    ]
    return int((corners[0] - corners[1] - corners[2] + corners[3]).sum())


def _data_atoms(node: Condition) -> list[Condition]:
    """The comparisons that look something up, each once."""
    found = [n for n in expr.walk(node) if isinstance(n, Compare) and expr.arrays(n)]
    return list(dict.fromkeys(found))


def _edges(
    atoms: list[Condition], position: str, size: int, values: Mapping[str, int], rule: Rule
) -> NDArray[np.int64]:
    """Where runs of positions begin along which every lookup stays the same; and the end."""
    places = np.arange(size)
    changes = np.zeros(max(0, size - 1), bool)
    lookups = [node for atom in atoms for node in expr.walk(atom) if isinstance(node, Lookup)]
    for lookup in lookups:
        for term in [lookup] if _only(lookup, position) else lookup.indices:
            if position not in expr.names(term):
                continue
            if not _only(term, position):
                raise LattendError(f"{expr.term_text(lookup)}: index by the query or by the key, not by both")
            found = evaluate_term(term, {**values, position: places}, rule.data)
            along = np.broadcast_to(found, places.shape)
            changes |= along[1:] != along[:-1]
    return np.concatenate([[0], np.nonzero(changes)[0] + 1, [size]]).astype(np.int64)


def _only(node: expr.Term, position: str) -> bool:
    other = {"q": "k", "k": "q"}[position]
    return position in expr.names(node) and other not in expr.names(node)
