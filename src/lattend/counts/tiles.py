"""How full tiles are: the exact number of attended pairs in each, without looking at the pairs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lattend.counts.corners import corner_counts
from lattend.counts.data import data_tiles
from lattend.counts.enumeration import MAX_PAIRS
from lattend.errors import NoClosedForm, NotAffineError, TooLarge
from lattend.rules.language import expr
from lattend.rules.rule import Rule

MAX_SIZE = 1 << 60  # sums of a few positions stay within 64 bits
HELD = 1 << 22  # pairs in memory at once


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
