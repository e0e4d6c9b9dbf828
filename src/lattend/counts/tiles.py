"""How full tiles are: the exact number of marked squares in each, without looking at the squares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.corners import corner_counts
from lattend.counts.data import data_tiles
from lattend.counts.enumeration import MAX_SQUARES
from lattend.errors import NoClosedForm, NotAffineError, TooLarge
from lattend.rules import expr
from lattend.rules.evaluate import evaluate
from lattend.rules.rule import Rule

MAX_SIZE = 1 << 60  # sums of a few positions stay within 64 bits


def tile_counts(
    rule: Rule, values: Mapping[str, int], query_edges: Sequence[int], key_edges: Sequence[int]
) -> NDArray[Any]:
    """The exact number of marked squares in each box between consecutive edges, on a line.

    Without a closed form, and only up to a stated size, from the squares themselves.
    """
    if max(query_edges[-1], key_edges[-1]) > MAX_SIZE:
        raise TooLarge(f"tiles are counted on lines of at most {MAX_SIZE:,} positions")
    rows, cols = np.asarray(query_edges, np.int64), np.asarray(key_edges, np.int64)
    try:
        if expr.arrays(rule.condition):
            return data_tiles(rule, values, rows, cols)
        corners = corner_counts(rule, rule.condition, values, rows[:, None], cols[None, :])
    except (NoClosedForm, NotAffineError) as reason:
        squares = int(rows[-1]) * int(cols[-1])
        if squares > MAX_SQUARES:
            raise TooLarge(f"{squares:,} squares are too many to look at one by one: {reason}") from None
        return _from_squares(rule, values, rows, cols)
    return corners[1:, 1:] - corners[:-1, 1:] - corners[1:, :-1] + corners[:-1, :-1]


def _from_squares(
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
