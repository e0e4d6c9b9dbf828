"""Prefix counts: pairs of queries below a with keys below b, at numbers, for rules on a line."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.closed import Closed
from lattend.counts.corners import CORNER, LEFT, TOP
from lattend.rules.language import expr
from lattend.rules.language.expr import Compare, Name, Num, Term
from lattend.rules.rule import Rule
from lattend.sets import PointSet
from lattend.sets.guard import remembered


def pairs_above(line: Rule, top: Any) -> NDArray[Any]:
    """The pairs of queries below each `top`, for a complete rule on a line without parameters."""
    return _values(line, top, line.values[line.axes[0].keys], whole_rows=True)


def pairs_within(line: Rule, top: Any, left: Any) -> NDArray[Any]:
    """Those with keys below `left` alone."""
    return _values(line, top, left, whole_rows=False)


def _values(line: Rule, top: Any, left: Any, whole_rows: bool) -> NDArray[Any]:
    gaps, closed = remembered(_form, line, whole_rows, budget=line.budget)
    a, b = np.broadcast_arrays(np.asarray(top, np.int64), np.asarray(left, np.int64))
    found = closed.values_at({**line.values, TOP: a, LEFT: b}, a.shape)
    return a.astype(object) * b * line.values.get("heads", 1) - found if gaps else found


def _form(line: Rule, whole_rows: bool) -> tuple[bool, Closed]:
    """Whether what is counted are the pairs outside, which may be the simpler set; and their count.

    Sizes are numbers in it: fewer letters are counted in less time.
    """
    axis = line.axes[0]
    queries, keys = (Num(line.values[size]) for size in (axis.queries, axis.keys))
    sizes: dict[str, Term] = {axis.queries: queries, axis.keys: keys}
    limits = [Compare("<=", Name(TOP), queries), Compare("==" if whole_rows else "<=", Name(LEFT), keys)]
    domain = expr.all_of(expr.substituted(line.where, sizes), *limits)
    points = PointSet.of_rule(Rule(expr.substituted(line.condition, sizes), CORNER, where=domain))
    gaps = points.gaps()
    found = points if gaps is None else gaps
    return gaps is not None, Closed(points.domain.space, points.domain, found.counted()).ready()
