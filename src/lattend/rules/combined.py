"""Combinations of two rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lattend.budget import DEFAULT
from lattend.errors import LattendError, NamingError
from lattend.rules.axes import untied
from lattend.rules.language import expr
from lattend.rules.language.expr import Condition

if TYPE_CHECKING:
    from lattend.rules.rule import Rule


def combined(left: Rule, right: Rule, join: Callable[[Condition, Condition], Condition]) -> Rule:
    """Returns the rule that joins both conditions, with parameters written in if their values differ."""
    left, right = aligned(left, right)
    shared = [name for name in left.parameters if name in right.parameters]
    if any(left.values.get(name) != right.values.get(name) for name in shared):
        left, right = left.baked(), right.baked()
    both = [name for name in left.data if name in right.data]
    clash = [name for name in both if not np.array_equal(left.data[name], right.data[name])]
    clash += [name for name in {*left.data, *right.data} if name in (*left.open, *right.open)]
    if clash:
        raise NamingError(f"both rules bring data named {clash[0]}, and the two differ; rename one")
    return replace(
        left,
        condition=join(left.condition, right.condition),
        where=expr.all_of(left.where, right.where),
        values={**left.values, **right.values},
        data={**left.data, **right.data},
        about=None,
        source=None,
        open=tuple(dict.fromkeys(left.open + right.open)),
        budget=DEFAULT,
    )


def aligned(left: Rule, right: Rule) -> tuple[Rule, Rule]:
    """Returns both rules on the same axes; on a line, n keys become m keys where the other rule has m."""
    if left.axes == right.axes:
        return left, right
    if {len(left.axes), len(right.axes)} == {1}:
        return replace(left, axes=untied(left.axes)), replace(right, axes=untied(right.axes))
    kinds = {1: "a line", 2: "an image", 3: "a volume"}
    raise LattendError(
        f'rules on different axes cannot be combined: "{left.text}" lives on {kinds[len(left.axes)]}, '
        f'"{right.text}" on {kinds[len(right.axes)]}'
    )
