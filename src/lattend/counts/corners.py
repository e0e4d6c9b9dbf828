"""F(a, b), the number of attended pairs with q < a and k < b, which counts every box of the grid.

It is the count of the same rule with its sizes renamed; the pairs of a box follow from F at its
four corners.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.closed import Closed, raw_form
from lattend.errors import DeadlineError, EngineMissing, NoClosedForm, NotAffineError
from lattend.rules.axes import Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import Compare, Condition, Name, Num, Term
from lattend.rules.rule import Rule
from lattend.sets.guard import remembered

TOP, LEFT = "_queries_above", "_keys_before"  # a and b; no text can hold these names
WHOLE = {"n": "_all_queries", "m": "_all_keys"}  # what a condition means when it speaks of n and m itself
CORNER = (Axis("q", "k", TOP, LEFT),)


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
