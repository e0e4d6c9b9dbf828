"""How full tiles are: counts in boxes of the grid, from one closed form.

F(a, b), the number of marked squares with q < a and k < b, is the count of the same rule with its
sizes renamed; the squares of a box follow from F at its four corners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.closed import Closed, closed_form
from lattend.counts.polynomial import Polynomial
from lattend.errors import NoClosedForm, NotAffineError
from lattend.rules import expr
from lattend.rules.axes import Axis
from lattend.rules.evaluate import evaluate
from lattend.rules.expr import Compare, Condition, Name
from lattend.rules.rule import Rule
from lattend.sets.guard import guarded

TOP, LEFT = "queries_above", "keys_before"  # a and b
WHOLE = {"n": "all_queries", "m": "all_keys"}  # what a condition means when it speaks of n and m itself
CORNER = (Axis("q", "k", TOP, LEFT),)


def tile_counts(
    rule: Rule, values: Mapping[str, int], query_edges: Sequence[int], key_edges: Sequence[int]
) -> NDArray[Any]:
    """The exact number of marked squares in each box between consecutive edges, on a line."""
    rows, cols = np.asarray(query_edges, np.int64), np.asarray(key_edges, np.int64)
    try:
        corners = corner_counts(rule, rule.condition, values, rows[:, None], cols[None, :])
    except (NoClosedForm, NotAffineError):
        return _tile_counts_from_rows(rule, values, rows, cols)
    return corners[1:, 1:] - corners[:-1, 1:] - corners[1:, :-1] + corners[:-1, :-1]


def corner_counts(
    rule: Rule, condition: Condition, values: Mapping[str, int], top: NDArray[Any], left: NDArray[Any]
) -> NDArray[Any]:
    """F(a, b) at arrays of a and b, as exact integers."""
    closed = _corner_form(rule, condition)
    values = {WHOLE.get(name, name): value for name, value in values.items()}
    a, b = np.broadcast_arrays(np.asarray(top, np.int64), np.asarray(left, np.int64))
    found = np.zeros(a.shape, dtype=object)
    open_ = np.ones(a.shape, bool)
    for piece in closed.pieces:
        inside = piece.region.holds({**values, TOP: a, LEFT: b})
        here = open_ & np.broadcast_to(np.asarray(inside, bool), a.shape)
        if here.any():
            found[here] = _values(piece.formula, {**values, TOP: a[here], LEFT: b[here]})
            open_ &= ~here
    return found


def _values(formula: Polynomial, env: Mapping[str, Any]) -> NDArray[Any]:
    """The formula at arrays: in int64 where no term can pass it, in exact Python integers otherwise."""
    if formula.bound(env) < 2**62:
        return np.asarray(formula.value(env))
    return np.asarray(formula.value({name: np.asarray(x).astype(object) for name, x in env.items()}))


def _corner_form(rule: Rule, condition: Condition) -> Closed:
    (axis,) = rule.axes
    tied = {"m": Name(WHOLE["n"])} if axis.keys == "n" else {}
    whole = {name: Name(new) for name, new in WHOLE.items()} | tied
    named = [size for size in (axis.queries, axis.keys) if size in expr.names(condition)]
    limits = [
        Compare("<=", Name(corner), whole[size])
        for corner, size in ((TOP, axis.queries), (LEFT, axis.keys))
        if size in named
    ]
    domain = expr.all_of(expr.substituted(rule.where, whole), *limits)
    box = Rule(expr.substituted(condition, whole), CORNER, where=domain)
    key = (box.condition, box.where)
    if key not in _KNOWN:
        if len(_KNOWN) > 128:
            _KNOWN.clear()
        trusted = rule.about is not None and condition == rule.condition
        _KNOWN[key] = guarded(closed_form, box, (), trusted=trusted, deadline=None)
    return _KNOWN[key]


_KNOWN: dict[tuple[Condition, Condition], Closed] = {}


def _tile_counts_from_rows(
    rule: Rule, values: Mapping[str, int], rows: NDArray[np.int64], cols: NDArray[np.int64]
) -> NDArray[Any]:
    """The same from the squares themselves, a tile at a time, where there is no closed form."""
    found = np.zeros((len(rows) - 1, len(cols) - 1), np.int64)
    for i in range(len(rows) - 1):
        for j in range(len(cols) - 1):
            q = np.arange(int(rows[i]), int(rows[i + 1]))
            k = np.arange(int(cols[j]), int(cols[j + 1]))
            marked = evaluate(rule.condition, {**values, "q": q[:, None], "k": k[None, :]}, rule.data)
            found[i, j] = np.broadcast_to(marked, (q.size, k.size)).sum()
    return found
